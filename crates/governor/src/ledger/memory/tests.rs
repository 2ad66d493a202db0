//! The memory ledger under the suite.
