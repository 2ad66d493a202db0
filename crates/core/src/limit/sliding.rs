//! The sliding window: never more than `max` in any trailing `per`, wherever between its grant and its
//! answer each call arrived.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use super::budget::Fit;
use super::pacing::Pacing;
use crate::time::{Timestamp, micros};

/// Timer lateness that the pacing inside the window makes up for; the window itself never gives.
const LATENESS: Duration = Duration::from_millis(5);
/// Most separate ends remembered: beyond it they are gathered on a grid, rounded to the late side.
const GRID: u64 = 4_096;

#[derive(Debug, Clone)]
pub(super) struct Sliding {
    max: u64,
    /// The window plus a guard against clocks that drift apart.
    reach: Duration,
    grid: i64,
    in_flight: u64,
    /// When calls ended, with their cost, oldest first.
    ended: VecDeque<(Timestamp, u64)>,
    counted: u64,
    pacing: Option<Pacing>,
}

impl Sliding {
    pub(super) fn new(max: NonZeroU64, per: Duration, burst: NonZeroU64) -> Self {
        let grid = if max.get() > GRID { (micros(per) / 4_096).max(1) } else { 1 };
        Self {
            max: max.get(),
            reach: per + Duration::from_millis(1) + per / 10_000,
            grid,
            in_flight: 0,
            ended: VecDeque::new(),
            counted: 0,
            pacing: (burst < max).then(|| Pacing::new(max, per, burst)),
        }
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((end, cost)) = self.ended.front().copied()
            && end + self.reach <= now
        {
            self.ended.pop_front();
            self.counted -= cost;
        }
    }

    pub(super) fn fits(&mut self, now: Timestamp, cost: u64) -> Fit {
        if cost > self.max {
            return Fit::Never;
        }
        self.forget(now);
        let window = self.room_at(now, cost);
        let paced = self.pacing.as_ref().map_or(now, |pacing| pacing.fits_at(now, cost, 0));
        Fit::at(now, window.max(paced))
    }

    /// When the window has room: exact when nothing is in flight, else as if all in flight were
    /// answered now.
    fn room_at(&self, now: Timestamp, cost: u64) -> Timestamp {
        let used = self.counted + self.in_flight;
        let Some(mut excess) = (used + cost).checked_sub(self.max).filter(|excess| *excess > 0) else {
            return now;
        };
        for (end, cost) in &self.ended {
            excess = excess.saturating_sub(*cost);
            if excess == 0 {
                return *end + self.reach;
            }
        }
        now + self.reach
    }

    pub(super) fn take(&mut self, now: Timestamp, cost: u64) {
        self.in_flight += cost;
        if let Some(pacing) = &mut self.pacing {
            pacing.take(now - LATENESS, cost);
        }
    }

    pub(super) fn settle(&mut self, answered: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        let up = answered.as_micros().saturating_add(self.grid - 1).div_euclid(self.grid);
        let end = Timestamp::from_micros(up.saturating_mul(self.grid));
        self.counted += cost;
        let at = self.ended.partition_point(|(earlier, _)| *earlier <= end);
        match at.checked_sub(1).and_then(|last| self.ended.get_mut(last)) {
            Some((last, sum)) if *last == end => *sum += cost,
            _ => self.ended.insert(at, (end, cost)),
        }
    }

    pub(super) fn give_back(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        if let Some(pacing) = &mut self.pacing {
            pacing.give_back(cost);
        }
    }

    pub(super) fn used(&mut self, now: Timestamp) -> u64 {
        self.forget(now);
        self.counted + self.in_flight
    }

    pub(super) fn left(&mut self, now: Timestamp) -> u64 {
        let window = self.max.saturating_sub(self.used(now));
        self.pacing.as_ref().map_or(window, |pacing| window.min(pacing.left(now, 0)))
    }

    pub(super) fn is_idle(&mut self, now: Timestamp) -> bool {
        self.used(now) == 0 && self.pacing.as_ref().is_none_or(|pacing| pacing.is_idle(now))
    }
}
