//! The simulated OTA itself, pure in time: whoever drives it says what time it is.

mod answer;
mod auth;
mod channel;
mod commit;
mod desk;
mod receive;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;

use crate::at::At;
use crate::books::{Arrival, Books, CellBook, CellKey, InventoryBook, InventoryKey};
use crate::call::Call;
use crate::config::{Config, ConfigError, OutageKind, Patch};
use crate::reaction::{Reaction, Ticket};

use state::State;

/// A simulated OTA.
///
/// It may be shared between threads. Time never goes back in it: an instant before the latest one it was
/// given counts as that one, so that calls count in the order in which they come. Whoever drives it in
/// virtual time has to hand it arrivals and ends in the order of their time.
#[derive(Debug)]
pub struct Ota {
    state: Mutex<State>,
    changed: Notify,
}

impl Ota {
    /// An OTA at its start, [`At::ZERO`].
    pub fn new(config: Config) -> Self {
        Self { state: Mutex::new(State::new(config)), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong: each is written whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call that has arrived at `now`.
    ///
    /// Its [`ticket`](Reaction::ticket) must be given to [`finish`](Self::finish) once the answer has left
    /// (at `now` + [`delay`](Reaction::delay)) or its caller has gone away; until then it is in flight.
    pub fn receive(&self, now: At, call: &Call) -> Reaction {
        self.state().receive(now, call)
    }

    /// The answer has left, or its caller has gone away. A ticket that is not in flight is ignored.
    pub fn finish(&self, now: At, ticket: Ticket) {
        self.state().finish(now, ticket, false);
    }

    /// The caller has gone away before the answer was whole, although it was due.
    pub fn abandon(&self, now: At, ticket: Ticket) {
        self.state().finish(now, ticket, true);
    }

    /// The latest instant it was given.
    pub fn now(&self) -> At {
        self.state().now()
    }

    /// The books up to `now`.
    pub fn books(&self, now: At) -> Books {
        self.state().books(now)
    }

    /// The arrivals kept, in their order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.state().arrivals.clone()
    }

    /// Every cell that was ever set, sorted.
    pub fn cells(&self) -> Vec<CellBook> {
        self.state().store.cells()
    }

    /// One cell, if it was ever set.
    pub fn cell(&self, key: &CellKey) -> Option<CellBook> {
        self.state().store.cell(key).cloned()
    }

    /// Every statement about rooms left that is in force, sorted.
    pub fn inventory(&self) -> Vec<InventoryBook> {
        self.state().store.inventory()
    }

    /// The rooms left in a cell's room on its date for its plan, whoever set them last.
    pub fn rooms(&self, cell: &CellKey) -> Option<u64> {
        self.state().store.rooms(&InventoryKey::from(cell), cell.rate_plan_code.as_deref())
    }

    /// The configuration in force.
    pub fn config(&self) -> Config {
        self.state().config.clone()
    }

    /// Changes a channel from `now` on.
    ///
    /// # Errors
    /// If there is no such channel; nothing is changed then.
    pub fn patch(&self, now: At, channel: &str, patch: &Patch) -> Result<(), ConfigError> {
        let done = self.state().patch(now, channel, patch);
        self.changed.notify_waiters();
        done
    }

    /// Changes a channel from `now` on, by a table as in a configuration's `[[changes]]`.
    ///
    /// # Errors
    /// With every fault of the table; nothing is changed then.
    pub fn patch_json(&self, now: At, channel: &str, table: &Value) -> Result<(), ConfigError> {
        let done = self.state().patch_json(now, channel, table);
        self.changed.notify_waiters();
        done
    }

    /// Takes a channel, or with `None` all of them, away from `now` on.
    pub fn outage(&self, now: At, channel: Option<&str>, kind: OutageKind, lasts: Duration) {
        self.state().outage(now, channel, kind, lasts);
        self.changed.notify_waiters();
    }

    /// Makes a channel refuse the token it accepts now and accept `token` instead, or without one the next
    /// of its list, or where any is accepted any other. Returns what is accepted now, if that is one token.
    ///
    /// # Errors
    /// If there is no such channel.
    pub fn rotate_token(
        &self,
        now: At,
        channel: &str,
        token: Option<&str>,
    ) -> Result<Option<String>, ConfigError> {
        self.state().rotate_token(now, channel, token)
    }

    /// Forgets everything seen and counted, the keys and outages given at run time included; the
    /// configuration in force stays, and so does the time.
    pub fn reset(&self, now: At) {
        self.state().reset(now);
        self.changed.notify_waiters();
    }

    /// Whether connections are accepted at all at `now`, and when that may change by itself.
    pub(crate) fn listening(&self, now: At) -> (bool, Option<At>) {
        self.state().listening(now)
    }

    /// Waits for a change that may bear on [`listening`](Self::listening).
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Puts the wall clock behind the present instant, unless it is configured.
    pub(crate) fn set_wall(&self, wall: jiff::Timestamp) {
        self.state().set_wall(wall);
    }
}
