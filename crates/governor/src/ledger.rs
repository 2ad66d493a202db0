//! The ledger seam: the durable record of every mutation and what became of it.
//!
//! A store receives a whole decision and makes it atomic; the decisions themselves are pure and live
//! in `ota_governor_core::order`. Every method that changes something returns only when the change
//! would survive a power cut (memory excepted). At every moment `accepted` equals the sum of all
//! states plus what was pruned and discarded.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
mod record;
pub mod sqlite;

use std::time::Duration;

pub use record::{Counts, Filter, PastCall, Record, Replay, Tallies, Tally};

use async_trait::async_trait;
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::mutation::{Mutation, Priority};
use ota_governor_core::name::{ChannelName, CorrelationId, PropertyId};
use ota_governor_core::state::{DeadReason, DeferReason, State};
use ota_governor_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// A mutation's place in the order of acceptance; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MutationId(pub i64);

/// What could not be done, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another process dispatches from this ledger.
    #[error("the ledger {ledger} is in use by {holder}")]
    InUse {
        /// The ledger.
        ledger: String,
        /// Who holds it.
        holder: String,
    },
    /// The store cannot be opened or is not a ledger this version can read.
    #[error("opening the ledger {ledger}: {rule}")]
    Unusable {
        /// The ledger.
        ledger: String,
        /// What is wrong with it and what to do.
        rule: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The store failed this call (disk full, locked, away); nothing of it was done. Try again later.
    #[error("the ledger could not {doing}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store is closed.
    #[error("the ledger is closed")]
    Closed,
}

/// A mutation to accept.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The mutation.
    pub mutation: Mutation,
    /// How its idempotency key is made.
    pub recipe: Recipe,
    /// When it stops being worth sending: the earlier of `expires_at` and the end of its stay date.
    pub expires: Option<Timestamp>,
}

/// What became of an [`Entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Stored; it will be sent unless something newer takes its place.
    Accepted {
        /// Its id.
        id: MutationId,
        /// The revision of its cell that it is.
        revision: u64,
        /// The older ones that it superseded.
        superseded: Vec<CorrelationId>,
    },
    /// The same id with the same content was accepted before.
    Known {
        /// Its id.
        id: MutationId,
        /// Where it stands.
        state: State,
    },
    /// The same id was accepted before with other content; nothing was stored.
    Conflict,
    /// Its `sequence` is lower than the cell's last; nothing was stored.
    Stale {
        /// The cell's last sequence.
        last: u64,
    },
}

/// A request for mutations to send now.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The lane.
    pub lane: LaneKey,
    /// Now.
    pub now: Timestamp,
    /// One entry per permit in hand: the property it was granted for, or any.
    pub picks: Vec<Option<PropertyId>>,
}

/// A mutation claimed: its intent to be sent is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: MutationId,
    /// The mutation, with the priority it inherited and the inventory it was rewritten to.
    pub mutation: Mutation,
    /// Its idempotency key.
    pub idempotency_key: String,
    /// Attempts counted before this one.
    pub attempts: u32,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Which of the claim's picks it answers.
    pub pick: usize,
}

/// A mutation that passed its time before a permit came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// Its id.
    pub id: MutationId,
    /// The mutation.
    pub mutation: Mutation,
    /// The value it had replaced, named in its dead letter.
    pub replaced: Option<CorrelationId>,
}

/// What a claim brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The mutations to send, most urgent first.
    pub jobs: Vec<Job>,
    /// Those dead-lettered as `expired` on the way.
    pub expired: Vec<Expired>,
    /// What waits now.
    pub head: Head,
}

/// What waits in a lane: enough to decide what to ask the limiter for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The most urgent priority that may go now; `None` when nothing may.
    pub priority: Option<Priority>,
    /// How many may go now, counted up to a bound of 1,000.
    pub ready: usize,
    /// When the next parked one is due.
    pub due: Option<Timestamp>,
    /// For lanes keyed by property: up to 64 distinct properties in order of urgency. Else empty.
    pub properties: Vec<PropertyId>,
}

/// One request that was sent, or at least begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When its answer came, or when it was given up.
    pub answered_at: Timestamp,
    /// The status answered, if any.
    pub status: Option<u16>,
    /// The beginning of the answer, or what failed.
    pub answer: Option<String>,
    /// `Retry-After` as it was sent.
    pub retry_after: Option<String>,
    /// Whether it counts against the mutation's attempts.
    pub counted: bool,
}

/// What is to become of a mutation whose request has been answered or given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The channel took it.
    Committed {
        /// The channel's confirmation, or `accepted`.
        confirmation_id: String,
    },
    /// Parked.
    Deferred {
        /// Why.
        reason: DeferReason,
        /// Until when.
        due: Timestamp,
    },
    /// Given up.
    DeadLettered {
        /// Why.
        reason: DeadReason,
    },
    /// Nothing was sent; back to where it stood.
    Returned,
}

/// The outcome of one claimed mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The mutation.
    pub id: MutationId,
    /// The request made; `None` if nothing was sent.
    pub attempt: Option<Attempt>,
    /// What the answer means. If a newer value of the cell waits, anything but a commit makes it superseded.
    pub disposition: Disposition,
    /// The cell rests until then before another value goes (after an unknown outcome).
    pub rest_until: Option<Timestamp>,
}

/// Outcomes and the lane state that goes with them, written in one transaction.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The lane.
    pub lane: LaneKey,
    /// Now.
    pub now: Timestamp,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
    /// The lane's health to keep, as JSON, if it changed.
    pub health: Option<String>,
    /// Holds to put in place.
    pub holds: Vec<Hold>,
    /// Holds to lift: scope and cause.
    pub lifted: Vec<(Scope, HoldCause)>,
}

/// What a mutation settled as: as disposed, or superseded by a newer one that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The mutation.
    pub id: MutationId,
    /// Its state now.
    pub state: State,
}

/// Why something is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldCause {
    /// The channel asked for a pause (429, or `Retry-After` with a 5xx).
    Throttled,
    /// The breaker is open.
    Breaker,
    /// A token refresh is under way.
    TokenRefresh,
    /// The account's token is refused.
    AccountSuspended,
    /// Too many equal refusals.
    LaneSuspended,
    /// Paused by hand.
    Manual,
}

/// A pause, breaker or suspension; at most one per scope and cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What it holds.
    pub scope: Scope,
    /// Why.
    pub cause: HoldCause,
    /// Since when.
    pub since: Timestamp,
    /// Until when; `None` until it is lifted.
    pub until: Option<Timestamp>,
    /// In words, for people: `429 with Retry-After 30`, `paused by hand by root@host`.
    pub detail: String,
}

/// The durable record of every mutation. One dispatcher at a time uses `claim` and `settle`.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug {
    /// The ledger's own id, made when it was created: 32 hex digits.
    fn id(&self) -> &str;

    /// Accepts mutations in order. All answers are durable on return.
    ///
    /// A name is known or in conflict by [`content_hash`](ota_governor_core::idempotency::content_hash) of
    /// what was first handed in, whatever it inherited since, for as long as its mutation is on record. A
    /// `sequence` equal to the cell's last is accepted, one without leaves the cell's last as it is.
    ///
    /// # Cancel safety
    /// Dropped, the group may or may not have been accepted; asking again with the same ids tells.
    async fn enqueue(&self, entries: Vec<Entry>, now: Timestamp) -> Result<Vec<Admission>, LedgerError>;

    /// Takes the most urgent mutations that may go now, one per pick, and records the intent to send
    /// them before it returns. Parked ones whose time has come take part; expired ones (`expires <= now`)
    /// are dead-lettered, at most 1,000 in one call, and cost no pick. A pick that finds nothing is left
    /// out. Jobs come by priority, equal ones in the order of their picks.
    async fn claim(&self, claim: Claim) -> Result<Claimed, LedgerError>;

    /// What waits in a lane. Parked ones whose time has come count as ready.
    async fn head(&self, lane: &LaneKey, now: Timestamp) -> Result<Head, LedgerError>;

    /// Writes outcomes with the lane's state.
    ///
    /// An outcome of a mutation that is not in flight changes nothing and is answered with its state; one
    /// of a mutation not on record is left out of the answer. A newer value that supersedes the settled one
    /// takes over its place and urgency as at acceptance. A rate that goes back takes the inventory of the
    /// newest availability accepted since.
    async fn settle(&self, settlement: Settlement) -> Result<Vec<Settled>, LedgerError>;

    /// A mark that moves whenever this lane gets work or a hold changes, by this or another process. Work is
    /// also what becomes free by a settlement or a cancel in another lane, and a new due time.
    /// Register (`borrow_and_update`) before the look.
    fn changes(&self, lane: &LaneKey) -> watch::Receiver<u64>;

    /// A mark that moves when a lane gets its first open mutation, a hold is changed, or another process
    /// changed anything.
    fn lane_changes(&self) -> watch::Receiver<u64>;

    /// The lanes with open mutations.
    async fn lanes(&self) -> Result<Vec<LaneKey>, LedgerError>;

    /// Marks exactly these lanes as keyed by property: their heads list properties.
    async fn key_by_property(&self, lanes: Vec<LaneKey>) -> Result<(), LedgerError>;

    /// The health kept for a lane, as JSON.
    async fn health(&self, lane: &LaneKey) -> Result<Option<String>, LedgerError>;

    /// Every hold in place.
    async fn holds(&self) -> Result<Vec<Hold>, LedgerError>;

    /// Puts holds in place.
    async fn hold(&self, holds: Vec<Hold>) -> Result<(), LedgerError>;

    /// Lifts the holds of this scope, all causes or one. Returns those lifted.
    async fn lift(&self, scope: &Scope, cause: Option<HoldCause>) -> Result<Vec<Hold>, LedgerError>;

    /// All counts.
    async fn tallies(&self) -> Result<Tallies, LedgerError>;

    /// One mutation with its history.
    async fn get(&self, correlation_id: &CorrelationId) -> Result<Option<Record>, LedgerError>;

    /// Mutations after the cursor in order of acceptance, without history.
    async fn list(
        &self,
        filter: &Filter,
        after: Option<MutationId>,
        limit: usize,
    ) -> Result<Vec<Record>, LedgerError>;

    /// Puts dead letters back in the queue at the place they had, attempts anew, history and key kept.
    ///
    /// Refused if a value that is newer and was not cancelled would be overwritten, on record or not: one
    /// of its cell (of a restriction: one that shares a field), and for an availability also a newer rate
    /// or availability of the same stock. A replayed rate takes the newest inventory, and then a new key.
    /// One that is open already is answered `Queued`; one that is no dead letter, or is not on record, as
    /// `Newer`.
    async fn replay(&self, ids: Vec<MutationId>, now: Timestamp) -> Result<Vec<Replay>, LedgerError>;

    /// Removes dead letters for good; returns how many there were.
    async fn discard(&self, ids: Vec<MutationId>) -> Result<u64, LedgerError>;

    /// Takes back what is not in flight and not final; returns the ids taken back, oldest first.
    ///
    /// What those had passed on already (a place, urgency, an availability's inventory) stays passed on.
    async fn cancel(&self, filter: &Filter, now: Timestamp) -> Result<Vec<CorrelationId>, LedgerError>;

    /// Counts of these mutations, per channel.
    async fn counts(&self, ids: &[MutationId]) -> Result<Vec<(ChannelName, Counts)>, LedgerError>;

    /// Calls that were sent at or after `since`, and all still in flight when the process before died, in
    /// the order sent. Calls outlive the record of a dead letter that was discarded.
    async fn past_calls(&self, since: Timestamp) -> Result<Vec<PastCall>, LedgerError>;

    /// At start: mutations left in flight by a dead process are due at `now` again, as of unknown outcome,
    /// or superseded if a newer value of the cell waits. Returns how many there were.
    ///
    /// Each gets a request on its history that was given up at `now` and is not counted as an attempt.
    /// Their cells rest until sent + `rest`: the time after which no lane's request can still arrive.
    async fn recover(&self, now: Timestamp, rest: Duration) -> Result<u64, LedgerError>;

    /// Removes finished rows whose state changed before `before`, and cells whose stay date is before it.
    /// Bounded work per call (2,000 rows); returns how many went. The highest id that left a cell's record
    /// is kept with the cell, so that a replay is still refused for it.
    async fn prune(&self, before: Timestamp, retention: Duration) -> Result<u64, LedgerError>;

    /// Waits until everything handed in is on disk, then lets go of the store.
    async fn close(&self) -> Result<(), LedgerError>;
}
