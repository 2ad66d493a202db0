//! A governor as a process: it can be killed at any moment, and another may take over its ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ota_governor::config::{Config, TokenSource};
use ota_governor::core::lane::{LaneKey, Scope};
use ota_governor::core::mutation::Mutation;
use ota_governor::core::mutation::draft::Context;
use ota_governor::core::name::{ChannelName, CorrelationId};
use ota_governor::core::state::State;
use ota_governor::core::time::Timestamp;
use ota_governor::governor::{Drained, Governor, Parts};
use ota_governor::intake;
use ota_governor::ledger::memory::MemoryLedger;
use ota_governor::ledger::{
    Admission, Claim, Claimed, Counts, Entry, Filter, Head, Hold, HoldCause, Ledger, LedgerError, MutationId,
    PastCall, Record, Replay, Settled, Settlement, Tallies,
};
use ota_governor::limiter::local::LocalLimiter;
use ota_governor::transport::{Call, Reply, Transport};
use rand::SeedableRng;
use rand::rngs::StdRng;
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// A configuration, with a fixed token for every account whose source is `{ env = "FIXED" }`.
pub(crate) fn config(toml: &str) -> Config {
    let mut config = Config::parse(toml).unwrap_or_else(|faults| panic!("{faults:?}\n{toml}"));
    for channel in config.channels.values_mut() {
        for source in channel.accounts.values_mut() {
            if matches!(source, TokenSource::Env(name) if name == "FIXED") {
                *source = TokenSource::Fixed(SecretString::from("secret"));
            }
        }
    }
    config
}

/// What `toml` says in full of the channel `otax`, whose limits and more are in `rest`.
pub(crate) fn otax(rest: &str) -> Config {
    config(&format!(
        "[channels.otax]\nbase_url = \"https://otax.example\"\ntoken = {{ env = \"FIXED\" }}\n{rest}"
    ))
}

/// A governor with everything it needs, on a ledger that outlives it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) governor: Governor,
    pub(crate) ledger: Arc<MemoryLedger>,
    world: Arc<World>,
    config: Arc<Config>,
    context: Context,
    life: CancellationToken,
    seed: u64,
}

impl Process {
    /// The first one.
    pub(crate) async fn start(world: &Arc<World>, config: Config) -> Self {
        let ledger = MemoryLedger::with_id("0123456789abcdef0123456789abcdef");
        Self::take_over(world, Arc::new(config), ledger, 7).await
    }

    /// One that finds this ledger.
    pub(crate) async fn take_over(
        world: &Arc<World>,
        config: Arc<Config>,
        ledger: Arc<MemoryLedger>,
        seed: u64,
    ) -> Self {
        let clock = world.clock.clone();
        let past = ledger.past_calls(clock.now() - config.longest_window()).await.unwrap();
        let life = CancellationToken::new();
        let parts = Parts {
            limiter: LocalLimiter::from_config(&config, clock.clone(), past),
            config: Arc::clone(&config),
            ledger: Arc::new(Mortal { ledger: Arc::clone(&ledger), life: life.clone() }),
            transport: Arc::new(Network { world: Arc::clone(world), life: life.clone() }),
            clock,
            seed,
        };
        let context = intake::channels(&config).unwrap();
        let governor = Governor::start(parts).await.unwrap();
        Self { governor, ledger, world: Arc::clone(world), config, context, life, seed }
    }

    /// Ends it as `kill -9` does: from now on it neither reads, writes nor hears anything.
    pub(crate) fn kill(self) -> Killed {
        self.life.cancel();
        self.world.process_killed();
        Killed { world: self.world, config: self.config, ledger: self.ledger, seed: self.seed }
    }

    /// Accepts one mutation, given as it would stand in a file.
    pub(crate) async fn accept(&self, mutation: &Value) -> Admission {
        self.accept_all(std::slice::from_ref(mutation)).await.remove(0)
    }

    /// Accepts several.
    pub(crate) async fn accept_all(&self, mutations: &[Value]) -> Vec<Admission> {
        let entries = mutations.iter().map(|mutation| self.entry(mutation)).collect();
        self.governor.accept(entries).await.unwrap()
    }

    fn entry(&self, mutation: &Value) -> Entry {
        let json = mutation.to_string();
        let now = self.world.clock.wall();
        let mut chance = StdRng::seed_from_u64(0);
        let mutation = Mutation::from_json(json.as_bytes(), &self.context, now, &mut chance);
        let mutation = mutation.unwrap_or_else(|faults| panic!("{faults}: {json}"));
        let recipe = self.config.channels[&mutation.ota].idempotency;
        Entry { expires: self.context.expires(&mutation), recipe, mutation }
    }

    /// Waits until all is final.
    pub(crate) async fn drain(&self) {
        assert_eq!(self.governor.drained().await.unwrap(), Drained::Empty);
    }

    /// What became of a mutation.
    pub(crate) async fn record(&self, correlation_id: &str) -> Record {
        let id = CorrelationId::try_new(correlation_id).unwrap();
        self.ledger.get(&id).await.unwrap().unwrap()
    }

    /// Where a mutation stands.
    pub(crate) async fn state(&self, correlation_id: &str) -> State {
        self.record(correlation_id).await.state
    }
}

/// What a killed process leaves.
#[derive(Debug)]
pub(crate) struct Killed {
    world: Arc<World>,
    config: Arc<Config>,
    ledger: Arc<MemoryLedger>,
    seed: u64,
}

impl Killed {
    /// How many of its calls were in flight.
    pub(crate) async fn in_flight(&self) -> u64 {
        let rows = self.ledger.tallies().await.unwrap().rows;
        rows.iter().filter(|row| row.state == State::InFlight).map(|row| row.count).sum()
    }

    /// Another process takes over.
    pub(crate) async fn restart(self) -> Process {
        Process::take_over(&self.world, self.config, self.ledger, self.seed.wrapping_add(1)).await
    }
}

/// The network as one process sees it.
#[derive(Debug)]
struct Network {
    world: Arc<World>,
    life: CancellationToken,
}

#[async_trait]
impl Transport for Network {
    async fn send(&self, call: Call) -> Reply {
        alive(&self.life).await;
        let (answer, answered) = oneshot::channel();
        self.world.carry(&call, answer);
        let reply = tokio::select! {
            biased;
            () = self.life.cancelled() => None,
            reply = tokio::time::timeout(call.timeout, answered) => Some(reply),
        };
        match reply {
            Some(Ok(Ok(reply))) => reply,
            Some(_) => Reply::Unknown { detail: "no answer in time".to_owned() },
            None => std::future::pending().await,
        }
    }
}

/// A ledger as one process sees it.
#[derive(Debug)]
struct Mortal {
    ledger: Arc<MemoryLedger>,
    life: CancellationToken,
}

/// The dead do nothing more.
async fn alive(life: &CancellationToken) {
    if life.is_cancelled() {
        std::future::pending::<()>().await;
    }
}

/// Hands each method on for as long as the process lives.
macro_rules! while_alive {
    ($($name:ident($($arg:ident: $type:ty),*) -> $back:ty;)*) => {
        #[async_trait]
        impl Ledger for Mortal {
            fn id(&self) -> &str {
                self.ledger.id()
            }

            fn changes(&self, lane: &LaneKey) -> watch::Receiver<u64> {
                self.ledger.changes(lane)
            }

            fn lane_changes(&self) -> watch::Receiver<u64> {
                self.ledger.lane_changes()
            }

            $(async fn $name(&self, $($arg: $type),*) -> Result<$back, LedgerError> {
                alive(&self.life).await;
                self.ledger.$name($($arg),*).await
            })*
        }
    };
}

while_alive! {
    enqueue(entries: Vec<Entry>, now: Timestamp) -> Vec<Admission>;
    claim(claim: Claim) -> Claimed;
    head(lane: &LaneKey, now: Timestamp) -> Head;
    settle(settlement: Settlement) -> Vec<Settled>;
    lanes() -> Vec<LaneKey>;
    key_by_property(lanes: Vec<LaneKey>) -> ();
    health(lane: &LaneKey) -> Option<String>;
    holds() -> Vec<Hold>;
    hold(holds: Vec<Hold>) -> ();
    lift(scope: &Scope, cause: Option<HoldCause>) -> Vec<Hold>;
    tallies() -> Tallies;
    get(correlation_id: &CorrelationId) -> Option<Record>;
    list(filter: &Filter, after: Option<MutationId>, limit: usize) -> Vec<Record>;
    replay(ids: Vec<MutationId>, now: Timestamp) -> Vec<Replay>;
    discard(ids: Vec<MutationId>) -> u64;
    cancel(filter: &Filter, now: Timestamp) -> Vec<CorrelationId>;
    counts(ids: &[MutationId]) -> Vec<(ChannelName, Counts)>;
    past_calls(since: Timestamp) -> Vec<PastCall>;
    recover(now: Timestamp, rest: Duration) -> u64;
    prune(before: Timestamp, retention: Duration) -> u64;
    close() -> ();
}
