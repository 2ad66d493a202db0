//! A ledger in memory: the whole contract, nothing on disk.
//!
//! It is for tests in virtual time and for services that bring their own durability; what it holds is
//! gone with the process. It is also the plainest reading of the [`Ledger`] trait: other stores are
//! compared with it answer by answer.

mod book;
mod change;
mod lanes;
mod row;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::name::{ChannelName, CorrelationId};
use ota_governor_core::time::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    Admission, Claim, Claimed, Counts, Entry, Filter, Head, Hold, HoldCause, Ledger, LedgerError, MutationId,
    PastCall, Record, Replay, Settled, Settlement, Tallies,
};
use book::Book;

/// A [`Ledger`] that lives and dies with its process.
///
/// ```
/// use ota_governor::ledger::Ledger;
/// use ota_governor::ledger::memory::MemoryLedger;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let ledger = MemoryLedger::new();
/// assert_eq!(ledger.tallies().await.unwrap().accepted, 0);
/// # });
/// ```
#[derive(Debug)]
pub struct MemoryLedger {
    id: String,
    book: Mutex<Book>,
}

impl MemoryLedger {
    /// An empty ledger with an id of its own.
    pub fn new() -> Arc<Self> {
        Self::with_id(&Uuid::new_v4().simple().to_string())
    }

    /// An empty ledger with this id, so that its idempotency keys can be foretold.
    pub fn with_id(id: &str) -> Arc<Self> {
        Arc::new(Self { id: id.to_owned(), book: Mutex::new(Book::new(id)) })
    }

    /// The book, whatever happened to the thread that held it before: no step leaves it half written
    /// but by a fault of this module, which the tests of every store would show.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<MutexGuard<'_, Book>, LedgerError> {
        let book = self.book();
        if book.closed { Err(LedgerError::Closed) } else { Ok(book) }
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    fn id(&self) -> &str {
        &self.id
    }

    async fn enqueue(&self, entries: Vec<Entry>, now: Timestamp) -> Result<Vec<Admission>, LedgerError> {
        let mut book = self.open()?;
        Ok(entries.into_iter().map(|entry| book.accept(entry, now)).collect())
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, LedgerError> {
        Ok(self.open()?.claim(&claim))
    }

    async fn head(&self, lane: &LaneKey, now: Timestamp) -> Result<Head, LedgerError> {
        Ok(self.open()?.head(lane, now))
    }

    async fn settle(&self, settlement: Settlement) -> Result<Vec<Settled>, LedgerError> {
        Ok(self.open()?.settle(settlement))
    }

    fn changes(&self, lane: &LaneKey) -> watch::Receiver<u64> {
        self.book().lane(lane).mark.subscribe()
    }

    fn lane_changes(&self) -> watch::Receiver<u64> {
        self.book().mark.subscribe()
    }

    async fn lanes(&self) -> Result<Vec<LaneKey>, LedgerError> {
        let book = self.open()?;
        Ok(book.lanes.iter().filter(|(_, lane)| lane.open > 0).map(|(key, _)| key.clone()).collect())
    }

    async fn key_by_property(&self, lanes: Vec<LaneKey>) -> Result<(), LedgerError> {
        self.open()?.key_by_property(&lanes);
        Ok(())
    }

    async fn health(&self, lane: &LaneKey) -> Result<Option<String>, LedgerError> {
        Ok(self.open()?.lanes.get(lane).and_then(|lane| lane.health.clone()))
    }

    async fn holds(&self) -> Result<Vec<Hold>, LedgerError> {
        Ok(self.open()?.holds.values().cloned().collect())
    }

    async fn hold(&self, holds: Vec<Hold>) -> Result<(), LedgerError> {
        self.open()?.hold(holds);
        Ok(())
    }

    async fn lift(&self, scope: &Scope, cause: Option<HoldCause>) -> Result<Vec<Hold>, LedgerError> {
        Ok(self.open()?.lift(scope, cause))
    }

    async fn tallies(&self) -> Result<Tallies, LedgerError> {
        Ok(self.open()?.tallies())
    }

    async fn get(&self, correlation_id: &CorrelationId) -> Result<Option<Record>, LedgerError> {
        let book = self.open()?;
        Ok(book.find(correlation_id).map(|row| row.record.clone()))
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<MutationId>,
        limit: usize,
    ) -> Result<Vec<Record>, LedgerError> {
        Ok(self.open()?.list(filter, after, limit))
    }

    async fn replay(&self, ids: Vec<MutationId>, now: Timestamp) -> Result<Vec<Replay>, LedgerError> {
        let mut book = self.open()?;
        Ok(ids.into_iter().map(|id| book.replay(id, now)).collect())
    }

    async fn discard(&self, ids: Vec<MutationId>) -> Result<u64, LedgerError> {
        Ok(self.open()?.discard(&ids))
    }

    async fn cancel(&self, filter: &Filter, now: Timestamp) -> Result<Vec<CorrelationId>, LedgerError> {
        Ok(self.open()?.cancel(filter, now))
    }

    async fn counts(&self, ids: &[MutationId]) -> Result<Vec<(ChannelName, Counts)>, LedgerError> {
        Ok(self.open()?.counts(ids))
    }

    async fn past_calls(&self, since: Timestamp) -> Result<Vec<PastCall>, LedgerError> {
        Ok(self.open()?.past_calls(since))
    }

    async fn recover(&self, now: Timestamp, rest: Duration) -> Result<u64, LedgerError> {
        Ok(self.open()?.recover(now, rest))
    }

    async fn prune(&self, before: Timestamp, _retention: Duration) -> Result<u64, LedgerError> {
        Ok(self.open()?.prune(before))
    }

    async fn close(&self) -> Result<(), LedgerError> {
        self.book().closed = true;
        Ok(())
    }
}
