//! Dates: nights are calendar dates at the property, never instants and never blocks of 24 hours.

use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};

use crate::time::Timestamp;

/// A text that is not a calendar date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a calendar date such as 2026-09-19")]
pub struct DateError;

/// A text that names no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an IANA time zone such as Europe/Berlin")]
pub struct ZoneError;

/// A text that is not an RFC 3339 instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an RFC 3339 time with an offset, such as 2026-09-19T18:00:00+02:00")]
pub struct InstantError;

/// Reads `YYYY-MM-DD` and nothing else.
///
/// # Errors
/// On any other form, and on a date that the calendar does not have.
pub fn parse(text: &str) -> Result<Date, DateError> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else { return Err(DateError) };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0_i16, |sum, digit| {
            digit.is_ascii_digit().then(|| sum * 10 + i16::from(**digit - b'0')).ok_or(DateError)
        })
    };
    let year = number(&[y1, y2, y3, y4])?;
    let month = i8::try_from(number(&[m1, m2])?).map_err(|_| DateError)?;
    let day = i8::try_from(number(&[d1, d2])?).map_err(|_| DateError)?;
    Date::new(year, month, day).map_err(|_| DateError)
}

/// Reads an RFC 3339 instant with an offset or `Z`.
///
/// # Errors
/// On any other form, one without an offset included.
pub fn parse_instant(text: &str) -> Result<Timestamp, InstantError> {
    // The library reads more than RFC 3339 (weeks, zone names, missing seconds), so the form is checked first.
    let (date, time) = text.split_once(['T', 't']).ok_or(InstantError)?;
    parse(date).map_err(|_| InstantError)?;
    let offset_at = time.find(['Z', 'z', '+', '-']).ok_or(InstantError)?;
    let (clock, offset) = time.split_at_checked(offset_at).ok_or(InstantError)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let pairs = |part: &str| part.split(':').all(|pair| pair.len() == 2 && digits(pair));
    let clock_fits =
        clock.len() == 8 && pairs(clock) && (1..=9).contains(&fraction.len()) && digits(fraction);
    let offset_fits = offset.eq_ignore_ascii_case("z")
        || (offset.len() == 6 && offset.get(1..).is_some_and(|hours| hours.len() == 5 && pairs(hours)));
    if !clock_fits || !offset_fits {
        return Err(InstantError);
    }
    text.parse().map(Timestamp::from_jiff).map_err(|_| InstantError)
}

/// Finds a time zone by its IANA name.
///
/// # Errors
/// If there is none of that name.
pub fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    TimeZone::get(name).map_err(|_| ZoneError)
}

/// The last place on earth to end a day: UTC-12.
fn last_on_earth() -> TimeZone {
    TimeZone::fixed(Offset::constant(-12))
}

/// Today at the property; with no zone known, the earliest date that is still today somewhere on earth.
pub fn today(now: Timestamp, zone: Option<&TimeZone>) -> Date {
    match zone {
        Some(zone) => zone.to_datetime(now.to_jiff()).date(),
        None => last_on_earth().to_datetime(now.to_jiff()).date(),
    }
}

/// The instant a date has ended at the property; with no zone known, everywhere on earth. `None` beyond
/// the end of the calendar.
pub fn end(date: Date, zone: Option<&TimeZone>) -> Option<Timestamp> {
    // Where the clocks skip midnight, the next day begins when the skipped hour is over.
    let midnight = date.tomorrow().ok()?.to_datetime(Time::midnight());
    let next =
        zone.map_or_else(|| last_on_earth().to_timestamp(midnight), |zone| zone.to_timestamp(midnight));
    next.ok().map(Timestamp::from_jiff)
}

/// How many nights lie between arrival and departure; negative if they are the wrong way round.
pub fn nights(arrival: Date, departure: Date) -> i32 {
    (departure - arrival).get_days()
}

/// Every date from `first` to `last`, both included; none if `last` is earlier.
pub fn range(first: Date, last: Date) -> impl Iterator<Item = Date> {
    let from_first = std::iter::successors(Some(first), |date| date.tomorrow().ok());
    from_first.take_while(move |date| *date <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        parse(text).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        parse_instant(text).unwrap()
    }

    #[test]
    fn only_iso_dates_that_exist_are_dates() {
        assert_eq!(date("2028-02-29").to_string(), "2028-02-29");
        for bad in [
            "2026-9-19",
            "20260919",
            "2026-09-31",
            "2026-02-29",
            "2026-13-01",
            "2026-09-00",
            "19.09.2026",
            "2026/09/19",
            "2026-09-19T00:00:00Z",
            " 2026-09-19",
            "+2026-09-19",
            "２026-09-19",
            "",
        ] {
            assert_eq!(parse(bad), Err(DateError), "{bad}");
        }
    }

    #[test]
    fn only_rfc_3339_with_an_offset_is_an_instant() {
        assert_eq!(at("2026-09-20T12:00:00+02:00"), at("2026-09-20T10:00:00Z"));
        assert_eq!(at("2026-09-20T10:00:00.250z").as_micros(), 1_789_898_400_250_000);
        for bad in [
            "2026-09-20T10:00:00",
            "2026-09-20",
            "2026-09-20T10:00Z",
            "2026-09-20T10:00:00+02",
            "2026-W38-7T10:00:00Z",
            "2026-09-20T10:00:00+0200",
            "2026-09-20T25:00:00Z",
            "2026-09-20T10:00:00Z[UTC]",
            "2026-09-20T10:00:00.Z",
            "1789898400",
            "2026-09-20T10:00:00+99:00",
            "2026-09-20T10:00:00é",
        ] {
            assert_eq!(parse_instant(bad), Err(InstantError), "{bad}");
        }
    }

    #[test]
    fn today_is_judged_where_the_property_is() {
        let now = at("2026-09-20T05:00:00Z");
        let honolulu = zone("Pacific/Honolulu").unwrap();
        let kiritimati = zone("Pacific/Kiritimati").unwrap();
        assert_eq!(today(now, Some(&honolulu)), date("2026-09-19"));
        assert_eq!(today(now, Some(&kiritimati)), date("2026-09-20"));
        assert_eq!(today(now, None), date("2026-09-19"));
        assert_eq!(today(at("2026-09-20T12:00:00Z"), None), date("2026-09-20"));
    }

    #[test]
    fn a_stay_date_ends_at_midnight_of_the_property() {
        let berlin = zone("Europe/Berlin").unwrap();
        assert_eq!(end(date("2026-09-19"), Some(&berlin)), Some(at("2026-09-19T22:00:00Z")));
        assert_eq!(end(date("2026-09-19"), None), Some(at("2026-09-20T12:00:00Z")));
        // Cairo skips midnight when its clocks go forward: the day after begins at one.
        let cairo = zone("Africa/Cairo").unwrap();
        assert_eq!(end(date("2026-04-23"), Some(&cairo)), Some(at("2026-04-23T22:00:00Z")));
        assert_eq!(end(Date::MAX, None), None);
    }

    #[test]
    fn a_range_of_dates_over_a_clock_change_loses_and_doubles_no_day() {
        let days: Vec<_> = range(date("2026-10-24"), date("2026-10-26")).map(|day| day.to_string()).collect();
        assert_eq!(days, ["2026-10-24", "2026-10-25", "2026-10-26"]);
        assert_eq!(range(date("2026-10-26"), date("2026-10-24")).count(), 0);
    }

    #[test]
    fn nights_are_counted_by_the_calendar_around_a_clock_change() {
        assert_eq!(nights(date("2026-10-24"), date("2026-10-27")), 3);
        assert_eq!(nights(date("2026-03-28"), date("2026-03-30")), 2);
        assert_eq!(nights(date("2026-10-31"), date("2026-11-02")), 2);
        assert_eq!(nights(date("2026-10-27"), date("2026-10-24")), -3);
    }
}
