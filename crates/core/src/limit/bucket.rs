//! The token bucket: a call takes its token anywhere between its grant and its answer, so it counts as
//! taken until it is answered, and from the answer on.

use std::num::NonZeroU64;
use std::time::Duration;

use super::budget::Fit;
use super::pacing::Pacing;
use crate::time::Timestamp;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    burst: u64,
    /// The schedule of answered calls.
    settled: Pacing,
    in_flight: u64,
}

impl Bucket {
    pub(super) fn new(rate: NonZeroU64, per: Duration, burst: NonZeroU64) -> Self {
        Self { burst: burst.get(), settled: Pacing::new(rate, per, burst), in_flight: 0 }
    }

    pub(super) fn fits(&self, now: Timestamp, cost: u64) -> Fit {
        if cost > self.burst {
            return Fit::Never;
        }
        Fit::at(now, self.settled.fits_at(now, cost, self.in_flight))
    }

    pub(super) const fn take(&mut self, cost: u64) {
        self.in_flight += cost;
    }

    pub(super) fn settle(&mut self, answered: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        self.settled.take(answered, cost);
    }

    pub(super) const fn give_back(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
    }

    pub(super) fn left(&self, now: Timestamp) -> u64 {
        self.settled.left(now, self.in_flight)
    }

    pub(super) const fn max(&self) -> u64 {
        self.burst
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.in_flight == 0 && self.settled.is_idle(now)
    }
}
