//! Calls in flight.

use std::num::NonZeroU64;

/// At most `max` calls between grant and answer.
#[derive(Debug, Clone)]
pub(super) struct Concurrency {
    max: u64,
    in_flight: u64,
}

impl Concurrency {
    pub(super) const fn new(max: NonZeroU64) -> Self {
        Self { max: max.get(), in_flight: 0 }
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.max
    }

    pub(super) const fn used(&self) -> u64 {
        self.in_flight
    }

    pub(super) const fn left(&self) -> u64 {
        self.max.saturating_sub(self.in_flight)
    }

    pub(super) const fn take(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_add(cost);
    }

    pub(super) const fn release(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
    }
}
