//! What is left of one limit: the one type through which stores apply a rule.

use super::Rule;
use super::bucket::Bucket;
use super::concurrency::Concurrency;
use super::fixed::Fixed;
use super::sliding::Sliding;
use crate::time::Timestamp;

/// What is left of one limit.
///
/// A call is taken at its grant and settled at its answer, or given back if it was never made. Time that
/// goes back counts as standing still. A refusal changes nothing.
///
/// ```
/// # use std::{num::NonZeroU64, time::Duration};
/// # use ota_governor_core::{limit::{Budget, Rule}, time::Timestamp};
/// let one = NonZeroU64::MIN;
/// let mut budget = Budget::new(&Rule::TokenBucket { rate: one, per: Duration::from_secs(60), burst: one });
/// let start = Timestamp::from_micros(0);
/// assert!(budget.try_take(start, 1));
/// budget.settle(start, 1);
/// assert!(!budget.try_take(start, 1));
/// let turn = budget.next_at(start, 1);
/// assert_eq!(start.until(turn), Duration::from_secs(60));
/// assert!(budget.try_take(turn, 1));
/// ```
#[derive(Debug, Clone)]
pub struct Budget {
    latest: Timestamp,
    steps_back: u64,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Bucket(Bucket),
    Sliding(Sliding),
    Fixed(Fixed),
    Concurrency(Concurrency),
}

impl Budget {
    /// A full budget of this rule.
    pub fn new(rule: &Rule) -> Self {
        let state = match rule {
            Rule::TokenBucket { rate, per, burst } => State::Bucket(Bucket::new(*rate, *per, *burst)),
            Rule::SlidingWindow { max, per, burst } => State::Sliding(Sliding::new(*max, *per, *burst)),
            Rule::FixedWindow { max, per, time_zone } => {
                State::Fixed(Fixed::new(*max, *per, time_zone.clone()))
            }
            Rule::Concurrency { max } => State::Concurrency(Concurrency::new(*max)),
        };
        Self { latest: Timestamp::MIN, steps_back: 0, state }
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        if now < self.latest {
            self.steps_back = self.steps_back.saturating_add(1);
            return self.latest;
        }
        if now > self.latest || matches!(self.state, State::Fixed(_)) {
            self.latest = now;
            match &mut self.state {
                State::Sliding(sliding) => sliding.advance(now),
                State::Fixed(fixed) => fixed.advance(now),
                State::Bucket(_) | State::Concurrency(_) => {}
            }
        }
        now
    }

    /// The most one call may cost: more can never fit.
    pub fn capacity(&self) -> u64 {
        match &self.state {
            State::Bucket(bucket) => bucket.capacity(),
            State::Sliding(sliding) => sliding.capacity(),
            State::Fixed(fixed) => fixed.capacity(),
            State::Concurrency(concurrency) => concurrency.capacity(),
        }
    }

    /// The most that can be [`used`](Self::used).
    pub fn max(&self) -> u64 {
        match &self.state {
            State::Sliding(sliding) => sliding.max(),
            State::Bucket(_) | State::Fixed(_) | State::Concurrency(_) => self.capacity(),
        }
    }

    /// Whether a call of this cost fits now; takes nothing.
    pub fn fits(&mut self, now: Timestamp, cost: u64) -> bool {
        let now = self.advance(now);
        match &self.state {
            State::Bucket(bucket) => bucket.fits(now, cost),
            State::Sliding(sliding) => sliding.fits(now, cost),
            State::Fixed(fixed) => cost <= fixed.left(),
            State::Concurrency(concurrency) => cost <= concurrency.left(),
        }
    }

    /// Takes a call whether it fits or not: for one that was granted by [`fits`](Self::fits), or made before
    /// this budget began.
    pub fn take(&mut self, now: Timestamp, cost: u64) {
        let now = self.advance(now);
        match &mut self.state {
            State::Bucket(bucket) => bucket.take(cost),
            State::Sliding(sliding) => sliding.take(now, cost),
            State::Fixed(fixed) => fixed.take(cost),
            State::Concurrency(concurrency) => concurrency.take(cost),
        }
    }

    /// Before the calls of a former life are entered: the `first` of those known was sent then.
    ///
    /// Calls before it are not known. Where they may have emptied a bucket it counts as empty but for this
    /// call: to take it for full would hand its burst out again at every restart under load. A first call
    /// younger than a refill met a full bucket, if calls are known for twice as long
    /// ([`Rule::memory`]). Does nothing once anything was taken.
    pub fn resume(&mut self, first: Timestamp, now: Timestamp) {
        if self.latest == Timestamp::MIN
            && let State::Bucket(bucket) = &mut self.state
        {
            bucket.resume(first, now);
        }
    }

    /// Takes a call of this cost if it fits now.
    pub fn try_take(&mut self, now: Timestamp, cost: u64) -> bool {
        let fits = self.fits(now, cost);
        if fits {
            self.take(now, cost);
        }
        fits
    }

    /// A call taken before was answered, or given up, now.
    pub fn settle(&mut self, now: Timestamp, cost: u64) {
        let now = self.advance(now);
        match &mut self.state {
            State::Bucket(bucket) => bucket.settle(now, cost),
            State::Sliding(sliding) => sliding.settle(now, cost),
            State::Fixed(fixed) => fixed.settle(cost),
            State::Concurrency(concurrency) => concurrency.release(cost),
        }
    }

    /// A call granted at `granted_at` was never made: it is as if it had not been taken.
    pub fn give_back(&mut self, granted_at: Timestamp, cost: u64) {
        match &mut self.state {
            State::Bucket(bucket) => bucket.give_back(cost),
            State::Sliding(sliding) => sliding.give_back(granted_at, cost),
            State::Fixed(fixed) => fixed.give_back(cost),
            State::Concurrency(concurrency) => concurrency.release(cost),
        }
    }

    /// The earliest instant at which calls of this cost in all could have been taken one after the other,
    /// if each is answered at once and what is in flight is answered now.
    ///
    /// With nothing in flight it is exact for one call; else it is a lower bound, to be asked again at
    /// the next answer. A result of `now` for a call that does not fit means: only an answer can help.
    pub fn next_at(&mut self, now: Timestamp, cost: u64) -> Timestamp {
        let now = self.advance(now);
        match &self.state {
            State::Bucket(bucket) => bucket.next_at(now, cost),
            State::Sliding(sliding) => sliding.next_at(now, cost),
            State::Fixed(fixed) => fixed.next_at(now, cost),
            State::Concurrency(_) => now,
        }
    }

    /// Calls of cost one that would fit now.
    pub fn left(&mut self, now: Timestamp) -> u64 {
        let now = self.advance(now);
        match &self.state {
            State::Bucket(bucket) => bucket.left(now),
            State::Sliding(sliding) => sliding.left(now),
            State::Fixed(fixed) => fixed.left(),
            State::Concurrency(concurrency) => concurrency.left(),
        }
    }

    /// Calls that count against the limit now.
    pub fn used(&mut self, now: Timestamp) -> u64 {
        let now = self.advance(now);
        match &self.state {
            State::Bucket(bucket) => bucket.capacity().saturating_sub(bucket.left(now)),
            State::Sliding(sliding) => sliding.used(),
            State::Fixed(fixed) => fixed.used(),
            State::Concurrency(concurrency) => concurrency.used(),
        }
    }

    /// Whether it is full and nothing is in flight: only then may it be forgotten.
    pub fn is_idle(&mut self, now: Timestamp) -> bool {
        let now = self.advance(now);
        match &self.state {
            State::Bucket(bucket) => bucket.is_idle(now),
            State::Sliding(sliding) => sliding.is_idle(now),
            State::Fixed(fixed) => fixed.is_idle(),
            State::Concurrency(concurrency) => concurrency.used() == 0,
        }
    }

    /// How often it was told a time before one it had been told already.
    pub const fn steps_back(&self) -> u64 {
        self.steps_back
    }
}

#[cfg(test)]
mod tests;
