//! What answers make of the mutations that were sent.

use std::time::Duration;

use ota_governor_core::lane::Scope;
use ota_governor_core::mutation::Kind;
use ota_governor_core::state::{DeferReason, State};

use super::Factory;
use super::desk::{Desk, at, lane, rate};
use crate::ledger::{Attempt, Disposition, Hold, HoldCause, MutationId, Outcome, Settled, Settlement};

/// A commit is final, with the channel's confirmation for the nightly reconciliation.
pub async fn a_commit_keeps_the_confirmation(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.pass(1);
    let committed = Disposition::Committed { confirmation_id: "conf-77".to_owned() };
    assert_eq!(desk.end(&job, Some(201), committed).await, State::Committed);
    let record = desk.record("r1").await;
    assert_eq!((record.state, record.confirmation_id.as_deref()), (State::Committed, Some("conf-77")));
    assert_eq!((record.last_status, record.attempts, record.requests), (Some(201), 1, 1));
    assert_eq!((record.changed_at, record.reason, record.due), (desk.now, None, None));
    desk.pass(86_400);
    desk.nothing(Kind::Rate).await;
}

/// A parked one shows why and until when, and is not ready before.
pub async fn a_deferral_keeps_its_reason_and_due_time(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    for (number, reason) in (1_u32..).zip(DeferReason::ALL) {
        let id = format!("r{number}");
        desk.accept(at(number, rate(&id, "100", 4))).await;
        let job = desk.take(Kind::Rate, &id).await;
        let due = desk.later(u64::from(number) * 10);
        let state = desk.end(&job, None, Disposition::Deferred { reason: *reason, due }).await;
        assert_eq!(state, State::Deferred);
        let record = desk.record(&id).await;
        assert_eq!((record.reason.as_deref(), record.due), (Some(reason.as_str()), Some(due)));
    }
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!((head.ready, head.priority, head.due), (0, None, Some(desk.later(10))));
}

/// Nothing of what happened to a dead letter is lost.
pub async fn a_dead_letter_keeps_its_whole_history(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let mut history = Vec::new();
    for status in [Some(503), None, Some(422)] {
        desk.pass(10);
        let job = desk.take(Kind::Rate, "r1").await;
        let retry_after = status.map(|_| "soon".to_owned());
        let attempt = Attempt { retry_after, ..desk.attempt(status, true) };
        history.push(attempt.clone());
        let disposition = if status == Some(422) {
            Disposition::DeadLettered { reason: ota_governor_core::state::DeadReason::ClientRejection }
        } else {
            Disposition::Deferred { reason: DeferReason::ServerError, due: desk.later(5) }
        };
        desk.settle(
            Kind::Rate,
            Outcome { id: job.id, attempt: Some(attempt), disposition, rest_until: None },
        )
        .await;
    }
    let desk = desk.crash(factory).await;
    let record = desk.record("r1").await;
    assert_eq!((record.state, record.reason.as_deref()), (State::DeadLettered, Some("client_rejection")));
    assert_eq!((record.last_status, record.last_answer.as_deref()), (Some(422), Some("answer 422")));
    assert_eq!((record.attempts, record.history), (3, history));
}

/// A permit given back leaves a mutation as it was before the claim: waiting, or parked and due.
pub async fn what_was_not_sent_goes_back_to_where_it_stood(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    desk.accept(at(2, rate("r2", "100", 4))).await;
    let job = desk.take(Kind::Rate, "r1").await;
    assert_eq!(desk.end(&job, None, Disposition::Returned).await, State::Queued);
    let record = desk.record("r1").await;
    assert_eq!((record.requests, record.attempts, record.history.len()), (0, 0, 0));
    let job = desk.take(Kind::Rate, "r1").await;
    desk.fail(&job, 10).await;
    desk.pass(10);
    let again = desk.take(Kind::Rate, "r1").await;
    assert_eq!(desk.end(&again, None, Disposition::Returned).await, State::Deferred);
    let record = desk.record("r1").await;
    assert_eq!((record.reason.as_deref(), record.requests), (Some("server_error"), 1));
    desk.take(Kind::Rate, "r1").await;
}

/// Waiting, refusals for a token and failed probes use up no attempt; the requests are still told.
pub async fn only_counted_attempts_count_and_every_request_is_kept(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    for (status, counted) in [(Some(429), true), (Some(401), false), (Some(429), false), (None, true)] {
        let job = desk.take(Kind::Rate, "r1").await;
        let attempt = Some(desk.attempt(status, counted));
        let disposition = Disposition::Deferred { reason: DeferReason::Throttled, due: desk.later(1) };
        desk.settle(Kind::Rate, Outcome { id: job.id, attempt, disposition, rest_until: None }).await;
        desk.pass(1);
    }
    let record = desk.record("r1").await;
    assert_eq!((record.attempts, record.requests, record.throttled), (2, 4, 2));
    assert_eq!(record.last_status, Some(429), "the last status is the last that was answered");
    assert_eq!(desk.take(Kind::Rate, "r1").await.attempts, 2);
}

/// An answer to what is no longer in flight is told the state and changes nothing.
pub async fn an_answer_that_comes_late_changes_nothing(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.commit(&job).await;
    let before = desk.record("r1").await;
    assert_eq!(desk.fail(&job, 10).await, State::Committed);
    assert_eq!(desk.record("r1").await, before);
    let unknown = Outcome { id: MutationId(99), ..late(job.id) };
    assert_eq!(desk.settle(Kind::Rate, unknown).await, vec![]);
    let known = desk.settle(Kind::Rate, late(job.id)).await;
    assert_eq!(known, vec![Settled { id: job.id, state: State::Committed }]);
}

fn late(id: MutationId) -> Outcome {
    Outcome { id, attempt: None, disposition: Disposition::Returned, rest_until: None }
}

/// Health, holds and outcomes are one transaction.
pub async fn lane_state_is_written_with_the_outcomes(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    let scope = Scope::Lane { lane: lane(Kind::Rate) };
    let hold = |cause| Hold {
        scope: scope.clone(),
        cause,
        since: desk.now,
        until: Some(desk.now + Duration::from_secs(30)),
        detail: "429 with Retry-After 30".to_owned(),
    };
    desk.ledger.hold(vec![hold(HoldCause::Breaker)]).await.unwrap();
    let settlement = Settlement {
        lane: lane(Kind::Rate),
        now: desk.now,
        outcomes: vec![Outcome {
            id: job.id,
            attempt: Some(desk.attempt(Some(429), true)),
            disposition: Disposition::Deferred { reason: DeferReason::Throttled, due: desk.later(30) },
            rest_until: None,
        }],
        health: Some("{\"row\":1}".to_owned()),
        holds: vec![hold(HoldCause::Throttled)],
        lifted: vec![(scope.clone(), HoldCause::Breaker)],
    };
    desk.ledger.settle(settlement).await.unwrap();
    desk.balance().await;
    let desk = desk.crash(factory).await;
    assert_eq!(
        desk.ledger.holds().await.unwrap(),
        vec![Hold {
            scope,
            cause: HoldCause::Throttled,
            since: desk.now,
            until: Some(desk.later(30)),
            detail: "429 with Retry-After 30".to_owned(),
        }]
    );
    assert_eq!(desk.ledger.health(&lane(Kind::Rate)).await.unwrap().as_deref(), Some("{\"row\":1}"));
    assert_eq!(desk.state("r1").await, State::Deferred);
}
