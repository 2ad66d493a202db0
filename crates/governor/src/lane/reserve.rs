//! Reserve: ask the limiter for what the lane could send now.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ota_governor_core::mutation::Priority;
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;

use super::Lane;
use crate::limiter::{Ask, Grant, LimiterError, Permit};

type Asking = Pin<Box<dyn Future<Output = Result<Grant, LimiterError>> + Send>>;

/// The lane's place in the limiter's line, if it stands there.
#[derive(Default)]
pub(super) struct Reservation {
    asking: Option<Standing>,
    granted: Option<Result<Grant, LimiterError>>,
}

struct Standing {
    future: Asking,
    priority: Priority,
    want: usize,
    properties: Vec<PropertyId>,
    since: Timestamp,
    lane: Arc<super::LaneConfig>,
    clock: crate::clock::Clock,
}

impl Reservation {
    /// Stands in line for what waits now, and leaves it when nothing does. The place is kept unless
    /// something more urgent came, or other properties.
    pub(super) fn update(&mut self, lane: &Lane) {
        if self.granted.is_some() {
            return;
        }
        let slots = if lane.health.probing { 1 } else { lane.config.max_in_flight };
        let free = slots.saturating_sub(lane.in_flight);
        let want = if lane.config.by_property { free.min(1) } else { free.min(lane.head.ready) };
        let (Some(priority), true) = (lane.head.priority, want > 0) else {
            self.asking = None;
            return;
        };
        let properties = if lane.config.by_property { lane.head.properties.clone() } else { Vec::new() };
        let keep = self.asking.as_ref().is_some_and(|standing| {
            standing.priority <= priority && standing.want <= want && standing.properties == properties
        });
        if keep {
            return;
        }
        let limiter = Arc::clone(&lane.shared.limiter);
        let ask = Ask {
            lane: lane.config.key.clone(),
            priority,
            want,
            cost: 1,
            properties: properties.clone(),
            max_wait: None,
        };
        self.asking = Some(Standing {
            future: Box::pin(async move { limiter.acquire(ask).await }),
            priority,
            want,
            properties,
            since: lane.shared.clock.now(),
            lane: Arc::clone(&lane.config),
            clock: lane.shared.clock.clone(),
        });
    }

    /// The permits granted by now, without waiting.
    ///
    /// # Errors
    /// If the limiter could not answer: that is never a grant.
    pub(super) fn take_ready(&mut self) -> Result<Vec<Permit>, LimiterError> {
        let mut context = Context::from_waker(Waker::noop());
        let _ = self.poll(&mut context);
        match self.granted.take() {
            Some(Ok(Grant::Granted(permits))) => Ok(permits),
            Some(Err(error)) => Err(error),
            // Without `max_wait` and at a cost of one, neither is an answer.
            Some(Ok(Grant::Refused { .. } | Grant::NeverFits { .. })) | None => Ok(Vec::new()),
        }
    }

    /// Returns when permits have been granted; never, if nothing is asked for. Cancel safe.
    pub(super) async fn ready(&mut self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.granted.is_some() {
            return Poll::Ready(());
        }
        let Some(standing) = self.asking.as_mut() else { return Poll::Pending };
        let Poll::Ready(grant) = standing.future.as_mut().poll(context) else { return Poll::Pending };
        let waited = standing.clock.now().since(standing.since);
        if waited.as_millis() > 0 {
            let wait_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            crate::event::of_lane!(
                debug,
                "rate_throttle_wait",
                &standing.lane.key,
                priority = standing.priority.get(),
                wait_ms = wait_ms
            );
        }
        self.asking = None;
        self.granted = Some(grant);
        Poll::Ready(())
    }
}
