//! Send: one task per call, from the token to the answer.

use std::sync::Arc;

use ota_governor_core::time::Timestamp;
use tokio::sync::mpsc;

use super::{LaneConfig, Shared};
use crate::ledger::Job;
use crate::limiter::Permit;
use crate::token::{Token, TokenError};
use crate::transport::Reply;

/// A call that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) job: Job,
    pub(super) sent_at: Timestamp,
    pub(super) answered_at: Timestamp,
    pub(super) came: Came,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Came {
    /// It was sent with this token.
    Sent { reply: Reply, token: Token },
    /// There was no token to send it with.
    NoToken(TokenError),
}

/// Sends the job and reports. The receiver outlives every call of its lane.
pub(super) fn spawn(
    shared: &Arc<Shared>,
    config: &Arc<LaneConfig>,
    job: Job,
    permit: Permit,
    answered: mpsc::UnboundedSender<Finished>,
) {
    let (shared, config) = (Arc::clone(shared), Arc::clone(config));
    let tracker = shared.calls.clone();
    tracker.spawn(async move {
        let sent_at = shared.clock.now();
        let came = match shared.auth.token(&config.key).await {
            Ok(token) => {
                let call = config.wire.call(&job, &token.secret);
                let reply = shared.transport.send(call).await;
                permit.answered();
                Came::Sent { reply, token }
            }
            Err(error) => {
                permit.unused();
                Came::NoToken(error)
            }
        };
        let answered_at = match &came {
            Came::Sent { reply: Reply::Answered { at, .. }, .. } => *at,
            Came::Sent { .. } | Came::NoToken(_) => shared.clock.now(),
        };
        // The lane is gone only if the process is going: the ledger finds the call in flight then.
        let _ = answered.send(Finished { job, sent_at, answered_at, came });
    });
}
