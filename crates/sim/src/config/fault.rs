//! How a channel misbehaves, and when.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{RetryAfter, some_span, span};

/// A share of calls, in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// All calls.
    pub const ALL: Self = Self(1_000_000);

    /// `ppm` calls in a million, at most all.
    pub fn per_million(ppm: u32) -> Self {
        Self(ppm.min(1_000_000))
    }

    /// `percent` calls in a hundred, at most all.
    pub fn percent(percent: u32) -> Self {
        Self::per_million(percent.saturating_mul(10_000))
    }

    /// Parts per million.
    pub fn ppm(self) -> u32 {
        self.0
    }

    /// Reads `0.05`, `1`, at most six digits after the point.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let part = part.trim_end_matches('0');
        if part.len() > 6 || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return None;
        }
        let part: u32 = format!("{part:0<6}").parse().ok()?;
        let ppm = whole.parse::<u32>().ok()?.checked_mul(1_000_000)?.checked_add(part)?;
        (ppm <= 1_000_000).then_some(Self(ppm))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text = format!("{}.{:06}", self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let number: serde_json::Number = text.parse().map_err(serde::ser::Error::custom)?;
        number.serialize(to)
    }
}

/// What a channel does instead of answering well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// Answers this status; nothing is applied.
    Status {
        /// The status.
        status: u16,
        /// The `Retry-After` it carries, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after: Option<RetryAfter>,
        /// The body, if not the usual JSON error.
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<String>,
    },
    /// Answers 302 to this place; nothing is applied.
    Redirect {
        /// Where to.
        location: String,
    },
    /// Closes the connection without an answer byte; nothing is applied.
    Cut,
    /// Applies, then closes the connection without an answer byte.
    CommitThenCut,
    /// Applies, then answers this status.
    CommitThenStatus {
        /// The status.
        status: u16,
    },
    /// Applies, then cuts the connection in the middle of the answer's body.
    CutInAnswer,
    /// Never answers; nothing is applied.
    Hang,
    /// Applies, then never answers.
    CommitThenHang,
    /// Applies, then answers a few bytes at a time.
    Drip {
        /// Between two pieces.
        #[serde(serialize_with = "span")]
        interval: Duration,
    },
    /// Applies, then answers with a body of this size.
    Huge {
        /// How many bytes.
        bytes: u64,
    },
    /// Bytes that are not HTTP; nothing is applied.
    Garbage,
    /// The connection is refused: the call does not arrive.
    Refuse,
    /// Takes this much longer, and is otherwise well.
    Slow {
        /// How much longer.
        #[serde(serialize_with = "span")]
        by: Duration,
    },
}

/// A way to misbehave and the calls it strikes: those that meet every condition given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What happens.
    #[serde(flatten)]
    pub act: Act,
    /// How many of the calls that meet the other conditions.
    pub share: Share,
    /// Only calls to this endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Only calls for these properties; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
    /// Only the calls with these numbers, counted from 1 over those that meet the conditions above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nth: Vec<u64>,
    /// Only every so many-th of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Only from this offset on.
    #[serde(serialize_with = "span")]
    pub at: Duration,
    /// Only for this long.
    #[serde(rename = "for", serialize_with = "some_span", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
    /// Only so many times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

impl Fault {
    /// Strikes every call.
    pub fn new(act: Act) -> Self {
        Self {
            act,
            share: Share::ALL,
            endpoint: None,
            properties: Vec::new(),
            nth: Vec::new(),
            every: None,
            at: Duration::ZERO,
            lasts: None,
            times: None,
        }
    }

    /// Answers `status` to every call.
    pub fn status(status: u16) -> Self {
        Self::new(Act::Status { status, retry_after: None, body: None })
    }

    /// Only this share of calls.
    #[must_use]
    pub fn share(mut self, share: Share) -> Self {
        self.share = share;
        self
    }

    /// Only calls to this endpoint.
    #[must_use]
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Only calls for this property; may be given several times.
    #[must_use]
    pub fn property(mut self, property: impl Into<String>) -> Self {
        self.properties.push(property.into());
        self
    }

    /// Only the `n`-th call, from 1; may be given several times.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.nth.push(n);
        self
    }

    /// Only the first `times` calls that it would strike.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Only from `at` on, for `lasts`.
    #[must_use]
    pub fn during(mut self, at: Duration, lasts: Duration) -> Self {
        self.at = at;
        self.lasts = Some(lasts);
        self
    }
}

/// A time in which a channel is away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// When it begins, after the start.
    #[serde(serialize_with = "span")]
    pub at: Duration,
    /// How long it lasts.
    #[serde(rename = "for", serialize_with = "span")]
    pub lasts: Duration,
    /// What callers see.
    pub kind: OutageKind,
}

/// What callers see while a channel is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OutageKind {
    /// 503 without `Retry-After`.
    #[serde(rename = "503")]
    Unavailable,
    /// Connections are refused.
    #[serde(rename = "refuse")]
    Refuse,
    /// Connections are closed without an answer byte.
    #[serde(rename = "cut")]
    Cut,
    /// No answer comes.
    #[serde(rename = "hang")]
    Hang,
}

impl OutageKind {
    /// Reads its name.
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "503" => Some(Self::Unavailable),
            "refuse" => Some(Self::Refuse),
            "cut" => Some(Self::Cut),
            "hang" => Some(Self::Hang),
            _ => None,
        }
    }
}
