//! Simulated time: an instant since the start, and durations as people write them.

use std::ops::Add;
use std::time::Duration;

use serde::Serialize;

/// An instant: whole microseconds since the simulation's start.
///
/// The wall clock behind it is [`Config::epoch`](crate::Config::epoch) plus this. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct At(u64);

impl At {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// The latest instant, which never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The instant `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// The instant `secs` seconds after the start.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for At {
    fn from(since_start: Duration) -> Self {
        Self(micros(since_start))
    }
}

impl Add<Duration> for At {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(micros(length)))
    }
}

/// Whole microseconds, saturating (584,000 years).
pub(crate) fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

const UNITS: [(u64, &str); 6] = [
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "m"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
];

/// Reads `500us`, `15s`, `1m30s`, `24h`, `30d`; `0` needs no unit.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len()));
        let (size, _) = UNITS.iter().find(|(_, name)| *name == unit)?;
        total = number.parse::<u64>().ok()?.checked_mul(*size)?.checked_add(total)?;
        rest = tail.trim_start();
    }
    Some(Duration::from_micros(total))
}

/// Writes a duration exactly, the way [`parse_span`] reads it.
pub(crate) fn show_span(length: Duration) -> String {
    let mut rest = micros(length);
    let mut shown = String::new();
    for (size, name) in UNITS {
        let count = rest.checked_div(size).unwrap_or(0);
        rest = rest.checked_rem(size).unwrap_or(0);
        if count > 0 {
            shown.push_str(&count.to_string());
            shown.push_str(name);
        }
    }
    if shown.is_empty() { "0s".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_exactly_as_they_are_read() {
        for text in ["0s", "1m", "1m30s", "500ms", "1d2h3m4s5ms6us", "365d"] {
            assert_eq!(show_span(parse_span(text).unwrap()), text);
        }
        for bad in ["", "15", "s", "-1s", "1.5s", "1 fortnight", "99999999999999999999s"] {
            assert!(parse_span(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(At::MAX + Duration::from_secs(1), At::MAX);
        assert_eq!(At::ZERO.since(At::MAX), Duration::ZERO);
    }
}
