//! The events of the log: one line each, with the same names and keys everywhere.
//!
//! A wait or a refusal costs one line, not one per look.

use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::Mutation;
use ota_governor_core::name::CorrelationId;

use crate::ledger::{Admission, Hold, HoldCause, Job};

pub(crate) fn plan(mutation: &Mutation) -> &str {
    mutation.rate_plan_code.as_ref().map_or("", |plan| plan.as_str())
}

macro_rules! about {
    ($level:ident, $event:literal, $mutation:expr $(, $key:ident = $value:expr)* $(,)?) => {{
        let mutation: &ota_governor_core::mutation::Mutation = $mutation;
        tracing::$level!(
            event = $event,
            ota = mutation.ota.as_str(),
            endpoint = mutation.kind().endpoint(),
            account = mutation.account.as_str(),
            rate_plan_code = $crate::event::plan(mutation),
            correlation_id = mutation.correlation_id.as_str(),
            priority = mutation.priority.get(),
            $($key = $value,)*
        );
    }};
}

macro_rules! of_lane {
    ($level:ident, $event:literal, $lane:expr $(, $key:ident = $value:expr)* $(,)?) => {{
        let lane: &ota_governor_core::lane::LaneKey = $lane;
        tracing::$level!(
            event = $event,
            ota = lane.channel.as_str(),
            endpoint = lane.endpoint.as_str(),
            account = lane.account.as_str(),
            $($key = $value,)*
        );
    }};
}

pub(crate) use {about, of_lane};

/// A mutation was accepted, and what it superseded with it.
pub(crate) fn enqueued(mutation: &Mutation, admission: &Admission) {
    let Admission::Accepted { superseded, .. } = admission else { return };
    about!(info, "enqueued", mutation);
    for older in superseded {
        self::superseded(mutation, older);
    }
}

/// A newer value of its cell took the place of `older`.
fn superseded(by: &Mutation, older: &CorrelationId) {
    tracing::info!(
        event = "superseded",
        ota = by.ota.as_str(),
        endpoint = by.kind().endpoint(),
        account = by.account.as_str(),
        rate_plan_code = plan(by),
        correlation_id = older.as_str(),
        priority = by.priority.get(),
        superseded_by = by.correlation_id.as_str(),
    );
}

/// What an in-flight mutation settled as.
pub(crate) fn settled(job: &Job, event: &Settling<'_>) {
    let mutation = &job.mutation;
    let attempt = job.attempts.saturating_add(1);
    match event {
        Settling::Committed { confirmation_id, status } => {
            about!(
                info,
                "committed",
                mutation,
                attempt = attempt,
                status = *status,
                confirmation_id = *confirmation_id
            );
        }
        Settling::Deferred { reason, status, retry_after, wait_ms } => {
            if *status == Some(429) {
                about!(
                    warn,
                    "ota_throttled",
                    mutation,
                    attempt = attempt,
                    status = *status,
                    retry_after = *retry_after
                );
            }
            about!(
                warn,
                "deferred",
                mutation,
                attempt = attempt,
                reason = *reason,
                status = *status,
                wait_ms = *wait_ms
            );
        }
        Settling::DeadLettered { reason, status } => {
            about!(error, "dead_lettered", mutation, attempt = attempt, reason = *reason, status = *status);
        }
        Settling::Superseded => about!(info, "superseded", mutation, attempt = attempt),
    }
}

/// The cases of [`settled`].
pub(crate) enum Settling<'a> {
    Committed { confirmation_id: &'a str, status: Option<u16> },
    Deferred { reason: &'a str, status: Option<u16>, retry_after: Option<&'a str>, wait_ms: u64 },
    DeadLettered { reason: &'a str, status: Option<u16> },
    Superseded,
}

/// A hold came into force on account of this lane.
pub(crate) fn held(lane: &LaneKey, hold: &Hold, wait_ms: Option<u64>) {
    let reason = hold.detail.as_str();
    match hold.cause {
        HoldCause::LaneSuspended => of_lane!(error, "lane_suspended", lane, reason = reason),
        HoldCause::AccountSuspended => of_lane!(error, "account_suspended", lane, reason = reason),
        HoldCause::TokenRefresh => of_lane!(warn, "token_refresh_requested", lane, reason = reason),
        HoldCause::Throttled | HoldCause::Breaker | HoldCause::Manual => {
            of_lane!(warn, "lane_paused", lane, reason = reason, wait_ms = wait_ms);
        }
    }
}
