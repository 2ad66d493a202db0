//! The wall clock that stands behind simulated time, and the dates of HTTP.

use std::time::Duration;

use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};

use crate::at::At;

/// A whole second of the wall clock, in seconds of the Unix epoch.
pub(crate) type Second = i64;

/// The wall clock: the instant at time zero, in microseconds of the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wall {
    epoch: i64,
}

impl Wall {
    pub(crate) fn new(epoch: Timestamp) -> Self {
        Self { epoch: epoch.as_microsecond() }
    }

    /// The clock that shows at `now` what this one shows at zero.
    pub(crate) fn before(self, now: At) -> Self {
        let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        Self { epoch: self.epoch.saturating_sub(now) }
    }

    /// The wall time at `now` microseconds.
    pub(crate) fn at(self, now: u64) -> i64 {
        self.epoch.saturating_add(i64::try_from(now).unwrap_or(i64::MAX))
    }

    /// Simulated time at a wall instant; what is before time zero becomes zero.
    pub(crate) fn back(self, wall: i64) -> u64 {
        u64::try_from(wall.saturating_sub(self.epoch)).unwrap_or(0)
    }

    /// The clock window of length `per` that `now` is in, as simulated `(start, end)`: windows are laid
    /// from local midnight on, the last of a day ends with the day, so that a day has 23 or 25 h when
    /// the clocks change.
    pub(crate) fn window(self, now: u64, per: Duration, zone: &TimeZone) -> (u64, u64) {
        let wall = self.at(now);
        let (midnight, next) = day(wall, zone);
        let per = i64::try_from(per.as_micros()).unwrap_or(i64::MAX).max(1);
        let index = wall.saturating_sub(midnight).div_euclid(per);
        let start = midnight.saturating_add(index.saturating_mul(per));
        let end = start.saturating_add(per);
        let end = if per >= DAY { next } else { end.min(next) };
        (self.back(start), self.back(end))
    }
}

/// Microseconds of a day without a change of clocks.
const DAY: i64 = 86_400_000_000;

/// The civil day around `wall`, from its first instant to that of the next.
fn day(wall: i64, zone: &TimeZone) -> (i64, i64) {
    let local = Timestamp::from_microsecond(wall).unwrap_or(Timestamp::MAX).to_zoned_datetime(zone.clone());
    let bounds = || -> Result<(ZonedDateTime, ZonedDateTime), jiff::Error> {
        Ok((local.start_of_day()?, local.tomorrow()?.start_of_day()?))
    };
    bounds().map_or((wall, wall.saturating_add(DAY)), |(from, to)| {
        (from.timestamp().as_microsecond(), to.timestamp().as_microsecond())
    })
}

/// `Sun, 20 Sep 2026 10:02:00 GMT`, the form RFC 9110 asks for.
pub(crate) fn imf(second: Second) -> String {
    format(second, "%a, %d %b %Y %H:%M:%S GMT")
}

/// `Sunday, 20-Sep-26 10:02:00 GMT`, the first obsolete form.
pub(crate) fn rfc850(second: Second) -> String {
    format(second, "%A, %d-%b-%y %H:%M:%S GMT")
}

/// `Sun Sep 20 10:02:00 2026`, the second obsolete form; the day is padded with a space.
pub(crate) fn asctime(second: Second) -> String {
    format(second, "%a %b %e %H:%M:%S %Y")
}

fn format(second: Second, form: &str) -> String {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX).strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_microsecond()
    }

    #[test]
    fn the_three_date_forms_are_those_of_rfc_9110() {
        let second = wall("1994-11-06T08:49:37Z") / 1_000_000;
        assert_eq!(imf(second), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(rfc850(second), "Sunday, 06-Nov-94 08:49:37 GMT");
        assert_eq!(asctime(second), "Sun Nov  6 08:49:37 1994");
    }

    #[test]
    fn a_day_window_has_25_hours_when_the_clocks_go_back_and_23_when_they_go_forward() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let clock = Wall::new("2026-01-01T00:00:00Z".parse().unwrap());
        let hours = |text: &str| {
            let (from, to) = clock.window(clock.back(wall(text)), Duration::from_secs(86_400), &zone);
            (to - from) / 3_600_000_000
        };
        assert_eq!(hours("2026-10-25T12:00:00Z"), 25);
        assert_eq!(hours("2026-03-29T12:00:00Z"), 23);
        assert_eq!(hours("2026-07-01T12:00:00Z"), 24);
    }

    #[test]
    fn minute_windows_stand_on_the_clock_and_end_with_the_day() {
        let clock = Wall::new("2026-09-20T10:00:10Z".parse().unwrap());
        let (from, to) = clock.window(55_000_000, Duration::from_secs(60), &TimeZone::UTC);
        assert_eq!((from, to), (50_000_000, 110_000_000));
        let late = clock.back(wall("2026-09-20T23:57:00Z"));
        let (from, to) = clock.window(late, Duration::from_secs(7 * 60), &TimeZone::UTC);
        assert_eq!((to - from) / 60_000_000, 5, "the last seven-minute window of a day has five minutes");
    }
}
