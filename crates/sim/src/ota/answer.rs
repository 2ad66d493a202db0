//! Answers: their bodies, their dates and the ways to say "not before".

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use crate::at::{At, micros};
use crate::clock::{Wall, asctime, imf, rfc850};
use crate::config::RetryAfter;
use crate::reaction::Answer;

/// The quiet that an answer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// So long from when it leaves.
    For(Duration),
    /// Until this instant.
    Until(At),
}

impl Asked {
    pub(super) fn until(self, left: At) -> At {
        match self {
            Self::For(length) => left + length,
            Self::Until(at) => at,
        }
    }
}

/// When and by which clock an answer leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) at: At,
    pub(super) wall: Wall,
    pub(super) skew: i64,
}

impl Leaving {
    fn second(&self) -> i64 {
        self.wall.at(self.at.as_micros()).div_euclid(1_000_000)
    }

    /// An answer with the headers that every one has.
    pub(super) fn answer(&self, status: u16, body: impl Into<Bytes>) -> Answer {
        let mut answer = Answer {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            headers: HeaderMap::new(),
            body: body.into(),
        };
        set(&mut answer, "content-type", "application/json");
        set(&mut answer, "date", &imf(self.second().saturating_add(self.skew)));
        answer
    }

    /// A failure.
    pub(super) fn error(&self, status: u16, code: &str, detail: &str) -> Answer {
        self.answer(status, json!({ "error": code, "detail": detail }).to_string())
    }

    /// Writes a `Retry-After` into an answer; returns the quiet it asks for, as a strict reader
    /// understands it. `wait` is what is true, for the forms that say so.
    pub(super) fn retry_after(
        &self,
        answer: &mut Answer,
        form: &RetryAfter,
        wait: Duration,
    ) -> Option<Asked> {
        let date = |given: &Option<Duration>, show: fn(i64) -> String| {
            let wait = given.unwrap_or(wait);
            let due = self.wall.at((self.at + wait).as_micros());
            let second = due.saturating_add(999_999).div_euclid(1_000_000);
            let until = At::from_micros(self.wall.back(second.saturating_mul(1_000_000)));
            (show(second.saturating_add(self.skew)), Some(Asked::Until(until)))
        };
        let seconds = |secs: u64| (secs.to_string(), Some(Asked::For(Duration::from_secs(secs))));
        let (text, asked) = match form {
            RetryAfter::Absent => return None,
            RetryAfter::Exact => seconds(micros(wait).div_ceil(1_000_000).max(1)),
            RetryAfter::Seconds(secs) => seconds(*secs),
            RetryAfter::ImfFixdate(given) => date(given, imf),
            RetryAfter::Rfc850(given) => date(given, rfc850),
            RetryAfter::Asctime(given) => date(given, asctime),
            RetryAfter::Decimal(given) => {
                let tenths = micros(given.unwrap_or(wait)).div_ceil(100_000);
                let text = format!("{}.{}", tenths.div_euclid(10), tenths.rem_euclid(10));
                (text, Some(Asked::For(Duration::from_millis(tenths.saturating_mul(100)))))
            }
            RetryAfter::Past => (imf(self.second().saturating_sub(3_600).saturating_add(self.skew)), None),
            RetryAfter::Raw(text) => (text.clone(), plain(text).map(Asked::For)),
        };
        set(answer, "retry-after", &text);
        asked.filter(|asked| asked.until(self.at) > self.at)
    }
}

/// Digits, or a decimal; everything else asks for nothing.
fn plain(text: &str) -> Option<Duration> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(whole) || !digits(part) {
        return None;
    }
    let secs = whole.parse().unwrap_or(u64::MAX);
    let part: String = part.chars().take(6).collect();
    let below = format!("{part:0<6}").parse().unwrap_or(0);
    Some(Duration::from_secs(secs).saturating_add(Duration::from_micros(below)))
}

/// Sets a header; a text that cannot stand in one is left out.
pub(super) fn set(answer: &mut Answer, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        answer.headers.insert(HeaderName::from_static(name), value);
    }
}
