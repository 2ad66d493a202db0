//! The memory ledger under the suite.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryLedger;
use crate::ledger::conformance::desk::{START, entry, rate};
use crate::ledger::conformance::{Factory, differential};
use crate::ledger::{Ledger, LedgerError};

struct InMemory;

#[async_trait]
impl Factory for InMemory {
    async fn open(&self) -> Arc<dyn Ledger> {
        MemoryLedger::new()
    }

    async fn reopen(&self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        ledger
    }
}

crate::ledger_conformance!(InMemory);

#[tokio::test]
async fn two_ledgers_answer_alike_whatever_happens() {
    for seed in 0..40 {
        let (a, b) = (MemoryLedger::with_id("same"), MemoryLedger::with_id("same"));
        differential(seed, a.as_ref(), b.as_ref()).await;
    }
}

#[tokio::test]
#[should_panic(expected = "seed 1, step 0")]
async fn the_comparison_sees_one_mutation_too_many() {
    let (a, b) = (MemoryLedger::new(), MemoryLedger::new());
    b.enqueue(vec![entry(rate("extra", "100", 4))], START).await.unwrap();
    differential(1, a.as_ref(), b.as_ref()).await;
}

#[tokio::test]
async fn a_closed_ledger_says_so() {
    let ledger = MemoryLedger::new();
    ledger.close().await.unwrap();
    assert!(matches!(ledger.tallies().await, Err(LedgerError::Closed)));
}
