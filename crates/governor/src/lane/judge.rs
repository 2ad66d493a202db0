//! Judge: from an answer to what is to be written, and to the holds that bind at once.

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use ota_governor_core::health::{Answer, Effect, Health};
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::retry::after::{self, RetryAfter};
use ota_governor_core::state::{DeadReason, DeferReason};
use ota_governor_core::time::Timestamp;
use ota_governor_core::verdict::Verdict;
use secrecy::ExposeSecret;

use super::Lane;
use super::send::{Came, Finished};
use crate::config::Pauses;
use crate::ledger::{Attempt, Disposition, Hold, HoldCause, Job, Outcome, Settlement};
use crate::token::Token;
use crate::transport::Reply;

/// How much of an answer is kept with the attempt.
const ANSWER_KEPT: usize = 2_048;

/// Answers that were judged and wait to be written.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) jobs: Vec<Job>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) holds: Vec<Hold>,
    pub(super) lifted: Vec<(Scope, HoldCause)>,
    health_changed: bool,
}

impl Judged {
    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// The transaction that writes all of it.
    pub(super) fn settlement(&self, lane: &LaneKey, now: Timestamp, health: &Health) -> Option<Settlement> {
        if self.is_empty() {
            return None;
        }
        Some(Settlement {
            lane: lane.clone(),
            now,
            outcomes: self.outcomes.clone(),
            health: if self.health_changed { serde_json::to_string(health).ok() } else { None },
            holds: self.holds.clone(),
            lifted: self.lifted.clone(),
        })
    }
}

/// An answer, read.
struct Heard {
    verdict: Verdict,
    status: Option<u16>,
    answer: String,
    retry_after: Option<RetryAfter>,
    retry_after_sent: Option<String>,
    confirmation_id: Option<String>,
}

impl Lane {
    /// Judges one answer: the lane's health and its holds change at once, the ledger in the next turn.
    pub(super) fn judge(&mut self, finished: Finished) {
        let Finished { job, sent_at, answered_at, came } = finished;
        let outcome = match came {
            Came::NoToken(error) => {
                self.shared.auth.missing(&self.config.key, &error, answered_at, &self.shared.holds);
                Outcome {
                    id: job.id,
                    attempt: None,
                    disposition: Disposition::Deferred { reason: DeferReason::Auth, due: answered_at },
                    rest_until: None,
                }
            }
            Came::Sent { reply, token } => {
                let heard = self.hear(reply, &token, answered_at);
                self.weigh(&job, &token, sent_at, answered_at, heard)
            }
        };
        self.judged.outcomes.push(outcome);
        self.judged.jobs.push(job);
    }

    /// A claimed mutation that was not sent goes back to where it stood, in the next turn.
    pub(super) fn give_back(&mut self, job: Job) {
        self.judged.outcomes.push(Outcome {
            id: job.id,
            attempt: None,
            disposition: Disposition::Returned,
            rest_until: None,
        });
        self.judged.jobs.push(job);
    }

    fn hear(&self, reply: Reply, token: &Token, at: Timestamp) -> Heard {
        match reply {
            Reply::Answered { status, headers, body, .. } => {
                let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
                let sent = text(RETRY_AFTER);
                let horizon = self.config.retry.retry_after_horizon;
                Heard {
                    verdict: Verdict::of_status(status.as_u16()),
                    status: Some(status.as_u16()),
                    answer: excerpt(&body, token),
                    retry_after: sent.and_then(|sent| after::read(sent, text(DATE), at, horizon)),
                    retry_after_sent: headers
                        .get(RETRY_AFTER)
                        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
                    confirmation_id: confirmation(&headers),
                }
            }
            Reply::NotConnected { detail } => Heard::without_answer(Verdict::Network, detail),
            Reply::Unknown { detail } => Heard::without_answer(Verdict::UnknownOutcome, detail),
        }
    }

    fn weigh(
        &mut self,
        job: &Job,
        token: &Token,
        sent_at: Timestamp,
        at: Timestamp,
        heard: Heard,
    ) -> Outcome {
        let before = self.health.clone();
        let answer = Answer {
            verdict: heard.verdict,
            status: heard.status,
            retry_after: heard.retry_after,
            sent_at,
            at,
            of_property: self.config.pauses == Pauses::Property,
        };
        let effect = self.health.record(answer, &self.config.retry, &mut self.chance);
        self.judged.health_changed |= before != self.health;
        if heard.verdict == Verdict::Unauthorized {
            self.shared.auth.refused(&self.config.key, token.fingerprint, at, &self.shared.holds);
        } else if heard.status.is_some() {
            self.shared.auth.accepted(&self.config.key, token.fingerprint);
        }
        self.obey(job, effect, &heard, at);
        // A request that never left is no attempt, and a refused token is not the mutation's fault.
        let sent = heard.verdict != Verdict::Network;
        let counted = effect.counted && sent && heard.verdict != Verdict::Unauthorized;
        let attempts = job.attempts.saturating_add(u32::from(counted));
        let disposition = self.dispose(job, attempts, counted, effect, &heard, at);
        let rest_until = (heard.verdict == Verdict::UnknownOutcome).then(|| at + self.config.wire.timeout());
        let attempt = sent.then_some(Attempt {
            sent_at,
            answered_at: at,
            status: heard.status,
            answer: Some(heard.answer).filter(|answer| !answer.is_empty()),
            retry_after: heard.retry_after_sent,
            counted,
        });
        Outcome { id: job.id, attempt, disposition, rest_until }
    }

    fn dispose(
        &mut self,
        job: &Job,
        attempts: u32,
        counted: bool,
        effect: Effect,
        heard: &Heard,
        at: Timestamp,
    ) -> Disposition {
        let policy = &self.config.retry;
        let reason = match heard.verdict {
            Verdict::Committed => {
                let confirmation_id = heard.confirmation_id.clone().unwrap_or_else(|| "accepted".to_owned());
                return Disposition::Committed { confirmation_id };
            }
            Verdict::Rejected => {
                return Disposition::DeadLettered { reason: DeadReason::ClientRejection };
            }
            Verdict::Throttled => DeferReason::Throttled,
            Verdict::ServerError => DeferReason::ServerError,
            Verdict::Network => DeferReason::Network,
            Verdict::UnknownOutcome => DeferReason::UnknownOutcome,
            Verdict::Unauthorized => DeferReason::Auth,
        };
        if counted && attempts >= policy.max_attempts {
            return Disposition::DeadLettered { reason: DeadReason::RetryBudgetExhausted };
        }
        let due = match (reason, heard.retry_after) {
            (DeferReason::Auth, _) => at,
            // The lane waits, not the mutation: it goes first when the pause ends.
            (DeferReason::Throttled, _) if self.config.pauses != Pauses::Property => {
                effect.pause_until.unwrap_or(at)
            }
            (_, Some(after)) => at + after.wait,
            (_, None) => at + policy.wait(job.attempts.saturating_add(1), &mut self.chance),
        };
        Disposition::Deferred { reason, due }
    }

    /// Puts the effect's holds in force.
    fn obey(&mut self, job: &Job, effect: Effect, heard: &Heard, at: Timestamp) {
        let key = self.config.key.clone();
        let lane = || Scope::Lane { lane: key.clone() };
        let asked = match (&heard.retry_after_sent, heard.status) {
            (Some(sent), Some(status)) => format!("{status} with Retry-After {sent:?}"),
            (None, Some(status)) => format!("{status} without Retry-After"),
            (_, None) => heard.answer.clone(),
        };
        let new = |scope, cause, until, detail| Some(Hold { scope, cause, since: at, until, detail });
        let mut holds = Vec::new();
        if let Some(until) = self.pause_until(job, effect, heard, at) {
            let scope = match self.config.pauses {
                _ if heard.verdict != Verdict::Throttled => lane(),
                Pauses::Lane => lane(),
                Pauses::Property => Scope::Property {
                    lane: self.config.key.clone(),
                    property: job.mutation.property_id.clone(),
                },
                Pauses::Account => Scope::Account {
                    channel: self.config.key.channel.clone(),
                    account: self.config.key.account.clone(),
                },
            };
            holds.extend(new(scope, HoldCause::Throttled, Some(until), asked.clone()));
        }
        if let Some(until) = effect.breaker_until {
            let detail = format!("{} failures in a row, the last: {asked}", self.health.failures);
            holds.extend(new(lane(), HoldCause::Breaker, Some(until), detail));
        }
        if effect.suspend {
            let detail = format!("{} times in a row {asked}", self.health.refusals);
            holds.extend(new(lane(), HoldCause::LaneSuspended, None, detail));
        }
        if effect.recovered {
            let lifted = (lane(), HoldCause::Breaker);
            self.shared.holds.lift(std::slice::from_ref(&lifted));
            self.judged.lifted.push(lifted);
        }
        if heard.retry_after.is_some_and(|after| after.beyond_horizon) {
            crate::event::of_lane!(error, "retry_after_beyond_horizon", &self.config.key, reason = asked);
        }
        for hold in holds {
            self.hold(hold);
        }
    }

    fn pause_until(&mut self, job: &Job, effect: Effect, heard: &Heard, at: Timestamp) -> Option<Timestamp> {
        let of_property = self.config.pauses == Pauses::Property && heard.verdict == Verdict::Throttled;
        if !of_property {
            return effect.pause_until;
        }
        let own = self.config.retry.wait(job.attempts.saturating_add(1), &mut self.chance);
        Some(at + heard.retry_after.map_or(own, |after| after.wait))
    }

    fn hold(&mut self, hold: Hold) {
        // A pause is never shortened by a later answer of the same volley.
        let longer = self.judged.holds.iter().any(|old| {
            old.scope == hold.scope
                && old.cause == hold.cause
                && old.until.is_none_or(|old| Some(old) > hold.until)
        });
        if longer || self.shared.holds.outlasts(&hold) {
            return;
        }
        let wait = hold.until.map(|until| until.since(hold.since).as_millis());
        crate::event::held(&self.config.key, &hold, wait.and_then(|wait| u64::try_from(wait).ok()));
        self.shared.holds.put(std::slice::from_ref(&hold));
        self.judged.holds.retain(|old| old.scope != hold.scope || old.cause != hold.cause);
        self.judged.lifted.retain(|(scope, cause)| *scope != hold.scope || *cause != hold.cause);
        self.judged.holds.push(hold);
    }
}

impl Heard {
    fn without_answer(verdict: Verdict, detail: String) -> Self {
        Self {
            verdict,
            status: None,
            answer: detail,
            retry_after: None,
            retry_after_sent: None,
            confirmation_id: None,
        }
    }
}

fn confirmation(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("x-ota-confirmation-id")?;
    let text = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// The beginning of an answer as text, without the token, should the channel echo it.
fn excerpt(body: &[u8], token: &Token) -> String {
    let kept = body.get(..ANSWER_KEPT).unwrap_or(body);
    String::from_utf8_lossy(kept).replace(token.secret.expose_secret(), "…")
}
