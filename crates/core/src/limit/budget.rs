//! A budget: what is left of one limit.

use super::bucket::Bucket;
use super::fixed::Fixed;
use super::sliding::Sliding;
use super::Rule;
use crate::time::Timestamp;

/// Whether a call fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Now.
    Now,
    /// Not before then; exactly then if nothing is in flight.
    At(Timestamp),
    /// Its cost is more than the limit ever admits.
    Never,
}

impl Fit {
    pub(super) fn at(now: Timestamp, at: Timestamp) -> Self {
        if at <= now { Self::Now } else { Self::At(at) }
    }
}

/// The state of one limit. A call is taken when it is granted, and settled when it is answered: it can
/// have arrived at any moment between. Refusals change nothing.
#[derive(Debug, Clone)]
pub struct Budget {
    kind: Kind,
    /// Time handed in never goes back here.
    now: Timestamp,
    max: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Sliding(Sliding),
    Bucket(Bucket),
    Fixed(Fixed),
    Concurrency { in_flight: u64 },
}

impl Budget {
    /// The full budget of a rule.
    pub fn new(rule: &Rule) -> Self {
        let (kind, max) = match rule {
            Rule::TokenBucket { rate, per, burst } => {
                (Kind::Bucket(Bucket::new(*rate, *per, *burst)), burst.get())
            }
            Rule::SlidingWindow { max, per, burst } => {
                (Kind::Sliding(Sliding::new(*max, *per, *burst)), max.get())
            }
            Rule::FixedWindow { max, per, time_zone } => {
                (Kind::Fixed(Fixed::new(*max, *per, time_zone.clone())), max.get())
            }
            Rule::Concurrency { max } => (Kind::Concurrency { in_flight: 0 }, max.get()),
        };
        Self { kind, now: Timestamp::MIN, max }
    }

    fn clamp(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// Whether a call of this cost fits.
    pub fn fits(&mut self, now: Timestamp, cost: u64) -> Fit {
        let now = self.clamp(now);
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.fits(now, cost),
            Kind::Bucket(bucket) => bucket.fits(now, cost),
            Kind::Fixed(fixed) => fixed.fits(now, cost),
            Kind::Concurrency { .. } if cost > self.max => Fit::Never,
            // When the next answer comes nobody can say: look again at it.
            Kind::Concurrency { in_flight } if *in_flight + cost > self.max => Fit::At(Timestamp::MAX),
            Kind::Concurrency { .. } => Fit::Now,
        }
    }

    /// Takes a call that fits.
    pub fn take(&mut self, now: Timestamp, cost: u64) {
        let now = self.clamp(now);
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.take(now, cost),
            Kind::Bucket(bucket) => bucket.take(cost),
            Kind::Fixed(fixed) => fixed.take(cost),
            Kind::Concurrency { in_flight } => *in_flight += cost,
        }
    }

    /// A call granted at `granted` was answered, or given up, at `answered`.
    pub fn settle(&mut self, granted: Timestamp, answered: Timestamp, cost: u64) {
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.settle(answered, cost),
            Kind::Bucket(bucket) => bucket.settle(answered, cost),
            Kind::Fixed(fixed) => fixed.settle(granted, answered, cost),
            Kind::Concurrency { in_flight } => *in_flight = in_flight.saturating_sub(cost),
        }
    }

    /// A call was never made: as if it had not been taken.
    pub fn give_back(&mut self, cost: u64) {
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.give_back(cost),
            Kind::Bucket(bucket) => bucket.give_back(cost),
            Kind::Fixed(fixed) => fixed.give_back(cost),
            Kind::Concurrency { in_flight } => *in_flight = in_flight.saturating_sub(cost),
        }
    }

    /// Calls that may leave right now.
    pub fn left(&mut self, now: Timestamp) -> u64 {
        let now = self.clamp(now);
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.left(now),
            Kind::Bucket(bucket) => bucket.left(now),
            Kind::Fixed(fixed) => self.max.saturating_sub(fixed.used(now)),
            Kind::Concurrency { in_flight } => self.max.saturating_sub(*in_flight),
        }
    }

    /// Calls that count against the limit: in its window, in its bucket, or in flight.
    pub fn used(&mut self, now: Timestamp) -> u64 {
        let now = self.clamp(now);
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.used(now),
            Kind::Bucket(bucket) => bucket.max().saturating_sub(bucket.left(now)),
            Kind::Fixed(fixed) => fixed.used(now),
            Kind::Concurrency { in_flight } => *in_flight,
        }
    }

    /// The most it admits at once or per window.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Whether it is full again: forgetting it changes nothing.
    pub fn is_idle(&mut self, now: Timestamp) -> bool {
        let now = self.clamp(now);
        match &mut self.kind {
            Kind::Sliding(sliding) => sliding.is_idle(now),
            Kind::Bucket(bucket) => bucket.is_idle(now),
            Kind::Fixed(fixed) => fixed.is_idle(now),
            Kind::Concurrency { in_flight } => *in_flight == 0,
        }
    }
}
