//! The exact arithmetic of one budget.

use std::collections::VecDeque;
use std::time::Duration;

use crate::at::{At, micros};
use crate::clock::Wall;
use crate::config::Rule;

/// What one budget has counted. Which variant it is follows the rule's kind.
#[derive(Clone, Debug)]
pub(crate) enum Meter {
    /// The arrivals counted that may still be in a window, oldest first.
    Sliding(VecDeque<u64>),
    /// The clock window that was counted last.
    Fixed { start: u64, end: u64, count: u64 },
    /// Tokens, in units of 1 / `per` of a token, so that one µs refills exactly `rate` units. Below
    /// zero when calls over the limit count too.
    Bucket { level: i128, at: u64, per: u64 },
    /// Calls in flight.
    Held(u64),
}

impl Meter {
    /// A budget of which nothing is used.
    pub(crate) fn full(rule: &Rule, now: At) -> Self {
        match rule {
            Rule::SlidingWindow { .. } => Self::Sliding(VecDeque::new()),
            Rule::FixedWindow { .. } => Self::Fixed { start: 0, end: 0, count: 0 },
            Rule::TokenBucket { per, burst, .. } => {
                let per = micros(*per).max(1);
                Self::Bucket { level: product(*burst, per), at: now.as_micros(), per }
            }
            Rule::Concurrency { .. } => Self::Held(0),
        }
    }

    /// Whether this meter can go on under `rule`.
    pub(crate) fn fits(&self, rule: &Rule) -> bool {
        matches!(
            (self, rule),
            (Self::Sliding(_), Rule::SlidingWindow { .. })
                | (Self::Fixed { .. }, Rule::FixedWindow { .. })
                | (Self::Bucket { .. }, Rule::TokenBucket { .. })
                | (Self::Held(_), Rule::Concurrency { .. })
        )
    }

    /// Brings it to `now`; with the rule unchanged, doing so early or often changes nothing.
    pub(crate) fn advance(&mut self, rule: &Rule, now: At, wall: Wall) {
        match (self, rule) {
            (Self::Sliding(times), Rule::SlidingWindow { per, .. }) => {
                let per = micros(*per);
                while times.front().is_some_and(|time| time.saturating_add(per) <= now.as_micros()) {
                    times.pop_front();
                }
            }
            (Self::Fixed { start, end, count }, Rule::FixedWindow { per, time_zone, .. }) => {
                if now.as_micros() < *start || now.as_micros() >= *end {
                    (*start, *end) = wall.window(now.as_micros(), *per, time_zone);
                    *count = 0;
                }
            }
            (Self::Bucket { level, at, per }, Rule::TokenBucket { rate, per: new_per, burst }) => {
                let new_per = micros(*new_per).max(1);
                if *per != new_per {
                    *level = level.saturating_mul(i128::from(new_per)).div_euclid(i128::from(*per));
                    *per = new_per;
                }
                let passed = now.as_micros().saturating_sub(*at);
                *level = level.saturating_add(product(passed, *rate)).min(product(*burst, *per));
                *at = now.as_micros().max(*at);
            }
            (Self::Held(_) | Self::Sliding(_) | Self::Fixed { .. } | Self::Bucket { .. }, _) => {}
        }
    }

    /// How long until one call more is admitted; zero if it is now. Call [`advance`](Self::advance) first.
    pub(crate) fn wait(&self, rule: &Rule, now: At) -> Duration {
        let until = |time: u64| Duration::from_micros(time.saturating_sub(now.as_micros()).max(1));
        match (self, rule) {
            (Self::Sliding(times), Rule::SlidingWindow { max, per }) => {
                let max = usize::try_from(*max).unwrap_or(usize::MAX);
                // One more fits when the max-th newest leaves the window.
                match times.len().checked_sub(max) {
                    None => Duration::ZERO,
                    Some(over) => {
                        times.get(over).map_or(*per, |time| until(time.saturating_add(micros(*per))))
                    }
                }
            }
            (Self::Fixed { end, count, .. }, Rule::FixedWindow { max, .. }) => {
                if count < max {
                    Duration::ZERO
                } else {
                    until(*end)
                }
            }
            (Self::Bucket { level, per, .. }, Rule::TokenBucket { rate, .. }) => {
                let short = i128::from(*per).saturating_sub(*level);
                if short <= 0 {
                    return Duration::ZERO;
                }
                let rate = i128::from((*rate).max(1));
                let wait = short.saturating_add(rate.saturating_sub(1)).div_euclid(rate);
                Duration::from_micros(u64::try_from(wait).unwrap_or(u64::MAX))
            }
            (Self::Held(held), Rule::Concurrency { max }) => {
                // When a call in flight will end is not known to the one who counts them.
                if held < max { Duration::ZERO } else { Duration::from_secs(1) }
            }
            (Self::Held(_) | Self::Sliding(_) | Self::Fixed { .. } | Self::Bucket { .. }, _) => {
                Duration::ZERO
            }
        }
    }

    /// Counts a call, admitted or not. Call [`advance`](Self::advance) first.
    pub(crate) fn take(&mut self, rule: &Rule, now: At) {
        match self {
            Self::Sliding(times) => times.push_back(now.as_micros()),
            Self::Fixed { count, .. } => *count = count.saturating_add(1),
            Self::Bucket { level, per, .. } => {
                // A debt is at most one burst, else a storm of refused calls would never be forgiven.
                let floor =
                    if let Rule::TokenBucket { burst, .. } = rule { product(*burst, *per) } else { 0 };
                *level = level.saturating_sub(i128::from(*per)).max(0_i128.saturating_sub(floor));
            }
            Self::Held(held) => *held = held.saturating_add(1),
        }
    }

    /// A call in flight has ended.
    pub(crate) fn release(&mut self) {
        if let Self::Held(held) = self {
            *held = held.saturating_sub(1);
        }
    }
}

fn product(a: u64, b: u64) -> i128 {
    i128::from(a).saturating_mul(i128::from(b))
}
