//! Settle: what the ledger made of the answers, told to the log.

use ota_governor_core::state::State;

use super::Lane;
use crate::event::{self, Settling};
use crate::ledger::{Disposition, Expired, Job, Outcome, Settled};

impl Lane {
    /// The ledger has written what was judged.
    pub(super) fn settled(&mut self, settled: &[Settled]) {
        let judged = std::mem::take(&mut self.judged);
        self.shared.holds.stored(&judged.holds, &judged.lifted);
        self.in_flight = self.in_flight.saturating_sub(judged.jobs.len());
        let states = settled.iter().map(|settled| settled.state);
        for ((job, outcome), state) in judged.jobs.iter().zip(&judged.outcomes).zip(states) {
            tell(job, outcome, state);
        }
    }
}

fn tell(job: &Job, outcome: &Outcome, state: State) {
    let attempt = outcome.attempt.as_ref();
    let status = attempt.and_then(|attempt| attempt.status);
    let event = match &outcome.disposition {
        _ if state == State::Superseded => Settling::Superseded,
        Disposition::Committed { confirmation_id } => Settling::Committed { confirmation_id, status },
        Disposition::Deferred { reason, due } => {
            let from = attempt.map_or(*due, |attempt| attempt.answered_at);
            Settling::Deferred {
                reason: reason.as_str(),
                status,
                retry_after: attempt.and_then(|attempt| attempt.retry_after.as_deref()),
                wait_ms: u64::try_from(due.since(from).as_millis()).unwrap_or(u64::MAX),
            }
        }
        Disposition::DeadLettered { reason } => Settling::DeadLettered { reason: reason.as_str(), status },
        Disposition::Returned => return,
    };
    event::settled(job, &event);
}

/// Mutations that passed their time before a permit came.
pub(super) fn expired(expired: &[Expired]) {
    for Expired { mutation, replaced, .. } in expired {
        let replaced = replaced.as_ref().map(ota_governor_core::name::CorrelationId::as_str);
        event::about!(error, "dead_lettered", mutation, reason = "expired", replaced = replaced);
    }
}
