//! The ledger in a `SQLite` file.
//!
//! One thread writes and commits what has gathered ([`writer`]); two read. Every answer of a change is
//! given after the commit that holds it is on disk. One process at a time dispatches from a file
//! ([`lock`]); others may look, pause, cancel and replay beside it, in short transactions, and their
//! changes move the marks of the dispatcher within a second.

mod accept;
mod cell;
mod change;
mod claim;
mod code;
mod digest;
mod fault;
mod filter;
mod frame;
mod group;
mod head;
mod hold;
mod keep;
mod lock;
mod marks;
mod read;
mod reader;
mod row;
mod schema;
mod settle;
#[cfg(test)]
mod tests;
mod tx;
mod value;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::name::{ChannelName, CorrelationId};
use ota_governor_core::time::Timestamp;
use tokio::sync::watch;

use self::frame::Frame;
use self::lock::DispatcherLock;
use self::marks::Marks;
use self::reader::Reader;
use self::writer::{Desk, Writer};
use super::{
    Admission, Claim, Claimed, Counts, Entry, Filter, Head, Hold, HoldCause, Ledger, LedgerError, MutationId,
    PastCall, Record, Replay, Settled, Settlement, Tallies,
};
use crate::clock::Clock;

/// How a ledger file is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Whether to dispatch from it: one process at a time may.
    pub dispatcher: bool,
    /// The clock that dates a new ledger and the dispatcher's lock.
    pub clock: Clock,
}

/// The durable ledger of one machine: a `SQLite` file.
///
/// Dropped, it waits until what was handed in is on disk; [`Ledger::close`] does the same without
/// blocking the runtime.
///
/// ```
/// use ota_governor::clock::Clock;
/// use ota_governor::ledger::Ledger;
/// use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dir = tempfile::tempdir()?;
/// let options = OpenOptions { dispatcher: true, clock: Clock::system() };
/// let ledger = SqliteLedger::open(&dir.path().join("governor.db"), options)?;
/// assert_eq!(ledger.tallies().await?.accepted, 0);
/// ledger.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SqliteLedger {
    id: String,
    path: PathBuf,
    dispatcher: bool,
    marks: Arc<Marks>,
    // Dropped before the writer, so that the writer's connection is the last and tidies up the file.
    dispatch: Reader,
    people: Reader,
    writer: Writer,
}

impl SqliteLedger {
    /// Opens the ledger in this file; makes one if there is none.
    ///
    /// Reads a handful of rows, however many the ledger holds.
    ///
    /// # Errors
    /// [`LedgerError::InUse`] if another process dispatches from it and this one is to as well;
    /// [`LedgerError::Unusable`] if the file or its directory cannot be used, with what to do.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Arc<Self>, LedgerError> {
        let OpenOptions { dispatcher, clock } = options;
        let lock = if dispatcher { Some(DispatcherLock::take(path, &clock)?) } else { None };
        let (mut conn, id) = schema::open_writer(path, clock.wall())?;
        if let Some(frame) = dispatcher.then(|| Frame::read(&clock)).flatten() {
            frame.align(&mut conn, clock.now()).map_err(|e| schema::unusable(path, e))?;
        }
        let marks = Arc::new(Marks::new());
        let desk =
            Desk { conn, ledger_id: id.clone(), path: path.to_owned(), marks: Arc::clone(&marks), lock };
        let writer = Writer::start(desk)
            .map_err(|e| LedgerError::Failed { doing: "start its writer", source: Box::new(e) })?;
        let dispatch = Reader::start(path)?;
        let people = Reader::start(path)?;
        Ok(Arc::new(Self { id, path: path.to_owned(), dispatcher, marks, dispatch, people, writer }))
    }

    /// Only the holder of the lock may put mutations in flight, or call those in flight lost.
    fn dispatches(&self) -> Result<(), LedgerError> {
        if self.dispatcher {
            return Ok(());
        }
        Err(LedgerError::Unusable {
            ledger: self.path.display().to_string(),
            rule: "only the dispatcher may send from it, and this process opened it to look".to_owned(),
            source: None,
        })
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    fn id(&self) -> &str {
        &self.id
    }

    async fn enqueue(&self, entries: Vec<Entry>, now: Timestamp) -> Result<Vec<Admission>, LedgerError> {
        // Digests and JSON are made here, so that the writer's thread only writes.
        let entries = accept::prepare(entries, &self.id).map_err(|fault| fault.failed("accept mutations"))?;
        let rows = entries.len();
        self.writer.run("accept mutations", rows, move |tx| accept::run(tx, &entries, now)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, LedgerError> {
        self.dispatches()?;
        self.writer.run("claim mutations", claim.picks.len(), move |tx| claim::run(tx, &claim)).await
    }

    async fn head(&self, lane: &LaneKey, now: Timestamp) -> Result<Head, LedgerError> {
        let doing = "look at a lane";
        let key = lane.clone();
        let look = self.dispatch.run(doing, move |conn| head::look(conn, &key, now)).await?;
        if !look.overdue {
            return Ok(look.head);
        }
        let key = lane.clone();
        self.writer
            .run(doing, 1, move |tx| {
                let lane = tx.lane(&key)?;
                head::promote(tx, lane.id, now)?;
                Ok(head::of(tx.conn(), lane.id, lane.keyed, now)?.head)
            })
            .await
    }

    async fn settle(&self, settlement: Settlement) -> Result<Vec<Settled>, LedgerError> {
        self.dispatches()?;
        let rows = settlement.outcomes.len();
        self.writer.run("settle mutations", rows, move |tx| settle::run(tx, &settlement)).await
    }

    fn changes(&self, lane: &LaneKey) -> watch::Receiver<u64> {
        self.marks.lane(lane)
    }

    fn lane_changes(&self) -> watch::Receiver<u64> {
        self.marks.set()
    }

    async fn lanes(&self) -> Result<Vec<LaneKey>, LedgerError> {
        self.dispatch.run("list the lanes", read::lanes).await
    }

    async fn key_by_property(&self, lanes: Vec<LaneKey>) -> Result<(), LedgerError> {
        self.writer.run("key lanes by property", 1, move |tx| keep::key_by_property(tx, &lanes)).await
    }

    async fn health(&self, lane: &LaneKey) -> Result<Option<String>, LedgerError> {
        let lane = lane.clone();
        self.dispatch.run("read a lane's health", move |conn| hold::health(conn, &lane)).await
    }

    async fn holds(&self) -> Result<Vec<Hold>, LedgerError> {
        self.dispatch.run("list the holds", hold::all).await
    }

    async fn hold(&self, holds: Vec<Hold>) -> Result<(), LedgerError> {
        self.writer.run("put holds in place", holds.len(), move |tx| hold::put(tx, &holds)).await
    }

    async fn lift(&self, scope: &Scope, cause: Option<HoldCause>) -> Result<Vec<Hold>, LedgerError> {
        let scope = scope.clone();
        self.writer.run("lift holds", 1, move |tx| hold::lift(tx, &scope, cause)).await
    }

    async fn tallies(&self) -> Result<Tallies, LedgerError> {
        self.people.run("count its mutations", read::tallies).await
    }

    async fn get(&self, correlation_id: &CorrelationId) -> Result<Option<Record>, LedgerError> {
        let id = correlation_id.clone();
        self.people.run("read a mutation", move |conn| read::get(conn, &id)).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<MutationId>,
        limit: usize,
    ) -> Result<Vec<Record>, LedgerError> {
        let filter = filter.clone();
        self.people.run("list mutations", move |conn| read::list(conn, &filter, after, limit)).await
    }

    async fn replay(&self, ids: Vec<MutationId>, now: Timestamp) -> Result<Vec<Replay>, LedgerError> {
        self.writer.run("replay dead letters", ids.len(), move |tx| change::replay(tx, &ids, now)).await
    }

    async fn discard(&self, ids: Vec<MutationId>) -> Result<u64, LedgerError> {
        self.writer.run("discard dead letters", ids.len(), move |tx| change::discard(tx, &ids)).await
    }

    async fn cancel(&self, filter: &Filter, now: Timestamp) -> Result<Vec<CorrelationId>, LedgerError> {
        let filter = filter.clone();
        self.writer.run("cancel mutations", 1_000, move |tx| change::cancel(tx, &filter, now)).await
    }

    async fn counts(&self, ids: &[MutationId]) -> Result<Vec<(ChannelName, Counts)>, LedgerError> {
        let ids = ids.to_vec();
        self.people.run("count mutations", move |conn| read::counts(conn, &ids)).await
    }

    async fn past_calls(&self, since: Timestamp) -> Result<Vec<PastCall>, LedgerError> {
        self.people.run("read earlier calls", move |conn| read::past_calls(conn, since)).await
    }

    async fn recover(&self, now: Timestamp, rest: Duration) -> Result<u64, LedgerError> {
        self.dispatches()?;
        self.writer.run("recover mutations in flight", 1_000, move |tx| keep::recover(tx, now, rest)).await
    }

    async fn prune(&self, before: Timestamp, retention: Duration) -> Result<u64, LedgerError> {
        self.writer.run("prune finished rows", 1_000, move |tx| keep::prune(tx, before, retention)).await
    }

    async fn close(&self) -> Result<(), LedgerError> {
        let threads = [self.dispatch.close(), self.people.close(), self.writer.close()];
        let ended = tokio::task::spawn_blocking(move || {
            threads
                .into_iter()
                .flatten()
                .try_for_each(|thread| thread.join().map_err(|_| LedgerError::Closed))
        });
        ended.await.map_err(|_| LedgerError::Closed)?
    }
}
