//! The suite every ledger must pass.
