//! Commands at work against a ledger.
