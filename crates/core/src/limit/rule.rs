//! A rule in words and figures, for `check` and `status`.

use std::time::Duration;

use super::Rule;
use crate::time::{micros, show_duration};

impl Rule {
    /// The rule in words: `sliding_window 90 per 1m, burst 3`.
    pub fn describe(&self) -> String {
        match self {
            Self::TokenBucket { rate, per, burst } => {
                format!("token_bucket {rate} per {}, burst {burst}", show_duration(*per))
            }
            Self::SlidingWindow { max, per, burst } => {
                format!("sliding_window {max} per {}, burst {burst}", show_duration(*per))
            }
            Self::FixedWindow { max, per, time_zone } => {
                let zone = time_zone.iana_name().unwrap_or("UTC");
                format!("fixed_window {max} per {} ({zone})", show_duration(*per))
            }
            Self::Concurrency { max } => format!("concurrency {max}"),
        }
    }

    /// The time between two calls at full pace; none where the rule sets no pace.
    pub fn pace(&self) -> Option<Duration> {
        let (count, per) = match self {
            Self::TokenBucket { rate, per, .. } => (rate, per),
            Self::SlidingWindow { max, per, .. } | Self::FixedWindow { max, per, .. } => (max, per),
            Self::Concurrency { .. } => return None,
        };
        Some(Duration::from_micros(u64::try_from(micros(*per)).unwrap_or(0).div_ceil(count.get())))
    }

    /// The most calls in the worst trailing window, and its length; for concurrency the most in flight.
    pub fn worst_window(&self) -> (u64, Option<Duration>) {
        match self {
            Self::TokenBucket { rate, per, burst } => (rate.get().saturating_add(burst.get()), Some(*per)),
            Self::SlidingWindow { max, per, .. } => (max.get(), Some(*per)),
            // The end of one window and the beginning of the next.
            Self::FixedWindow { max, per, .. } => (max.get().saturating_mul(2), Some(*per)),
            Self::Concurrency { max } => (max.get(), None),
        }
    }

    /// How far back a call can still count.
    pub fn memory(&self) -> Duration {
        match self {
            Self::TokenBucket { rate, per, burst } => {
                let full = per.as_micros().saturating_mul(u128::from(burst.get())).div_ceil(rate.get().into());
                Duration::from_micros(u64::try_from(full).unwrap_or(u64::MAX))
            }
            Self::SlidingWindow { per, .. } => *per + *per / 1_000 + Duration::from_secs(1),
            Self::FixedWindow { per, .. } => *per + Duration::from_secs(2 * 3_600),
            Self::Concurrency { .. } => Duration::ZERO,
        }
    }
}
