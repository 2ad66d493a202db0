//! The limits a channel enforces.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::span;

/// One rule of a channel, enforced on calls as they arrive, without grace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Its name in the books and in a 429; without one, its place (`rates.limits[0]`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it admits.
    #[serde(flatten)]
    pub rule: Rule,
    /// What it counts by.
    pub each: Each,
    /// Whether callers are not told of it: a 429 does not name it.
    pub hidden: bool,
    /// Whether calls that are refused, by this limit or another, count in it too.
    pub count_refused: bool,
}

/// What a limit counts by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// One budget for the whole channel, or endpoint if it stands there.
    #[default]
    Account,
    /// One budget per `property_id` of the body.
    Property,
}

/// What a limit admits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rule {
    /// At most `max` calls in `(now - per, now]`, at every `now`.
    SlidingWindow {
        /// Most calls.
        max: u64,
        /// The window.
        #[serde(serialize_with = "span")]
        per: Duration,
    },
    /// At most `max` calls in each window of the wall clock, laid from local midnight on.
    FixedWindow {
        /// Most calls.
        max: u64,
        /// The length of a window, at most a day.
        #[serde(serialize_with = "span")]
        per: Duration,
        /// Where midnight is; a day is 23 or 25 h when the clocks change.
        #[serde(serialize_with = "zone")]
        time_zone: TimeZone,
    },
    /// Starts full with `burst`, refilled continuously with `rate` calls per `per`.
    TokenBucket {
        /// Calls per `per`.
        rate: u64,
        /// The period.
        #[serde(serialize_with = "span")]
        per: Duration,
        /// Most calls at once.
        burst: u64,
    },
    /// At most `max` calls in flight, from their arrival until their answer leaves.
    Concurrency {
        /// Most calls.
        max: u64,
    },
}

fn zone<S: serde::Serializer>(zone: &TimeZone, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(zone.iana_name().unwrap_or("UTC"))
}

impl Limit {
    fn of(rule: Rule) -> Self {
        Self { name: None, rule, each: Each::Account, hidden: false, count_refused: false }
    }

    /// At most `max` calls in any trailing `per`.
    pub fn sliding_window(max: u64, per: Duration) -> Self {
        Self::of(Rule::SlidingWindow { max, per })
    }

    /// At most `max` calls in each `per` of the wall clock of `time_zone`.
    pub fn fixed_window(max: u64, per: Duration, time_zone: TimeZone) -> Self {
        Self::of(Rule::FixedWindow { max, per, time_zone })
    }

    /// `rate` calls per `per`, at most `burst` at once.
    pub fn token_bucket(rate: u64, per: Duration, burst: u64) -> Self {
        Self::of(Rule::TokenBucket { rate, per, burst })
    }

    /// At most `max` calls in flight.
    pub fn concurrency(max: u64) -> Self {
        Self::of(Rule::Concurrency { max })
    }

    /// Names it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Counts by property.
    #[must_use]
    pub fn each_property(mut self) -> Self {
        self.each = Each::Property;
        self
    }

    /// Keeps it from callers.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Counts refused calls too.
    #[must_use]
    pub fn count_refused(mut self) -> Self {
        self.count_refused = true;
        self
    }

    /// The most that its window of length [`per`](Self::per) can admit.
    pub(crate) fn max(&self) -> u64 {
        match &self.rule {
            Rule::SlidingWindow { max, .. } | Rule::FixedWindow { max, .. } | Rule::Concurrency { max } => {
                *max
            }
            Rule::TokenBucket { rate, burst, .. } => rate.saturating_add(*burst),
        }
    }

    /// The length of its window, if it has one.
    pub(crate) fn per(&self) -> Option<Duration> {
        match &self.rule {
            Rule::SlidingWindow { per, .. }
            | Rule::FixedWindow { per, .. }
            | Rule::TokenBucket { per, .. } => Some(*per),
            Rule::Concurrency { .. } => None,
        }
    }
}
