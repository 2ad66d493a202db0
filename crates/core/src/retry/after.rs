//! `Retry-After` in every form that channels send (RFC 9110, sections 10.2.3 and 5.6.7).

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;

use crate::time::Timestamp;

/// What a channel asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter {
    /// How long from the arrival of the answer; zero means at once, through the limits.
    pub wait: Duration,
    /// Whether it asked for more than the horizon, which `wait` then is.
    pub beyond_horizon: bool,
}

/// Reads `Retry-After`: whole seconds, a decimal (rounded up), or an HTTP-date in one of its three
/// forms, which is read against the answer's own `date`, or `now` where that is absent or unreadable.
///
/// A date in the past counts as 0. Anything else, signed numbers included, counts as absent.
pub fn read(value: &str, date: Option<&str>, now: Timestamp, horizon: Duration) -> Option<RetryAfter> {
    let value = value.trim();
    let asked = match seconds(value) {
        Number::Seconds(seconds) => Duration::from_secs(seconds),
        Number::Not if value.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let until = http_date(value)?;
            let from = date.and_then(|date| http_date(date.trim())).unwrap_or(now);
            until.since(from)
        }
        Number::Not => return None,
    };
    Some(RetryAfter { wait: asked.min(horizon), beyond_horizon: asked > horizon })
}

enum Number {
    Seconds(u64),
    Not,
}

/// Digits never reach the date parser: `1.5` must not be read as a year. Too many digits saturate.
fn seconds(text: &str) -> Number {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let whole = |part: &str| part.parse().unwrap_or(u64::MAX);
    match text.split_once('.') {
        None if digits(text) => Number::Seconds(whole(text)),
        Some((head, tail)) if digits(head) && digits(tail) => {
            let up = u64::from(tail.bytes().any(|b| b != b'0'));
            Number::Seconds(whole(head).saturating_add(up))
        }
        _ => Number::Not,
    }
}

/// Reads an HTTP-date: IMF-fixdate, RFC 850 or asctime. The weekday must be one, but need not be right.
pub fn http_date(text: &str) -> Option<Timestamp> {
    const SHORT: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const LONG: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let parsed: DateTime = match text.split_once(", ") {
        Some((day, rest)) if SHORT.contains(&day) => read_date("%d %b %Y %H:%M:%S GMT", rest)?,
        Some((day, rest)) if LONG.contains(&day) => read_date("%d-%b-%y %H:%M:%S GMT", rest)?,
        Some(_) => return None,
        None => {
            let (day, rest) = text.split_once(' ')?;
            if !SHORT.contains(&day) {
                return None;
            }
            read_date("%b %e %H:%M:%S %Y", rest)?
        }
    };
    // The last day of the calendar lies beyond the last instant: it is as far off as time goes.
    Some(Offset::UTC.to_timestamp(parsed).map_or(Timestamp::MAX, Timestamp::from_jiff))
}

fn read_date(format: &str, text: &str) -> Option<DateTime> {
    strtime::parse(format, text).ok()?.to_datetime().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Duration = Duration::from_secs(86_400);

    /// 2026-09-20T10:00:00Z.
    fn ten() -> Timestamp {
        "2026-09-20T10:00:00Z".parse().map(Timestamp::from_jiff).unwrap()
    }

    fn wait(value: &str) -> Option<u64> {
        read(value, None, ten(), HORIZON).map(|after| after.wait.as_secs())
    }

    #[test]
    fn all_three_forms_of_a_date_are_read() {
        for text in
            ["Sun, 20 Sep 2026 10:02:00 GMT", "Sunday, 20-Sep-26 10:02:00 GMT", "Sun Sep 20 10:02:00 2026"]
        {
            assert_eq!(wait(text), Some(120), "{text}");
        }
        assert_eq!(http_date("Sun Nov  6 08:49:37 1994"), http_date("Sun, 06 Nov 1994 08:49:37 GMT"));
    }

    #[test]
    fn a_date_is_read_against_the_answers_own_date() {
        let after =
            read("Sun, 20 Sep 2026 11:02:00 GMT", Some("Sun, 20 Sep 2026 11:00:00 GMT"), ten(), HORIZON);
        assert_eq!(after, Some(RetryAfter { wait: Duration::from_secs(120), beyond_horizon: false }));
    }

    #[test]
    fn what_is_not_a_wait_counts_as_absent_and_never_as_zero() {
        for text in [
            "Sun, 31 Feb 2026 99:00:00 GMT",
            "Tue, 31 Feb 2026 09:00:00 GMT",
            "soon",
            "",
            "-3",
            "+3",
            "1e3",
            "3s",
            "2026",
            ".",
        ] {
            assert_eq!(wait(text), if text == "2026" { Some(2026) } else { None }, "{text:?}");
        }
    }

    #[test]
    fn a_decimal_rounds_up_and_a_past_date_is_zero() {
        assert_eq!(wait("1.5"), Some(2));
        assert_eq!(wait("2.0"), Some(2));
        assert_eq!(wait("0"), Some(0));
        assert_eq!(wait("Sun, 20 Sep 2026 09:59:59 GMT"), Some(0));
        assert_eq!(wait(" 60 "), Some(60));
    }

    #[test]
    fn an_absurd_wait_is_clamped_to_the_horizon_and_flagged() {
        for text in ["9999999999", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            let after = read(text, None, ten(), HORIZON).unwrap();
            assert_eq!((after.wait, after.beyond_horizon), (HORIZON, true), "{text}");
        }
    }
}
