//! The health of a lane: what its last answers mean for the next call.
//!
//! A pure state machine, kept with the ledger as JSON. It decides pauses, the breaker and the
//! suspension of a lane; it does not know mutations.

use std::time::Duration;

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::retry::RetryPolicy;
use crate::retry::after::RetryAfter;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// Failures in a row that open the breaker.
const BREAKER_OPENS_AT: u32 = 5;
/// Equal refusals in a row that suspend the lane.
const SUSPENDS_AT: u32 = 20;

/// What the last answers of a lane say about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Failures in a row: 429, 5xx, no connection, unknown outcome.
    pub failures: u32,
    /// 429s in a row, those of one volley counted once.
    pub throttles: u32,
    /// Whether the breaker is open.
    pub open: bool,
    /// Failed probes since the breaker opened.
    pub failed_probes: u32,
    /// Whether the next call goes alone until one is answered.
    pub probing: bool,
    /// Calls sent before this instant belong to a volley that was already judged.
    pub judged_until: Option<Timestamp>,
    /// The status of the last refusals.
    pub refused_status: u16,
    /// How many of them came in a row with no 2xx between.
    pub refusals: u32,
}

/// An answer, as far as the lane is concerned.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Its meaning.
    pub verdict: Verdict,
    /// Its status, if any.
    pub status: Option<u16>,
    /// The wait it asked for.
    pub retry_after: Option<RetryAfter>,
    /// When the call was sent.
    pub sent_at: Timestamp,
    /// When the answer came.
    pub at: Timestamp,
    /// Whether a 429 here speaks of one property only: then it says nothing about the lane.
    pub of_property: bool,
}

/// What an answer does to the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effect {
    /// The channel asked for a pause until then, or a 429 made us take one.
    pub pause_until: Option<Timestamp>,
    /// The breaker holds until then.
    pub breaker_until: Option<Timestamp>,
    /// The lane is suspended from now on.
    pub suspend: bool,
    /// The breaker closed, or the probe after a pause passed.
    pub recovered: bool,
    /// Whether the attempt counts for the mutation: a failed probe of an open breaker does not.
    pub counted: bool,
}

impl Health {
    /// Takes an answer and says what it does.
    pub fn record(&mut self, answer: Answer, policy: &RetryPolicy, chance: &mut impl Rng) -> Effect {
        match answer.verdict {
            Verdict::Committed if self.of_old_volley(&answer) => self.late(),
            Verdict::Committed => self.committed(),
            Verdict::Rejected => self.rejected(answer),
            Verdict::Unauthorized => Effect::default(),
            Verdict::Throttled if answer.of_property => Effect { counted: true, ..Effect::default() },
            Verdict::Throttled | Verdict::ServerError | Verdict::Network | Verdict::UnknownOutcome => {
                self.failed(answer, policy, chance)
            }
        }
    }

    /// Whether equal refusals have suspended the lane.
    pub const fn suspended(&self) -> bool {
        self.refusals >= SUSPENDS_AT
    }

    /// The lane was resumed by hand: forget the refusals, go alone first.
    pub fn resumed(&mut self) {
        self.refusals = 0;
        self.probing = self.probing || self.open;
    }

    /// Whether the call left before the last pause began: its answer must not end that pause.
    fn of_old_volley(&self, answer: &Answer) -> bool {
        self.judged_until.is_some_and(|until| answer.sent_at < until)
    }

    fn late(&mut self) -> Effect {
        self.refusals = 0;
        Effect { counted: true, ..Effect::default() }
    }

    fn committed(&mut self) -> Effect {
        let recovered = self.open || self.probing;
        *self = Self { judged_until: self.judged_until, ..Self::default() };
        Effect { recovered, counted: true, ..Effect::default() }
    }

    fn rejected(&mut self, answer: Answer) -> Effect {
        let status = answer.status.unwrap_or(0);
        if self.refused_status != status {
            self.refused_status = status;
            self.refusals = 0;
        }
        self.refusals = self.refusals.saturating_add(1);
        let suspend = self.refusals == SUSPENDS_AT;
        if self.of_old_volley(&answer) {
            return Effect { suspend, counted: true, ..Effect::default() };
        }
        // The channel answered: it is there, whatever it thinks of this value.
        let recovered = self.open || self.probing;
        (self.failures, self.throttles, self.failed_probes) = (0, 0, 0);
        (self.open, self.probing) = (false, false);
        Effect { suspend, recovered, counted: true, ..Effect::default() }
    }

    fn failed(&mut self, answer: Answer, policy: &RetryPolicy, chance: &mut impl Rng) -> Effect {
        // Calls of one volley fail together: they are one piece of news, or sixteen 429s in one instant
        // would be waited for like sixteen in a row.
        let of_old_volley = self.of_old_volley(&answer);
        let was_probe = self.open && !of_old_volley;
        let was_open = self.open;
        self.failures = self.failures.saturating_add(1);
        if answer.verdict == Verdict::Throttled && !of_old_volley {
            self.throttles = self.throttles.saturating_add(1);
        }
        if was_probe {
            self.failed_probes = self.failed_probes.saturating_add(1);
        }
        self.open = self.open || self.failures >= BREAKER_OPENS_AT;
        let pause_until = self.pause(answer, of_old_volley, policy, chance).map(|wait| answer.at + wait);
        let breaker_until = (self.open && (was_probe || !was_open))
            .then(|| answer.at + policy.wait(self.failed_probes.saturating_add(1), chance));
        if pause_until.is_some() || breaker_until.is_some() {
            self.probing = true;
            self.judged_until = Some(answer.at);
        }
        Effect { pause_until, breaker_until, suspend: false, recovered: false, counted: !was_probe }
    }

    /// How long the lane pauses, if at all.
    fn pause(
        &self,
        answer: Answer,
        of_old_volley: bool,
        policy: &RetryPolicy,
        chance: &mut impl Rng,
    ) -> Option<Duration> {
        match (answer.retry_after, answer.verdict) {
            (Some(after), Verdict::Throttled) if after.wait.is_zero() && self.throttles > 1 => {
                Some(policy.floor(self.throttles - 1))
            }
            (Some(after), _) => Some(after.wait),
            (None, Verdict::Throttled) if !of_old_volley => Some(policy.wait(self.throttles, chance)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
