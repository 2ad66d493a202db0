//! The generic cell rate algorithm, without rounding: time in units of µs × rate.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::time::{Timestamp, micros};

/// A schedule of `rate` calls per `per` with room for `burst` at once.
///
/// One call takes `per / rate` µs, which is rarely whole. Counting in units of 1/rate µs it is exactly
/// `per`, so that no rate drifts however long it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pacing {
    rate: i128,
    interval: i128,
    depth: i128,
    burst: u64,
    arrival: i128,
}

impl Pacing {
    pub(super) fn new(rate: NonZeroU64, per: Duration, burst: NonZeroU64) -> Self {
        let interval = i128::from(micros(per).max(1));
        Self {
            rate: i128::from(rate.get()),
            interval,
            depth: interval.saturating_mul(i128::from(burst.get())),
            burst: burst.get(),
            arrival: i128::MIN,
        }
    }

    pub(super) const fn burst(&self) -> u64 {
        self.burst
    }

    fn scaled(&self, at: Timestamp) -> i128 {
        i128::from(at.as_micros()).saturating_mul(self.rate)
    }

    fn length(&self, cost: u64) -> i128 {
        self.interval.saturating_mul(i128::from(cost))
    }

    fn debt(&self, now: Timestamp) -> i128 {
        self.arrival.saturating_sub(self.scaled(now)).max(0)
    }

    pub(super) fn fits(&self, now: Timestamp, cost: u64) -> bool {
        self.debt(now).saturating_add(self.length(cost)) <= self.depth
    }

    pub(super) fn take(&mut self, now: Timestamp, cost: u64) {
        self.arrival = self.arrival.max(self.scaled(now)).saturating_add(self.length(cost));
    }

    /// Takes back a call granted at `granted_at`; `latest` is the newest grant. Exact while no other
    /// call was granted since; else never below what the newest grant alone would have left.
    pub(super) fn give_back(&mut self, granted_at: Timestamp, latest: Timestamp, cost: u64) {
        let without = self.arrival.saturating_sub(self.length(cost));
        self.arrival = if granted_at >= latest {
            without
        } else {
            without.max(self.scaled(latest).saturating_add(self.interval).min(self.arrival))
        };
    }

    /// When calls of this `cost` in all, one after the other, have all fitted.
    pub(super) fn next_at(&self, now: Timestamp, cost: u64) -> Timestamp {
        let start =
            self.arrival.max(self.scaled(now)).saturating_add(self.length(cost)).saturating_sub(self.depth);
        let up = start.saturating_add(self.rate.saturating_sub(1)).div_euclid(self.rate);
        Timestamp::from_micros(i64::try_from(up).unwrap_or(i64::MAX)).max(now)
    }

    pub(super) fn left(&self, now: Timestamp) -> u64 {
        let room = self.depth.saturating_sub(self.debt(now)).max(0);
        u64::try_from(room.div_euclid(self.interval)).unwrap_or(u64::MAX)
    }

    /// Whether it would have filled from empty between the two.
    pub(super) fn fills(&self, from: Timestamp, now: Timestamp) -> bool {
        self.scaled(from).saturating_add(self.depth) <= self.scaled(now)
    }

    pub(super) fn is_full(&self, now: Timestamp) -> bool {
        self.debt(now) == 0
    }
}
