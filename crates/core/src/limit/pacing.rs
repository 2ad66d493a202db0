//! Pacing: a virtual schedule with a burst, exact for any rate.
//!
//! The generic cell rate algorithm (ITU-T I.371): the theoretical arrival time moves on by one
//! emission interval per call. It is kept in units of 1/rate µs, so that no rate is ever rounded.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::time::{Timestamp, micros};

/// A schedule of `rate` calls per `per`, at most `burst` at once.
#[derive(Debug, Clone)]
pub(super) struct Pacing {
    rate: i128,
    per: i128,
    burst: i128,
    /// The theoretical arrival time, in µs times `rate`.
    tat: i128,
}

impl Pacing {
    pub(super) fn new(rate: NonZeroU64, per: Duration, burst: NonZeroU64) -> Self {
        Self {
            rate: i128::from(rate.get()),
            per: i128::from(micros(per)),
            burst: i128::from(burst.get()),
            tat: i128::MIN / 4,
        }
    }

    const fn scaled(&self, at: i128) -> i128 {
        at.saturating_mul(self.rate)
    }

    /// When `cost` fits, with `extra` more counted as taken now.
    pub(super) fn fits_at(&self, now: Timestamp, cost: u64, extra: u64) -> Timestamp {
        let now_scaled = self.scaled(i128::from(now.as_micros()));
        let base = if extra == 0 { self.tat } else { self.tat.max(now_scaled) };
        let calls = i128::from(cost) + i128::from(extra) - self.burst;
        let free = base.saturating_add(calls.saturating_mul(self.per));
        // From a full schedule, what the burst holds fits at once.
        if free <= now_scaled {
            return now;
        }
        let up = free.saturating_add(self.rate - 1).div_euclid(self.rate);
        Timestamp::from_micros(i64::try_from(up).unwrap_or(i64::MAX))
    }

    /// Moves the schedule on by `cost` calls made at `at`.
    pub(super) fn take(&mut self, at: Timestamp, cost: u64) {
        let at = self.scaled(i128::from(at.as_micros()));
        self.tat = self.tat.max(at).saturating_add(self.per.saturating_mul(i128::from(cost)));
    }

    /// Takes back `cost` calls that were never made.
    pub(super) fn give_back(&mut self, cost: u64) {
        self.tat = self.tat.saturating_sub(self.per.saturating_mul(i128::from(cost)));
    }

    /// Calls that fit now, with `extra` more counted as taken.
    pub(super) fn left(&self, now: Timestamp, extra: u64) -> u64 {
        let now = self.scaled(i128::from(now.as_micros()));
        let debt = self.tat.saturating_sub(now).max(0) + i128::from(extra) * self.per;
        let room = (self.burst * self.per - debt).div_euclid(self.per).max(0);
        u64::try_from(room).unwrap_or(u64::MAX)
    }

    /// Whether the schedule has caught up: nothing it remembers matters any more.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.tat <= self.scaled(i128::from(now.as_micros()))
    }
}
