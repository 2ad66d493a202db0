//! The governor: owns the lanes; start, accept, drain, stop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ota_governor_core::lane::LaneKey;
use ota_governor_core::limit::Each;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{self, Auth};
use crate::clock::Clock;
use crate::config::{Channel, Config, Pauses};
use crate::event;
use crate::holds::Holds;
use crate::lane::{Lane, LaneConfig, LaneView, Shared};
use crate::ledger::{Admission, Entry, HoldCause, Ledger, LedgerError};
use crate::limiter::Limiter;
use crate::transport::Transport;
use crate::wire::{Wire, WireError};

/// What a governor is made of.
#[derive(Debug)]
pub struct Parts {
    /// What is configured.
    pub config: Arc<Config>,
    /// Where mutations are kept. This governor is its one dispatcher.
    pub ledger: Arc<dyn Ledger>,
    /// Who may call when.
    pub limiter: Arc<dyn Limiter>,
    /// How calls leave.
    pub transport: Arc<dyn Transport>,
    /// The time.
    pub clock: Clock,
    /// The seed of all jitter.
    pub seed: u64,
}

/// Why a governor could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ledger failed.
    #[error("reading the ledger at start")]
    Ledger(#[from] LedgerError),
    /// A channel's headers cannot be sent.
    #[error("preparing the calls of the lane {lane}")]
    Wire {
        /// The lane.
        lane: LaneKey,
        /// The cause.
        #[source]
        source: WireError,
    },
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every mutation is final.
    Empty,
    /// Nothing more will move until a person, or a new token, lifts a hold.
    Held,
}

/// Paces calls until it is stopped. Dropped without [`Governor::stop`], its lanes end by themselves.
#[derive(Debug)]
pub struct Governor {
    shared: Arc<Shared>,
    config: Arc<Config>,
    lanes: Arc<Lanes>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Lanes {
    running: Mutex<BTreeMap<LaneKey, watch::Receiver<LaneView>>>,
    /// Moves when any lane's view does.
    moved: watch::Sender<u64>,
    seed: u64,
}

impl Governor {
    /// Takes over the ledger and starts a lane for whatever waits in it.
    ///
    /// # Errors
    /// If the ledger cannot be read or a channel cannot be called at all.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let Parts { config, ledger, limiter, transport, clock, seed } = parts;
        let (auth, cases) = Auth::new(&config);
        let rest = config.channels.values().map(longest_timeout).max().unwrap_or_default();
        let recovered = ledger.recover(clock.now(), rest).await?;
        if recovered > 0 {
            tracing::warn!(event = "recovered", count = recovered, reason = "unknown_outcome");
        }
        ledger.key_by_property(lanes_by_property(&config)).await?;
        let holds = Holds::new(Arc::clone(&limiter));
        let shared =
            Arc::new(Shared { ledger, limiter, transport, clock, holds, auth, calls: TaskTracker::new() });
        let governor = Self {
            shared,
            config,
            lanes: Arc::new(Lanes { running: Mutex::default(), moved: watch::channel(0).0, seed }),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        governor.take_over_holds().await?;
        governor.tasks.spawn(auth::work(Arc::downgrade(&governor.shared), cases, governor.stop.clone()));
        governor.tasks.spawn(governor.overseer().run());
        governor.tasks.spawn(prune(
            Arc::clone(&governor.shared),
            governor.config.retention,
            governor.stop.clone(),
        ));
        Ok(governor)
    }

    /// Accepts mutations; durable on return.
    ///
    /// # Errors
    /// If the ledger failed; asking again with the same ids tells what was accepted.
    pub async fn accept(&self, entries: Vec<Entry>) -> Result<Vec<Admission>, LedgerError> {
        let mutations: Vec<_> = entries.iter().map(|entry| entry.mutation.clone()).collect();
        let admissions = self.shared.ledger.enqueue(entries, self.shared.clock.now()).await?;
        for (mutation, admission) in mutations.iter().zip(&admissions) {
            event::enqueued(mutation, admission);
        }
        Ok(admissions)
    }

    /// Waits until every mutation is final, or nothing will move without a person.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn drained(&self) -> Result<Drained, LedgerError> {
        let mut moved = self.lanes.moved.subscribe();
        let mut marks = self.shared.ledger.lane_changes();
        loop {
            moved.borrow_and_update();
            marks.borrow_and_update();
            if let Some(drained) = self.look().await? {
                return Ok(drained);
            }
            // One look a while is enough, however fast calls come and go.
            tokio::time::sleep(Duration::from_millis(10)).await;
            // Marks tell of everything but a lane that ended: look again now and then.
            tokio::select! {
                _ = moved.changed() => {}
                _ = marks.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
    }

    async fn look(&self) -> Result<Option<Drained>, LedgerError> {
        let open = self.shared.ledger.lanes().await?;
        if open.is_empty() {
            return Ok(Some(Drained::Empty));
        }
        let views = self.views();
        let stuck = open.iter().all(|lane| match views.get(lane) {
            Some(view) => view.needs_a_person(),
            None => !is_configured(&self.config, lane),
        });
        Ok(stuck.then_some(Drained::Held))
    }

    /// What each lane is doing.
    pub fn views(&self) -> BTreeMap<LaneKey, LaneView> {
        let running = self.lanes.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().map(|(lane, view)| (lane.clone(), view.borrow().clone())).collect()
    }

    /// Moves when any lane's view does.
    pub fn moved(&self) -> watch::Receiver<u64> {
        self.lanes.moved.subscribe()
    }

    /// Sends nothing more, waits for the calls in flight and writes what became of them. What is left
    /// stays queued.
    ///
    /// # Cancel safety
    /// Dropped, calls in flight are found as of unknown outcome at the next start.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn take_over_holds(&self) -> Result<(), StartError> {
        let holds = self.shared.ledger.holds().await?;
        for hold in &holds {
            match hold.cause {
                // Nobody asks the source any more: the next call finds out.
                HoldCause::TokenRefresh => {
                    self.shared.ledger.lift(&hold.scope, Some(HoldCause::TokenRefresh)).await?;
                }
                HoldCause::AccountSuspended => self.shared.auth.resume_case(hold),
                HoldCause::Throttled | HoldCause::Breaker | HoldCause::LaneSuspended | HoldCause::Manual => {}
            }
        }
        let holds = self.shared.ledger.holds().await?;
        self.shared.holds.reload(holds);
        Ok(())
    }

    fn overseer(&self) -> Overseer {
        Overseer {
            shared: Arc::clone(&self.shared),
            config: Arc::clone(&self.config),
            lanes: Arc::clone(&self.lanes),
            stop: self.stop.clone(),
            started: BTreeSet::new(),
            tasks: TaskTracker::new(),
        }
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// How often finished mutations are looked through for old ones.
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// Removes what is older than the retention, a bounded piece at a time so that sending goes on between.
async fn prune(shared: Arc<Shared>, retention: Duration, stop: CancellationToken) {
    // At the start too: a batch job may never live long enough for the second look.
    loop {
        loop {
            let before = shared.clock.now() - retention;
            match shared.ledger.prune(before, retention).await {
                Ok(0) => break,
                Ok(_) if stop.is_cancelled() => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(event = "store_failed", doing = "prune", error = %error);
                    break;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PRUNE_EVERY) => {}
        }
    }
}

/// Starts lanes as they get work, and carries changed holds from the ledger to the limiter.
struct Overseer {
    shared: Arc<Shared>,
    config: Arc<Config>,
    lanes: Arc<Lanes>,
    stop: CancellationToken,
    started: BTreeSet<LaneKey>,
    tasks: TaskTracker,
}

impl Overseer {
    async fn run(mut self) {
        let mut marks = self.shared.ledger.lane_changes();
        loop {
            marks.borrow_and_update();
            if let Err(error) = self.look().await {
                tracing::error!(event = "store_failed", doing = "oversee", error = %error);
                tokio::time::sleep(Duration::from_millis(500)).await;
                if !self.stop.is_cancelled() {
                    continue;
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => break,
                changed = marks.changed() => if changed.is_err() { break },
            }
        }
        self.stop.cancelled().await;
        self.tasks.close();
        self.tasks.wait().await;
        self.shared.calls.close();
    }

    async fn look(&mut self) -> Result<(), LedgerError> {
        let holds = self.shared.ledger.holds().await?;
        self.shared.holds.reload(holds);
        self.lanes.moved.send_modify(|mark| *mark += 1);
        for lane in self.shared.ledger.lanes().await? {
            if self.started.insert(lane.clone()) {
                self.open(lane);
            }
        }
        Ok(())
    }

    fn open(&mut self, key: LaneKey) {
        let config = match lane_config(&self.config, &key) {
            Ok(Some(config)) => config,
            Ok(None) => {
                event::of_lane!(error, "lane_suspended", &key, reason = "not configured any more");
                return;
            }
            Err(error) => {
                event::of_lane!(error, "lane_suspended", &key, reason = error.to_string());
                return;
            }
        };
        let (view, viewed) = watch::channel(LaneView::default());
        let mut seen = viewed.clone();
        self.lanes.running.lock().unwrap_or_else(PoisonError::into_inner).insert(key, viewed);
        let count = u64::try_from(self.started.len()).unwrap_or(0);
        let lane = Lane::new(Arc::clone(&self.shared), config, self.lanes.seed ^ count, view);
        self.tasks.spawn(lane.run(self.stop.clone()));
        let lanes = Arc::clone(&self.lanes);
        self.tasks.spawn(async move {
            while seen.changed().await.is_ok() {
                lanes.moved.send_modify(|mark| *mark += 1);
            }
        });
    }
}

/// Whether the lane's channel, account and endpoint are configured, with a limit.
pub fn is_configured(config: &Config, lane: &LaneKey) -> bool {
    config.channels.get(&lane.channel).is_some_and(|channel| {
        channel.accounts.contains_key(&lane.account)
            && channel
                .endpoints
                .get(&lane.endpoint)
                .is_some_and(|endpoint| !endpoint.limits.is_empty() || !channel.limits.is_empty())
    })
}

fn longest_timeout(channel: &Channel) -> Duration {
    channel.endpoints.values().filter_map(|endpoint| endpoint.timeout).fold(channel.timeout, Duration::max)
}

fn is_by_property(config: &Config, lane: &LaneKey) -> bool {
    config.channels.get(&lane.channel).is_some_and(|channel| {
        channel.endpoints.get(&lane.endpoint).is_some_and(|endpoint| {
            endpoint.pauses == Pauses::Property
                || channel.limits.iter().chain(&endpoint.limits).any(|limit| limit.each == Each::Property)
        })
    })
}

fn all_lanes(config: &Config) -> impl Iterator<Item = LaneKey> + '_ {
    config.channels.iter().flat_map(|(channel, settings)| {
        settings.accounts.keys().flat_map(move |account| {
            settings.endpoints.keys().map(move |endpoint| LaneKey {
                channel: channel.clone(),
                account: account.clone(),
                endpoint: endpoint.clone(),
            })
        })
    })
}

fn lanes_by_property(config: &Config) -> Vec<LaneKey> {
    all_lanes(config).filter(|lane| is_by_property(config, lane)).collect()
}

fn lane_config(config: &Config, key: &LaneKey) -> Result<Option<LaneConfig>, WireError> {
    if !is_configured(config, key) {
        return Ok(None);
    }
    let Some(channel) = config.channels.get(&key.channel) else { return Ok(None) };
    let Some(endpoint) = channel.endpoints.get(&key.endpoint) else { return Ok(None) };
    Ok(Some(LaneConfig {
        key: key.clone(),
        wire: Wire::try_new(channel, &key.endpoint)?,
        retry: endpoint.retry.clone(),
        pauses: endpoint.pauses,
        max_in_flight: channel.max_in_flight,
        by_property: is_by_property(config, key),
    }))
}
