//! The memory ledger under the suite.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryLedger;
use crate::ledger::Ledger;
use crate::ledger::conformance::Factory;

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
