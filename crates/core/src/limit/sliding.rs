//! The sliding window: never more than `max` in any trailing `per`, and paced inside it.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use super::pacing::Pacing;
use crate::time::{Timestamp, micros};

/// Most distinct answer times kept; beyond that many calls a window, they share a grid this fine.
const GRID: u64 = 4096;

/// A call counts from its grant until `per` (and a guard against drifting clocks) after its answer.
#[derive(Debug, Clone)]
pub(super) struct Sliding {
    max: u64,
    /// How long after its answer a call counts.
    span: Duration,
    /// Answer times are rounded up to a multiple of this many µs: later is the safe side.
    grid: i64,
    in_flight: u64,
    answered: VecDeque<(Timestamp, u64)>,
    counted: u64,
    /// `None` if the window may be used greedily.
    pacing: Option<Pacing>,
    latest_grant: Timestamp,
}

impl Sliding {
    pub(super) fn new(max: NonZeroU64, per: Duration, burst: NonZeroU64) -> Self {
        let whole = micros(per);
        // A channel's clock may run faster than ours, and our timestamps are cut to whole µs.
        let guard = Duration::from_millis(1).saturating_add(per / 10_000);
        let steps = i64::try_from(GRID).unwrap_or(i64::MAX);
        Self {
            max: max.get(),
            span: per.saturating_add(guard),
            grid: if max.get() > GRID { whole.div_euclid(steps).max(1) } else { 1 },
            in_flight: 0,
            answered: VecDeque::new(),
            counted: 0,
            pacing: (burst < max).then(|| Pacing::new(max, per, burst)),
            latest_grant: Timestamp::MIN,
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.pacing.as_ref().map_or(self.max, Pacing::burst)
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// Forgets what no longer counts.
    pub(super) fn advance(&mut self, now: Timestamp) {
        while let Some(&(at, count)) = self.answered.front()
            && at + self.span <= now
        {
            self.answered.pop_front();
            self.counted = self.counted.saturating_sub(count);
        }
    }

    pub(super) const fn used(&self) -> u64 {
        self.in_flight.saturating_add(self.counted)
    }

    pub(super) fn fits(&self, now: Timestamp, cost: u64) -> bool {
        self.used().saturating_add(cost) <= self.max
            && self.pacing.as_ref().is_none_or(|pacing| pacing.fits(now, cost))
    }

    pub(super) fn take(&mut self, now: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_add(cost);
        self.latest_grant = now;
        if let Some(pacing) = &mut self.pacing {
            pacing.take(now, cost);
        }
    }

    pub(super) fn settle(&mut self, now: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        self.counted = self.counted.saturating_add(cost);
        let cells = now.as_micros().saturating_add(self.grid.saturating_sub(1)).div_euclid(self.grid);
        let at = Timestamp::from_micros(cells.saturating_mul(self.grid));
        match self.answered.back_mut() {
            Some((last, count)) if *last == at => *count = count.saturating_add(cost),
            Some(_) | None => self.answered.push_back((at, cost)),
        }
    }

    pub(super) fn give_back(&mut self, granted_at: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        if let Some(pacing) = &mut self.pacing {
            pacing.give_back(granted_at, self.latest_grant, cost);
        }
    }

    pub(super) fn next_at(&self, now: Timestamp, cost: u64) -> Timestamp {
        let whole_windows = cost.saturating_sub(1).checked_div(self.max).unwrap_or(0);
        let rest = cost.saturating_sub(whole_windows.saturating_mul(self.max));
        let rounds = u32::try_from(whole_windows).unwrap_or(u32::MAX);
        let window = self.slot_at(now, rest) + self.span.saturating_mul(rounds);
        self.pacing.as_ref().map_or(window, |pacing| window.max(pacing.next_at(now, cost)))
    }

    /// When so much of the window is free, if what is in flight is answered now.
    fn slot_at(&self, now: Timestamp, cost: u64) -> Timestamp {
        let mut missing = self.used().saturating_add(cost).saturating_sub(self.max);
        if missing == 0 {
            return now;
        }
        for &(at, count) in &self.answered {
            missing = missing.saturating_sub(count);
            if missing == 0 {
                return at + self.span;
            }
        }
        now + self.span
    }

    pub(super) fn left(&self, now: Timestamp) -> u64 {
        let window = self.max.saturating_sub(self.used());
        self.pacing.as_ref().map_or(window, |pacing| window.min(pacing.left(now)))
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.used() == 0 && self.pacing.as_ref().is_none_or(|pacing| pacing.is_full(now))
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.answered.len()
    }
}
