//! The dispatch loop of one lane, one file per stage: reserve, claim, send, settle.
//!
//! One task per (channel, account, endpoint) owns the lane's health and its calls in flight. A permit
//! comes first, and only then the mutation: whatever is most urgent at that moment. A parked mutation
//! holds no task and no connection; it is a row with a due time.

mod judge;
mod reserve;
mod send;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use ota_governor_core::health::Health;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::retry::RetryPolicy;
use ota_governor_core::time::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::Pauses;
use crate::holds::Holds;
use crate::ledger::{Claim, Claimed, Head, Hold, HoldCause, Ledger};
use crate::limiter::{Limiter, Permit};
use crate::transport::Transport;
use crate::wire::Wire;
use judge::Judged;
use reserve::Reservation;
use send::Finished;

/// The longest a failing ledger is left alone between two tries.
const LEDGER_RETRY_CAP: Duration = Duration::from_secs(5);
/// Answers settled in one transaction at most.
const SETTLE_AT_ONCE: usize = 512;

/// What lanes share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) limiter: Arc<dyn Limiter>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Clock,
    pub(crate) holds: Holds,
    pub(crate) auth: Auth,
    pub(crate) calls: TaskTracker,
}

/// How a lane is configured.
#[derive(Debug)]
pub(crate) struct LaneConfig {
    pub(crate) key: LaneKey,
    pub(crate) wire: Wire,
    pub(crate) retry: RetryPolicy,
    pub(crate) pauses: Pauses,
    pub(crate) max_in_flight: usize,
    /// Whether its permits are for a property each.
    pub(crate) by_property: bool,
}

/// What a lane is doing, for those who wait for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneView {
    /// Calls in flight.
    pub in_flight: usize,
    /// How many mutations may go as far as their cells go, counted up to a bound.
    pub ready: usize,
    /// When the next parked one is due.
    pub due: Option<Timestamp>,
    /// What holds the lane.
    pub hold: Option<Hold>,
    /// Whether it ended.
    pub ended: bool,
}

impl LaneView {
    /// Whether nothing will move here until a person (or another token) lifts a hold.
    pub fn needs_a_person(&self) -> bool {
        self.in_flight == 0
            && self
                .hold
                .as_ref()
                .is_some_and(|hold| hold.until.is_none() && hold.cause != HoldCause::TokenRefresh)
    }
}

/// A lane at work.
pub(crate) struct Lane {
    shared: Arc<Shared>,
    config: Arc<LaneConfig>,
    health: Health,
    chance: StdRng,
    head: Head,
    in_flight: usize,
    /// Answers judged and not in the ledger yet.
    judged: Judged,
    answers: mpsc::UnboundedReceiver<Finished>,
    answered: mpsc::UnboundedSender<Finished>,
    view: watch::Sender<LaneView>,
    ledger_failures: u32,
    paused_since: Option<Timestamp>,
}

impl Lane {
    pub(crate) fn new(
        shared: Arc<Shared>,
        config: LaneConfig,
        seed: u64,
        view: watch::Sender<LaneView>,
    ) -> Self {
        // Bounded by `max_in_flight`: every sender is a call in flight.
        let (answered, answers) = mpsc::unbounded_channel();
        Self {
            shared,
            config: Arc::new(config),
            health: Health::default(),
            chance: StdRng::seed_from_u64(seed),
            head: Head::default(),
            in_flight: 0,
            judged: Judged::default(),
            answers,
            answered,
            view,
            ledger_failures: 0,
            paused_since: None,
        }
    }

    /// Works until `stop`, then waits for the calls in flight and settles them.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut marks = self.shared.ledger.changes(&self.config.key);
        self.restore().await;
        let mut reservation = Reservation::default();
        let mut look = true;
        loop {
            // The mark is registered before the look: what comes in between is seen by the next turn.
            if marks.has_changed().unwrap_or(false) || look {
                marks.borrow_and_update();
                look = !self.look().await;
            }
            self.show();
            if stop.is_cancelled() {
                drop(reservation);
                self.finish().await;
                return;
            }
            reservation.update(&self);
            let permits = match reservation.take_ready() {
                Ok(permits) => permits,
                Err(error) => {
                    self.complain("reserve", &error);
                    self.back_off().await;
                    continue;
                }
            };
            self.take_answers();
            if !permits.is_empty() || !self.judged.is_empty() {
                look = self.turn(permits).await;
                continue;
            }
            let wake = self.wake_at();
            tokio::select! {
                () = stop.cancelled() => {}
                () = reservation.ready() => {}
                Some(answer) = self.answers.recv() => self.judge(answer),
                changed = marks.changed() => look = changed.is_ok(),
                () = self.shared.clock.sleep_until(wake) => look = true,
            }
        }
    }

    /// Settles what was answered and claims for what was granted: handed in together, so that a store
    /// that commits in groups writes both at once. Returns whether to look at the lane again.
    async fn turn(&mut self, permits: Vec<Permit>) -> bool {
        let settlement = self.judged.settlement(&self.config.key, self.shared.clock.now(), &self.health);
        let claim = (!permits.is_empty()).then(|| Claim {
            lane: self.config.key.clone(),
            now: self.shared.clock.now(),
            picks: permits.iter().map(|permit| permit.property().cloned()).collect(),
        });
        let ledger = Arc::clone(&self.shared.ledger);
        let settled = async {
            match settlement {
                Some(settlement) => Some(ledger.settle(settlement).await),
                None => None,
            }
        };
        let claimed = async {
            match claim {
                Some(claim) => Some(ledger.claim(claim).await),
                None => None,
            }
        };
        let (settled, claimed) = tokio::join!(settled, claimed);
        let mut failed = false;
        match settled {
            Some(Ok(settled)) => self.settled(&settled),
            Some(Err(error)) => {
                // What was judged is kept and written with what comes next.
                self.complain("settle", &error);
                failed = true;
            }
            None => {}
        }
        let look = match claimed {
            Some(Ok(claimed)) => {
                // What was answered while the ledger wrote may ask for a pause: it binds these too.
                self.take_answers();
                self.launch(claimed, permits);
                false
            }
            Some(Err(error)) => {
                // Nothing was claimed as far as we know: the permits go back unused.
                permits.into_iter().for_each(Permit::unused);
                self.complain("claim", &error);
                failed = true;
                true
            }
            None => true,
        };
        if failed {
            self.back_off().await;
        } else {
            self.ledger_failures = 0;
        }
        look
    }

    /// Sends what was claimed, each with its permit; permits left over go back, and so does what came to be
    /// held in the meantime.
    fn launch(&mut self, claimed: Claimed, permits: Vec<Permit>) {
        settle::expired(&claimed.expired);
        let mut permits: Vec<Option<Permit>> = permits.into_iter().map(Some).collect();
        for job in claimed.jobs {
            let Some(permit) = permits.get_mut(job.pick).and_then(Option::take) else { continue };
            self.in_flight += 1;
            if self.shared.holds.binds(&self.config.key, &job.mutation.property_id, self.shared.clock.now()) {
                permit.unused();
                self.give_back(job);
                continue;
            }
            send::spawn(&self.shared, &self.config, job, permit, self.answered.clone());
        }
        permits.into_iter().flatten().for_each(Permit::unused);
        self.head = claimed.head;
    }

    /// Reads what waits. Returns whether that went well.
    async fn look(&mut self) -> bool {
        match self.shared.ledger.head(&self.config.key, self.shared.clock.now()).await {
            Ok(head) => {
                self.head = head;
                true
            }
            Err(error) => {
                self.complain("look", &error);
                self.back_off().await;
                false
            }
        }
    }

    fn take_answers(&mut self) {
        while self.judged.len() < SETTLE_AT_ONCE {
            let Ok(answer) = self.answers.try_recv() else { break };
            self.judge(answer);
        }
    }

    /// When to look again without being told: the next due time, or when a hold ends.
    fn wake_at(&self) -> Timestamp {
        let far = self.shared.clock.now() + Duration::from_secs(60);
        let hold = self.view.borrow().hold.as_ref().and_then(|hold| hold.until);
        [self.head.due, hold].into_iter().flatten().fold(far, Timestamp::min)
    }

    async fn restore(&mut self) {
        match self.shared.ledger.health(&self.config.key).await {
            Ok(Some(json)) => self.health = serde_json::from_str(&json).unwrap_or_default(),
            Ok(None) => {}
            Err(error) => self.complain("health", &error),
        }
    }

    /// Waits for every call in flight and settles it; gives up on a ledger that keeps failing, which
    /// then finds these calls in flight when it is opened again.
    async fn finish(&mut self) {
        while self.in_flight > 0 {
            if self.judged.is_empty()
                && let Some(answer) = self.answers.recv().await
            {
                self.judge(answer);
            }
            self.take_answers();
            self.turn(Vec::new()).await;
            if self.ledger_failures > 5 {
                break;
            }
        }
        self.view.send_modify(|view| {
            view.in_flight = 0;
            view.ended = true;
        });
    }

    fn show(&mut self) {
        let now = self.shared.clock.now();
        let hold = self.shared.holds.of(&self.config.key, now).pop();
        if hold.is_none() && self.paused_since.take().is_some() {
            crate::event::of_lane!(info, "lane_resumed", &self.config.key);
        }
        if let Some(hold) = &hold {
            self.paused_since.get_or_insert(hold.since);
        }
        let suspended = hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::LaneSuspended);
        if !suspended && self.health.suspended() {
            // Somebody resumed it by hand.
            self.health.resumed();
        }
        let view = LaneView {
            in_flight: self.in_flight,
            ready: self.head.ready,
            due: self.head.due,
            hold,
            ended: false,
        };
        self.view.send_if_modified(|old| {
            let changed = *old != view;
            *old = view;
            changed
        });
    }

    fn complain(&mut self, doing: &'static str, error: &dyn std::error::Error) {
        self.ledger_failures = self.ledger_failures.saturating_add(1);
        if self.ledger_failures.is_power_of_two() {
            let cause = error.source().map(ToString::to_string);
            tracing::error!(event = "store_failed", doing, error = %error, cause, failures = self.ledger_failures);
        }
    }

    async fn back_off(&self) {
        let wait = Duration::from_millis(50) * (1 << self.ledger_failures.min(7));
        tokio::time::sleep(wait.min(LEDGER_RETRY_CAP)).await;
    }
}
