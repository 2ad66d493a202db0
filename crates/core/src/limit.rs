//! Limits: what they are, and the exact arithmetic of what may leave when.
//!
//! A call leaves at its grant and reaches the channel at an unknown instant between then and its
//! answer. Every rule here holds for *whatever* that instant was: a call counts from its grant on, and
//! where a rule forgets, it forgets from the answer on. All of it is integers; a refusal changes nothing.

mod bucket;
mod budget;
mod concurrency;
mod describe;
mod fixed;
mod pacing;
mod sliding;

use std::num::NonZeroU64;
use std::time::Duration;

use jiff::tz::TimeZone;

pub use self::budget::Budget;
pub use self::describe::WorstWindow;
use crate::name::LimitName;

/// One rule of a channel, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Its name: the one configured under `[limits.NAME]`, or derived from its place
    /// (`booking_com/rates.limits[0]`).
    pub name: LimitName,
    /// What it admits.
    pub rule: Rule,
    /// What it counts by.
    pub each: Each,
}

/// What a limit counts by, besides channel and account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Each {
    /// One budget per channel and account (for a named limit: one budget for all that list it).
    Account,
    /// One budget per property.
    Property,
    /// One budget per egress, whatever the account.
    Egress,
}

/// What a limit admits.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// Continuous refill: `rate` calls per `per`, at most `burst` at once.
    TokenBucket {
        /// Calls per `per`.
        rate: NonZeroU64,
        /// The period.
        per: Duration,
        /// Most calls at once.
        burst: NonZeroU64,
    },
    /// Never more than `max` in any trailing `per`; inside it paced like a bucket of max/per with `burst`.
    SlidingWindow {
        /// Most calls in any trailing `per`.
        max: NonZeroU64,
        /// The window.
        per: Duration,
        /// Most calls at once.
        burst: NonZeroU64,
    },
    /// At most `max` per window of the clock; days and longer reset at midnight of `time_zone`.
    FixedWindow {
        /// Most calls per window.
        max: NonZeroU64,
        /// The length of a window.
        per: Duration,
        /// Where the clock hangs.
        time_zone: TimeZone,
    },
    /// At most `max` calls in flight.
    Concurrency {
        /// Most calls in flight.
        max: NonZeroU64,
    },
}
