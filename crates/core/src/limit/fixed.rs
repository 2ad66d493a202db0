//! The fixed window: `max` per window of the clock. A call counts in every window that it can have
//! arrived in, two seconds either side included, because the channel's clock is not ours.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::budget::Fit;
use crate::time::{Timestamp, micros};

const EDGE: Duration = Duration::from_secs(2);
const DAY: i64 = 86_400_000_000;

#[derive(Debug, Clone)]
pub(super) struct Fixed {
    max: u64,
    per: Duration,
    zone: TimeZone,
    in_flight: u64,
    /// Answered calls by the start of the window they count in.
    windows: BTreeMap<Timestamp, u64>,
}

/// One window of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl Fixed {
    pub(super) fn new(max: NonZeroU64, per: Duration, zone: TimeZone) -> Self {
        Self { max: max.get(), per, zone, in_flight: 0, windows: BTreeMap::new() }
    }

    /// The window that holds `at`: whole days between local midnights, which may be 23 or 25 h apart;
    /// anything shorter on the local clock.
    pub(super) fn window(&self, at: Timestamp) -> Window {
        let per = micros(self.per).max(1);
        let local = self.zone.to_datetime(at.to_jiff());
        if per % DAY == 0 {
            let days = i32::try_from(per / DAY).unwrap_or(i32::MAX);
            let epoch = Date::constant(1970, 1, 1);
            let index = local.date().since(epoch).map_or(0, |span| span.get_days()).div_euclid(days);
            let midnight = |index: i32| {
                let date = epoch.saturating_add(index.saturating_mul(days).days());
                self.zone.to_ambiguous_zoned_datetime(date.at(0, 0, 0, 0)).compatible()
                    .map_or(at, |midnight| Timestamp::from_jiff(midnight.timestamp()))
            };
            return Window { start: midnight(index), end: midnight(index.saturating_add(1)) };
        }
        let offset = i64::from(self.zone.to_offset(at.to_jiff()).seconds()).saturating_mul(1_000_000);
        let start = at.as_micros().saturating_add(offset).div_euclid(per).saturating_mul(per) - offset;
        let start = Timestamp::from_micros(start);
        Window { start, end: start + self.per }
    }

    /// The windows that a call between the two instants can have arrived in.
    fn touched(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Window> {
        let last = to + EDGE;
        let mut next = Some(self.window(from - EDGE));
        std::iter::from_fn(move || {
            let window = next.take()?;
            if window.end <= last && window.end > window.start {
                next = Some(self.window(window.end));
            }
            Some(window)
        })
    }

    pub(super) fn fits(&mut self, now: Timestamp, cost: u64) -> Fit {
        if cost > self.max {
            return Fit::Never;
        }
        self.forget(now);
        let full = |window: &Window| {
            let settled = self.windows.get(&window.start).copied().unwrap_or(0);
            settled + self.in_flight + cost > self.max
        };
        let mut at = now;
        // Each full window moves the call beyond its edge; the windows ahead hold what edges left there.
        while let Some(window) = self.touched(at, at).find(|window| full(window)) {
            at = window.end + EDGE;
            if self.windows.range(window.end..).next().is_none() {
                break;
            }
        }
        Fit::at(now, at)
    }

    fn forget(&mut self, now: Timestamp) {
        let oldest = self.window(now - EDGE).start;
        self.windows = self.windows.split_off(&oldest);
    }

    pub(super) const fn take(&mut self, cost: u64) {
        self.in_flight += cost;
    }

    pub(super) fn settle(&mut self, granted: Timestamp, answered: Timestamp, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        let touched: Vec<Window> = self.touched(granted, answered).collect();
        for window in touched {
            *self.windows.entry(window.start).or_default() += cost;
        }
    }

    pub(super) const fn give_back(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
    }

    pub(super) fn used(&self, now: Timestamp) -> u64 {
        let settled = self.touched(now, now).map(|window| self.windows.get(&window.start).copied());
        settled.flatten().max().unwrap_or(0) + self.in_flight
    }

    pub(super) fn is_idle(&mut self, now: Timestamp) -> bool {
        self.forget(now);
        self.in_flight == 0 && self.windows.is_empty()
    }
}
