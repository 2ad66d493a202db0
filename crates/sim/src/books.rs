//! What the channel saw: counts, the fullest windows, arrivals, and what is true in its store.

mod cells;
mod worst;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::at::At;
use crate::config::Limit;

pub use cells::{CellBook, CellKey, InventoryBook};
pub(crate) use cells::{InventoryKey, Store};
pub(crate) use worst::Trailing;
pub use worst::Worst;

/// Everything counted up to one instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Books {
    /// When.
    pub at: At,
    /// All channels together.
    pub total: Tally,
    /// Each channel that was called.
    pub channels: BTreeMap<String, ChannelBooks>,
    /// Calls to no channel or no endpoint, answered 404.
    pub unrouted: u64,
    /// Arrivals kept in full.
    pub arrivals_kept: u64,
    /// Arrivals beyond the bound, only counted.
    pub arrivals_dropped: u64,
}

impl Books {
    /// Whether any limit saw more arrivals in one of its windows than it allows.
    pub fn is_over(&self) -> bool {
        self.channels.values().any(|channel| channel.limits.iter().any(|limit| limit.over))
    }

    /// The tally of one endpoint; empty if it was never called.
    pub fn endpoint(&self, channel: &str, endpoint: &str) -> Tally {
        let channel = self.channels.get(channel);
        channel.and_then(|channel| channel.endpoints.get(endpoint)).cloned().unwrap_or_default()
    }
}

/// One channel's counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChannelBooks {
    /// All endpoints together.
    pub total: Tally,
    /// Each endpoint that was called.
    pub endpoints: BTreeMap<String, Tally>,
    /// Each limit, also those that were in force before a change.
    pub limits: Vec<LimitBooks>,
}

/// Counts of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Calls that arrived. A refused connection is not one.
    pub received: u64,
    /// Calls that were applied; a replay is not.
    pub committed: u64,
    /// Calls refused by a limit.
    pub refused: u64,
    /// Calls over a limit that were slowed instead of refused.
    pub slowed: u64,
    /// Calls refused for their token.
    pub unauthorized: u64,
    /// Answers by status, also those that were cut or never read.
    pub statuses: BTreeMap<u16, u64>,
    /// Connections closed before the answer was whole.
    pub cuts: u64,
    /// Calls that were left without an answer.
    pub hangs: u64,
    /// Answers that were not HTTP.
    pub garbage: u64,
    /// Connections refused.
    pub connections_refused: u64,
    /// Calls applied whose caller was not told.
    pub lost_answers: u64,
    /// Calls whose caller went away before the answer was due.
    pub gone: u64,
    /// Calls whose form was wrong.
    pub malformed: u64,
    /// What was wrong with the first of them.
    pub malformed_texts: Vec<String>,
    /// Calls sent into a pause that a `Retry-After` had asked for.
    pub into_pause: u64,
    /// Calls that came so soon after such an answer that they were on their way.
    pub into_pause_grace: u64,
    /// Answers given again for a known idempotency key.
    pub replays: u64,
    /// Known idempotency keys that came with other content.
    pub key_conflicts: u64,
    /// Calls in flight now.
    pub in_flight: u64,
    /// The most calls in flight at once.
    pub in_flight_peak: u64,
    /// Calls for a cell of which another was in flight.
    pub cell_overlaps: u64,
    /// Rate or availability calls for a property, room and date of which another was in flight.
    pub inventory_overlaps: u64,
}

/// How many texts of malformed calls are kept.
const TEXTS: usize = 10;

impl Tally {
    /// Adds a call that has come in, given as the counts that it raises.
    pub(crate) fn enter(&mut self, call: &Self) {
        self.received += call.received;
        self.committed += call.committed;
        self.refused += call.refused;
        self.slowed += call.slowed;
        self.unauthorized += call.unauthorized;
        for (status, calls) in &call.statuses {
            *self.statuses.entry(*status).or_default() += calls;
        }
        self.cuts += call.cuts;
        self.hangs += call.hangs;
        self.garbage += call.garbage;
        self.lost_answers += call.lost_answers;
        for text in &call.malformed_texts {
            self.malformed(text);
        }
        self.into_pause += call.into_pause;
        self.into_pause_grace += call.into_pause_grace;
        self.replays += call.replays;
        self.key_conflicts += call.key_conflicts;
        self.cell_overlaps += call.cell_overlaps;
        self.inventory_overlaps += call.inventory_overlaps;
        self.in_flight += 1;
        self.in_flight_peak = self.in_flight_peak.max(self.in_flight);
    }

    fn malformed(&mut self, text: &str) {
        self.malformed += 1;
        if self.malformed_texts.len() < TEXTS {
            self.malformed_texts.push(text.to_owned());
        }
    }
}

/// What the books say of one limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitBooks {
    /// Its name, or its place.
    pub name: String,
    /// Its endpoint; without one it is the channel's.
    pub endpoint: Option<String>,
    /// What was enforced.
    pub limit: Limit,
    /// The most calls that one of its windows may hold; of a bucket `burst + rate`.
    pub max: u64,
    /// From when it was in force.
    pub since: At,
    /// Until when, if a change replaced it.
    pub until: Option<At>,
    /// Calls admitted.
    pub admitted: u64,
    /// Calls over it, refused or slowed.
    pub refused: u64,
    /// Whether more calls arrived in one window than `max`.
    pub over: bool,
    /// The fullest trailing window of its length; of a concurrency limit the most calls in flight.
    pub worst_window: Window,
    /// The fullest window of the clock, of a fixed window.
    pub worst_clock_window: Option<Window>,
}

/// The fullest windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Counting admitted calls.
    pub admitted: Worst,
    /// Counting all that arrived.
    pub arrivals: Worst,
    /// Whose arrivals, where the limit counts by property.
    pub property: Option<String>,
}

impl Window {
    pub(crate) fn raise(&mut self, other: &Self, property: &str) {
        if other.admitted.calls > self.admitted.calls {
            self.admitted = other.admitted.clone();
        }
        if other.arrivals.calls > self.arrivals.calls {
            self.arrivals = other.arrivals.clone();
            self.property = (!property.is_empty()).then(|| property.to_owned());
        }
    }
}

/// One call as it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Arrival {
    /// When.
    pub at: At,
    /// How long until its answer was due.
    #[serde(rename = "delay_us", serialize_with = "as_micros")]
    pub delay: Duration,
    /// The channel.
    pub channel: Arc<str>,
    /// The endpoint.
    pub endpoint: Arc<str>,
    /// The property, if the body names one.
    pub property: Option<Arc<str>>,
    /// The cell, if the body is well formed.
    pub cell: Option<Arc<CellKey>>,
    /// The body's correlation id.
    pub correlation_id: Option<Box<str>>,
    /// The idempotency key.
    pub idempotency_key: Option<Box<str>>,
    /// The status of the answer, if one was begun.
    pub status: Option<u16>,
    /// Whether it was applied.
    pub applied: bool,
    /// Whether it was sent into a pause.
    pub into_pause: bool,
    /// Its ticket.
    pub ticket: u64,
}

fn as_micros<S: serde::Serializer>(length: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(crate::at::micros(*length))
}
