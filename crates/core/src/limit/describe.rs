//! Limits in words and figures, for people who check a configuration.

use std::fmt;
use std::time::Duration;

use super::Rule;
use crate::time::show_duration;

/// The most calls that a rule lets into any stretch of time as long as its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstWindow {
    /// So many calls.
    pub calls: u64,
    /// In any stretch this long.
    pub per: Duration,
}

/// `at most 60 in any 1m`.
impl fmt::Display for WorstWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} in any {}", self.calls, show_duration(self.per))
    }
}

impl Rule {
    /// The rule in words: `sliding_window 90 per 1m, burst 3`.
    ///
    /// ```
    /// # use std::{num::NonZeroU64, time::Duration};
    /// # use ota_governor_core::limit::Rule;
    /// let rule = Rule::TokenBucket {
    ///     rate: NonZeroU64::new(20).unwrap(),
    ///     per: Duration::from_secs(1),
    ///     burst: NonZeroU64::new(40).unwrap(),
    /// };
    /// assert_eq!(rule.describe(), "token_bucket 20 per 1s, burst 40");
    /// ```
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
                format!("fixed_window {max} per {}, reset on the clock of {zone}", show_duration(*per))
            }
            Self::Concurrency { max } => format!("concurrency {max}"),
        }
    }

    /// The time from one call to the next in the long run, rounded up; `None` for calls in flight.
    pub fn pace(&self) -> Option<Duration> {
        let (calls, per) = match self {
            Self::TokenBucket { rate: calls, per, .. }
            | Self::SlidingWindow { max: calls, per, .. }
            | Self::FixedWindow { max: calls, per, .. } => (calls, per),
            Self::Concurrency { .. } => return None,
        };
        let each = per.as_micros().div_ceil(u128::from(calls.get()));
        Some(Duration::from_micros(u64::try_from(each).unwrap_or(u64::MAX)))
    }

    /// How far back a call can still count, guards and edges included.
    ///
    /// Of a bucket twice its refill: a gap in the first half tells that it was full.
    pub fn memory(&self) -> Duration {
        match self {
            Self::TokenBucket { rate, per, burst } => {
                let full =
                    per.as_micros().saturating_mul(u128::from(burst.get())).div_ceil(rate.get().into());
                Duration::from_micros(u64::try_from(full.saturating_mul(2)).unwrap_or(u64::MAX))
            }
            Self::SlidingWindow { per, .. } => *per + *per / 1_000 + Duration::from_secs(1),
            // A day may be 25 h long.
            Self::FixedWindow { per, .. } => *per + Duration::from_secs(2 * 3_600),
            Self::Concurrency { .. } => Duration::ZERO,
        }
    }

    /// Most calls that leave at once after a quiet spell.
    pub fn burst(&self) -> u64 {
        match self {
            Self::TokenBucket { burst, .. } => burst.get(),
            Self::SlidingWindow { max, burst, .. } => burst.min(max).get(),
            Self::FixedWindow { max, .. } | Self::Concurrency { max } => max.get(),
        }
    }

    /// The most calls in any stretch as long as the period, edges and quiet spells before it included;
    /// `None` for calls in flight.
    ///
    /// A bucket lets its burst and one period's refill through; a fixed window's edge lets two windows' worth.
    pub fn worst_window(&self) -> Option<WorstWindow> {
        match self {
            Self::TokenBucket { rate, per, burst } => {
                Some(WorstWindow { calls: burst.get().saturating_add(rate.get()), per: *per })
            }
            Self::SlidingWindow { max, per, .. } => Some(WorstWindow { calls: max.get(), per: *per }),
            Self::FixedWindow { max, per, .. } => {
                Some(WorstWindow { calls: max.get().saturating_mul(2), per: *per })
            }
            Self::Concurrency { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn a_rule_tells_its_pace_burst_and_worst_window() {
        let n = |n| NonZeroU64::new(n).unwrap();
        let window = Rule::SlidingWindow { max: n(90), per: Duration::from_secs(60), burst: n(3) };
        assert_eq!(window.describe(), "sliding_window 90 per 1m, burst 3");
        assert_eq!(window.pace(), Some(Duration::from_micros(666_667)));
        assert_eq!(window.burst(), 3);
        assert_eq!(window.worst_window().unwrap().to_string(), "at most 90 in any 1m");
        let bucket = Rule::TokenBucket { rate: n(10), per: Duration::from_secs(60), burst: n(10) };
        assert_eq!(bucket.worst_window().unwrap().calls, 20);
        assert_eq!(Rule::Concurrency { max: n(4) }.pace(), None);
    }
}
