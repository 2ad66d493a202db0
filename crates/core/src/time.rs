//! The one time type: an instant in whole microseconds, and durations as people write them.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant, in whole microseconds since the Unix epoch (UTC).
///
/// Arithmetic saturates: no value a user or a channel supplies can overflow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest instant.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest instant.
    pub const MAX: Self = Self(i64::MAX);

    /// The instant `micros` microseconds after the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// How long until `later`; zero if that has passed.
    pub fn until(self, later: Self) -> Duration {
        later.since(self)
    }

    /// The instant as a `jiff` timestamp, clamped to what that type can hold.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }

    /// The instant of a `jiff` timestamp, below a microsecond cut off.
    pub fn from_jiff(instant: jiff::Timestamp) -> Self {
        Self(instant.as_microsecond())
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(micros(length)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(micros(length)))
    }
}

/// RFC 3339 in UTC, as far as the calendar reaches.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_jiff().fmt(f)
    }
}

/// A duration in whole microseconds, saturating at the largest `i64`.
pub fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: write a whole number and a unit, such as 500ms, 15s, 1m, 24h or 30d")]
pub struct DurationError {
    text: String,
}

/// Reads `500us`, `500ms`, `15s`, `1m`, `24h`, `30d` and sums of them (`1m30s`).
///
/// # Errors
/// On anything else, an empty text, or a length beyond what fits.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let fault = || DurationError { text: text.to_owned() };
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(fault());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fault)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit: u64 = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return Err(fault()),
        };
        let number: u64 = number.parse().map_err(|_| fault())?;
        total = number.checked_mul(unit).and_then(|part| total.checked_add(part)).ok_or_else(fault)?;
        rest = tail.trim_start();
    }
    if i64::try_from(total).is_err() {
        return Err(fault());
    }
    Ok(Duration::from_micros(total))
}

/// Writes a duration the way [`parse_duration`] reads it: the largest two units that are not zero.
pub fn show_duration(length: Duration) -> String {
    let total = length.as_micros();
    let units: [(u128, &str); 6] = [
        (86_400_000_000, "d"),
        (3_600_000_000, "h"),
        (60_000_000, "m"),
        (1_000_000, "s"),
        (1_000, "ms"),
        (1, "us"),
    ];
    let mut rest = total;
    let mut shown = String::new();
    let mut parts = 0;
    for (size, unit) in units {
        let count = rest.checked_div(size).unwrap_or(0);
        rest = rest.checked_rem(size).unwrap_or(0);
        if count > 0 && parts < 2 {
            shown += &count.to_string();
            shown += unit;
            parts += 1;
        } else if parts > 0 {
            break;
        }
    }
    if shown.is_empty() { "0s".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("15s").unwrap(), Duration::from_secs(15));
        assert_eq!(parse_duration("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
        for bad in ["", "15", "s", "-1s", "1.5s", "1 fortnight", "99999999999999999999s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_shown_in_at_most_two_units() {
        assert_eq!(show_duration(Duration::from_secs(90)), "1m30s");
        assert_eq!(show_duration(Duration::ZERO), "0s");
        assert_eq!(show_duration(Duration::from_micros(1_500)), "1ms500us");
        assert_eq!(show_duration(Duration::from_secs(86_400 * 2 + 61)), "2d");
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::MIN - Duration::from_secs(1), Timestamp::MIN);
    }
}
