//! The token bucket: continuous refill, a call counted from its grant until its answer.

use std::num::NonZeroU64;
use std::time::Duration;

use super::pacing::Pacing;
use crate::time::Timestamp;

/// Answered calls are on the schedule at the time of their answer; calls in flight are tokens that the
/// channel may take as late as it likes, so none of them has begun to refill.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    settled: Pacing,
    in_flight: u64,
}

impl Bucket {
    pub(super) fn new(rate: NonZeroU64, per: Duration, burst: NonZeroU64) -> Self {
        Self { settled: Pacing::new(rate, per, burst), in_flight: 0 }
    }

    /// The `first` call known of a former life comes; see [`Budget::resume`](super::Budget::resume).
    pub(super) fn resume(&mut self, first: Timestamp, now: Timestamp) {
        if self.settled.fills(first, now) {
            self.settled.take(first, self.capacity().saturating_sub(1));
        }
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.settled.burst()
    }

    pub(super) fn fits(&self, now: Timestamp, cost: u64) -> bool {
        self.settled.fits(now, self.in_flight.saturating_add(cost))
    }

    pub(super) const fn take(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_add(cost);
    }

    pub(super) fn settle(&mut self, now: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        self.settled.take(now, cost);
    }

    pub(super) const fn give_back(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
    }

    pub(super) fn next_at(&self, now: Timestamp, cost: u64) -> Timestamp {
        self.settled.next_at(now, self.in_flight.saturating_add(cost))
    }

    pub(super) fn left(&self, now: Timestamp) -> u64 {
        self.settled.left(now).saturating_sub(self.in_flight)
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.in_flight == 0 && self.settled.is_full(now)
    }
}
