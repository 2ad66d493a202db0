//! The fixed window: resets on the clock of a time zone.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use crate::time::{Timestamp, micros};

/// How far the channel's clock may be from ours: so near an edge a call counts on both sides.
const SKEW: Duration = Duration::from_secs(2);
const DAY: i64 = 86_400_000_000;
/// The line ahead is reckoned at most so many windows far.
const HORIZON: u64 = 1_000;

/// One window, from its start to before its end, and the answered calls that may have fallen into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    start: Timestamp,
    end: Timestamp,
    settled: u64,
}

/// A call counts in every window that the time from its grant to its answer touches, 2 s more on either side.
///
/// Calls in flight may arrive in any window from now on, so they count in all.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    max: u64,
    per: i64,
    zone: TimeZone,
    in_flight: u64,
    /// The windows within reach, without gaps, oldest first.
    windows: VecDeque<Window>,
}

impl Fixed {
    pub(super) fn new(max: NonZeroU64, per: Duration, zone: TimeZone) -> Self {
        Self { max: max.get(), per: micros(per).max(1), zone, in_flight: 0, windows: VecDeque::new() }
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.max
    }

    /// Brings the windows within reach of `now` in place, and forgets those before.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let (from, to) = (now - SKEW, now + SKEW);
        while self.windows.front().is_some_and(|window| window.end <= from) {
            self.windows.pop_front();
        }
        let mut next = self.windows.back().map_or(from, |window| window.end);
        while next <= to {
            let (start, end) = bounds(&self.zone, self.per, next);
            self.windows.push_back(Window { start, end, settled: 0 });
            if end <= next {
                break;
            }
            next = end;
        }
    }

    /// What counts in the fullest window within reach.
    pub(super) fn used(&self) -> u64 {
        let settled = self.windows.iter().map(|window| window.settled).max().unwrap_or(0);
        settled.saturating_add(self.in_flight)
    }

    pub(super) fn left(&self) -> u64 {
        self.max.saturating_sub(self.used())
    }

    pub(super) const fn take(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_add(cost);
    }

    /// Windows that ended before reach will not be asked for again, so the call's grant plays no part.
    pub(super) fn settle(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        for window in &mut self.windows {
            window.settled = window.settled.saturating_add(cost);
        }
    }

    pub(super) const fn give_back(&mut self, cost: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost);
    }

    pub(super) fn next_at(&self, now: Timestamp, cost: u64) -> Timestamp {
        let full = cost.saturating_sub(1).checked_div(self.max).unwrap_or(0);
        let rest = cost.saturating_sub(full.saturating_mul(self.max)).saturating_add(self.in_flight);
        let last_full =
            self.windows.iter().rev().find(|window| window.settled.saturating_add(rest) > self.max);
        let mut at = last_full.map_or(now, |window| window.end + SKEW).max(now);
        for _ in 0..full.min(HORIZON) {
            at = bounds(&self.zone, self.per, at + SKEW).1 + SKEW;
        }
        at
    }

    pub(super) fn is_idle(&self) -> bool {
        self.used() == 0
    }
}

/// Start and end of the window that holds `at`.
fn bounds(zone: &TimeZone, per: i64, at: Timestamp) -> (Timestamp, Timestamp) {
    let days = if per.rem_euclid(DAY) == 0 { per.div_euclid(DAY) } else { 0 };
    if days > 0 {
        // Beyond the calendar there is one endless window.
        return day_bounds(zone, days, at).unwrap_or((Timestamp::MIN, Timestamp::MAX));
    }
    clock_bounds(zone, per, at)
}

/// Days are counted on the calendar, so that one may last 23 or 25 hours.
fn day_bounds(zone: &TimeZone, days: i64, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let epoch = Date::constant(1970, 1, 1);
    let today = at.to_jiff().to_zoned_datetime(zone.clone()).date();
    let since: Span = today.since(epoch).ok()?;
    let first = i64::from(since.get_days()).div_euclid(days).saturating_mul(days);
    let midnight = |day: i64| {
        let date = epoch.checked_add(Span::new().try_days(day).ok()?).ok()?;
        date.to_zoned_datetime(zone.clone()).ok().map(|zoned| Timestamp::from_jiff(zoned.timestamp()))
    };
    Some((midnight(first)?, midnight(first.saturating_add(days))?))
}

/// Shorter windows follow the clock on the wall. Where it is put forward or back a window ends, unless
/// the hands still stand in the same one: then it is one longer or shorter window.
fn clock_bounds(zone: &TimeZone, per: i64, at: Timestamp) -> (Timestamp, Timestamp) {
    let instant = at.to_jiff();
    let offset = shift(zone.to_offset(instant));
    let cell = |at: Timestamp, offset: i64| at.as_micros().saturating_add(offset).div_euclid(per);
    let mine = cell(at, offset);
    let from = mine.saturating_mul(per);
    let mut start = Timestamp::from_micros(from.saturating_sub(offset));
    let mut end = Timestamp::from_micros(from.saturating_add(per).saturating_sub(offset));

    if let Some(ahead) = zone.following(instant).next() {
        let (turn, then) = (Timestamp::from_jiff(ahead.timestamp()), shift(ahead.offset()));
        if turn <= end {
            let same = cell(turn, then) == mine;
            end = if same {
                Timestamp::from_micros(from.saturating_add(per).saturating_sub(then))
            } else {
                turn
            };
        }
    }
    let after = instant.checked_add(1.nanosecond()).unwrap_or(instant);
    if let Some(behind) = zone.preceding(after).next() {
        let turn = Timestamp::from_jiff(behind.timestamp());
        if start <= turn {
            let before = turn - Duration::from_micros(1);
            let then = shift(zone.to_offset(before.to_jiff()));
            let same = cell(before, then) == mine;
            start = if same { Timestamp::from_micros(from.saturating_sub(then)) } else { turn };
        }
    }
    (start, end)
}

fn shift(offset: jiff::tz::Offset) -> i64 {
    i64::from(offset.seconds()).saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_jiff(text.parse().unwrap())
    }

    fn hours(zone: &str, per_hours: i64, instant: &str) -> u64 {
        let zone = TimeZone::get(zone).unwrap();
        let (start, end) = bounds(&zone, per_hours * 3_600_000_000, at(instant));
        assert!(start <= at(instant) && at(instant) < end);
        start.until(end).as_secs() / 3600
    }

    #[test]
    fn a_day_lasts_from_midnight_to_midnight_and_may_have_23_or_25_hours() {
        assert_eq!(hours("Europe/Berlin", 24, "2026-10-25T12:00:00Z"), 25);
        assert_eq!(hours("Europe/Berlin", 24, "2026-03-29T12:00:00Z"), 23);
        assert_eq!(hours("America/New_York", 24, "2026-11-01T12:00:00Z"), 25);
        assert_eq!(hours("Europe/Berlin", 72, "2026-10-25T12:00:00Z"), 73);
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(bounds(&berlin, DAY, at("2026-10-25T12:00:00Z")).0, at("2026-10-24T22:00:00Z"));
    }

    #[test]
    fn shorter_windows_follow_the_clock_on_the_wall_without_gap_or_overlap() {
        assert_eq!(hours("Asia/Kolkata", 1, "2026-09-20T10:05:00Z"), 1);
        let kolkata = TimeZone::get("Asia/Kolkata").unwrap();
        assert_eq!(bounds(&kolkata, 3_600_000_000, at("2026-09-20T10:05:00Z")).0, at("2026-09-20T09:30:00Z"));
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for minutes in [1, 7, 30, 60, 90, 360, 1000] {
            let per = minutes * 60_000_000;
            for day in ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"] {
                let mut next = at(day) - Duration::from_secs(7200);
                while next < at(day) + Duration::from_secs(7200) {
                    let (start, end) = bounds(&berlin, per, next);
                    assert!(start <= next && next < end, "{minutes} {next}");
                    let last = end - Duration::from_micros(1);
                    assert_eq!(bounds(&berlin, per, last), (start, end), "{minutes} {last}");
                    assert_eq!(bounds(&berlin, per, end).0, end, "{minutes} {end}");
                    next = end;
                }
            }
        }
    }
}
