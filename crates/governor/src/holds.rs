//! The holds in force: pauses, breakers and suspensions, as this process knows them.
//!
//! A hold binds from the moment its answer is read, before the ledger has written it: until then it is
//! pending here, and a re-read of the ledger does not lose it.

use std::sync::{Arc, Mutex, PoisonError};

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;

use crate::ledger::{Hold, HoldCause};
use crate::limiter::Limiter;

/// The holds in force, handed on to the limiter.
#[derive(Debug)]
pub(crate) struct Holds {
    limiter: Arc<dyn Limiter>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stored: Vec<Hold>,
    pending: Vec<Hold>,
    lifting: Vec<(Scope, HoldCause)>,
}

impl Inner {
    fn in_force(&self) -> Vec<Hold> {
        let replaced = |hold: &Hold| {
            self.pending.iter().any(|new| new.scope == hold.scope && new.cause == hold.cause)
                || self.lifting.iter().any(|(scope, cause)| *scope == hold.scope && *cause == hold.cause)
        };
        self.stored.iter().filter(|hold| !replaced(hold)).chain(&self.pending).cloned().collect()
    }
}

impl Holds {
    /// No holds yet.
    pub(crate) fn new(limiter: Arc<dyn Limiter>) -> Self {
        Self { limiter, inner: Mutex::new(Inner::default()) }
    }

    /// Puts holds in force at once; they stay pending until [`Self::stored`].
    pub(crate) fn put(&self, holds: &[Hold]) {
        self.change(|inner| {
            for hold in holds {
                inner.lifting.retain(|(scope, cause)| *scope != hold.scope || *cause != hold.cause);
                inner.pending.retain(|old| old.scope != hold.scope || old.cause != hold.cause);
                inner.pending.push(hold.clone());
            }
        });
    }

    /// Lifts holds at once; they stay lifted over re-reads until [`Self::stored`].
    pub(crate) fn lift(&self, lifted: &[(Scope, HoldCause)]) {
        self.change(|inner| {
            for (scope, cause) in lifted {
                inner.pending.retain(|old| old.scope != *scope || old.cause != *cause);
            }
            inner.lifting.extend_from_slice(lifted);
        });
    }

    /// These changes are in the ledger now.
    pub(crate) fn stored(&self, holds: &[Hold], lifted: &[(Scope, HoldCause)]) {
        self.change(|inner| {
            for hold in holds {
                inner.stored.retain(|old| old.scope != hold.scope || old.cause != hold.cause);
                inner.stored.push(hold.clone());
                inner.pending.retain(|old| old != hold);
            }
            for (scope, cause) in lifted {
                inner.stored.retain(|old| old.scope != *scope || old.cause != *cause);
                if let Some(at) = inner.lifting.iter().position(|(s, c)| s == scope && c == cause) {
                    inner.lifting.remove(at);
                }
            }
        });
    }

    /// Takes over what the ledger holds.
    pub(crate) fn reload(&self, stored: Vec<Hold>) {
        self.change(|inner| inner.stored = stored);
    }

    /// The holds that bind this lane as a whole now, the longest last.
    pub(crate) fn of(&self, lane: &LaneKey, now: Timestamp) -> Vec<Hold> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut holds = inner.in_force();
        holds.retain(|hold| hold.scope.covers(lane, None) && hold.until.is_none_or(|until| until > now));
        holds.sort_by_key(|hold| hold.until.unwrap_or(Timestamp::MAX));
        holds
    }

    /// Whether a call of this lane for this property is held now.
    pub(crate) fn binds(&self, lane: &LaneKey, property: &PropertyId, now: Timestamp) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .in_force()
            .iter()
            .any(|hold| hold.scope.covers(lane, Some(property)) && hold.until.is_none_or(|until| until > now))
    }

    /// Whether a hold of this scope and cause is in force.
    pub(crate) fn has(&self, scope: &Scope, cause: HoldCause) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.in_force().iter().any(|hold| hold.scope == *scope && hold.cause == cause)
    }

    /// The words of a hold in force.
    pub(crate) fn detail(&self, scope: &Scope, cause: HoldCause) -> Option<String> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let held = inner.in_force().into_iter().find(|hold| hold.scope == *scope && hold.cause == cause);
        held.map(|hold| hold.detail)
    }

    /// Whether a hold of the same scope and cause lasts longer.
    pub(crate) fn outlasts(&self, hold: &Hold) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let end = |hold: &Hold| hold.until.unwrap_or(Timestamp::MAX);
        inner
            .in_force()
            .iter()
            .any(|old| old.scope == hold.scope && old.cause == hold.cause && end(old) > end(hold))
    }

    fn change(&self, how: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        how(&mut inner);
        // Under the lock, so that the limiter never ends with an older set than this one.
        self.limiter.set_holds(inner.in_force());
    }
}
