//! What a ledger tells of its mutations: records, counts, filters, past calls.

use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::{Kind, Mutation, Priority};
use ota_governor_core::name::{AccountName, BatchName, ChannelName, CorrelationId, PropertyId};
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;
use serde::Serialize;

use super::{Attempt, MutationId};

/// A row of the tally: how many mutations of a lane and priority stand where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The lane.
    pub lane: LaneKey,
    /// The state.
    pub state: State,
    /// The priority.
    pub priority: Priority,
    /// How many.
    pub count: u64,
}

/// All counts of a ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tallies {
    /// Per lane, state and priority.
    pub rows: Vec<Tally>,
    /// Ever accepted.
    pub accepted: u64,
    /// Finished rows removed after retention.
    pub pruned: u64,
    /// Dead letters discarded.
    pub discarded: u64,
}

/// Everything the ledger knows of one mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: MutationId,
    /// The mutation, with inherited priority and rewritten inventory.
    pub mutation: Mutation,
    /// Where it stands.
    pub state: State,
    /// The revision of its cell.
    pub revision: u64,
    /// Its idempotency key.
    pub idempotency_key: String,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When its state last changed.
    pub changed_at: Timestamp,
    /// When it may go, if it is parked or its cell rests; once that has passed it may be absent.
    pub due: Option<Timestamp>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// Why it is parked or dead, or was last parked: the word of
    /// [`DeferReason`](ota_governor_core::state::DeferReason) or [`DeadReason`](ota_governor_core::state::DeadReason).
    pub reason: Option<String>,
    /// Attempts counted.
    pub attempts: u32,
    /// Requests sent.
    pub requests: u32,
    /// How many of them were answered 429.
    pub throttled: u32,
    /// The last status answered; a request without an answer leaves it.
    pub last_status: Option<u16>,
    /// The beginning of the last answer, or what failed last.
    pub last_answer: Option<String>,
    /// The channel's confirmation.
    pub confirmation_id: Option<String>,
    /// What superseded it.
    pub superseded_by: Option<CorrelationId>,
    /// The newest value that it replaced, when it was accepted or when that one failed.
    pub replaced: Option<CorrelationId>,
    /// The open mutation of the same stock that must settle first, if any.
    pub behind: Option<CorrelationId>,
    /// Its requests, oldest first.
    pub history: Vec<Attempt>,
}

/// Which mutations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// With this id.
    pub correlation_id: Option<CorrelationId>,
    /// Of this batch.
    pub batch: Option<BatchName>,
    /// In this state.
    pub state: Option<State>,
    /// On this channel.
    pub ota: Option<ChannelName>,
    /// Of this account.
    pub account: Option<AccountName>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Of this property.
    pub property_id: Option<PropertyId>,
    /// With this reason.
    pub reason: Option<String>,
    /// Whose state changed at or after this.
    pub changed_since: Option<Timestamp>,
}

/// What became of a dead letter that was to be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// Queued again.
    Queued,
    /// Refused: a newer value of its cell exists.
    Newer {
        /// That value's mutation, if it is still on record.
        by: Option<CorrelationId>,
    },
}

/// A call made earlier that still counts against limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// The lane.
    pub lane: LaneKey,
    /// The property.
    pub property: PropertyId,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When it was answered; `None`: never known, it counts until the restart.
    pub answered_at: Option<Timestamp>,
}

/// Counts of a set of mutations, for a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Per state, in the order of [`State::ALL`].
    pub states: [u64; 7],
    /// Requests sent.
    pub requests: u64,
    /// Of those, answered 429.
    pub throttled: u64,
}
