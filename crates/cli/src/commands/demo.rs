//! `demo`: the whole thing in half a minute against a simulated OTA in the same process.
//!
//! Nothing is played here that `push` would not do as well: the calls go over a socket, the limiter is
//! that of one process, the ledger is a file. Only the minute is shorter, on both sides alike.

mod audience;
mod books;
mod script;
mod stage;
mod verdict;

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ota_governor::config::{Config, LedgerPlace};
use ota_governor::core::idempotency::Recipe;
use ota_governor::core::mutation::date;
use ota_governor::core::mutation::draft::Context;
use ota_governor::governor::{Governor, Parts};
use ota_governor::intake::{self, Format, Reader};
use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};
use ota_governor::ledger::{Admission, Entry, Ledger};
use ota_governor::limiter::local::LocalLimiter;
use ota_governor::transport::http::HttpTransport;
use ota_sim::{Ota, Server};
use tokio::time::Instant;

use crate::arguments::DemoArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use audience::Audience;
use books::Books;
use script::{Scene, Script};

/// When the play ends, whatever is left: the checks then say so.
const CURTAIN: Duration = Duration::from_secs(33);
/// How often it is told how far things are.
const LOOKS: Duration = Duration::from_secs(2);

/// Runs the demonstration.
pub(crate) async fn run(
    invocation: &Invocation,
    _: &DemoArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    // Removed when it is dropped, however this ends.
    let directory = tempfile::tempdir().context("making a directory for the ledger")?;
    std::fs::write(directory.path().join("token"), "demo").context("writing the token")?;
    let today = date::today(invocation.clock.wall(), None);
    let mut script = Script::new(script::first_night(today));
    let server = Server::start(Arc::new(Ota::new(stage::receiver())), (Ipv4Addr::LOCALHOST, 0).into()).await;
    let server = server.context("starting the simulated OTA")?;
    let config = Config::parse(&stage::sender(&server.url(), directory.path()))?;
    let ledger = open(invocation, &config)?;
    let context = intake::channels(&config)?;
    let governor = start(invocation, config, Arc::clone(&ledger)).await?;
    let audience = Audience::begin(&server.url());
    let mut play = Play { invocation, governor, ledger, audience, context: Arc::new(context), known: 0 };
    let ended = play.perform(std::mem::take(&mut script.scenes)).await;
    let Play { governor, ledger, known, .. } = play;
    governor.stop().await;
    let books = Books::read(ledger.as_ref(), &server).await;
    server.stop().await;
    ledger.close().await?;
    if ended? == Ended::Stopped {
        return Ok(Exit::WorkLeft);
    }
    let books = books?;
    books.tables(out)?;
    writeln!(out)?;
    let checks = verdict::checks(&books, &script, known);
    verdict::write(&checks, out)?;
    Ok(if checks.iter().all(|check| check.holds) { Exit::Done } else { Exit::Refused })
}

fn open(invocation: &Invocation, config: &Config) -> anyhow::Result<Arc<dyn Ledger>> {
    let LedgerPlace::Sqlite(path) = config.ledger_place() else {
        anyhow::bail!("the ledger of the demo is not a file: {}", config.ledger_url);
    };
    Ok(SqliteLedger::open(&path, OpenOptions { dispatcher: true, clock: invocation.clock.clone() })?)
}

async fn start(invocation: &Invocation, config: Config, ledger: Arc<dyn Ledger>) -> anyhow::Result<Governor> {
    let clock = invocation.clock.clone();
    let limiter = LocalLimiter::from_config(&config, clock.clone(), Vec::new());
    let transport = Arc::new(HttpTransport::try_new(clock.clone()).context("preparing to call channels")?);
    let parts = Parts { config: Arc::new(config), ledger, limiter, transport, clock, seed: 1 };
    Governor::start(parts).await.context("starting the governor")
}

/// How a play ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// All was sent, nothing more moves, or the time was up.
    Played,
    /// Somebody stopped it.
    Stopped,
}

/// A play under way.
struct Play<'a> {
    invocation: &'a Invocation,
    governor: Governor,
    ledger: Arc<dyn Ledger>,
    audience: Audience,
    context: Arc<Context>,
    /// Mutations handed in that the ledger did not take as new.
    known: u64,
}

impl Play<'_> {
    /// Hands in scene after scene, and waits until all is final.
    async fn perform(&mut self, scenes: Vec<Scene>) -> anyhow::Result<Ended> {
        let mut stop = std::pin::pin!(super::push::asked());
        let started = Instant::now();
        let mut looks = tokio::time::interval_at(started + LOOKS, LOOKS);
        let mut scenes = scenes.into_iter().peekable();
        loop {
            let next = scenes.peek().map(|scene| started + scene.at);
            tokio::select! {
                // What is due in the script comes before a look at it.
                biased;
                () = &mut stop => {
                    self.audience.say("stopping: waiting for the calls in flight");
                    return Ok(Ended::Stopped);
                }
                () = tokio::time::sleep_until(started + CURTAIN) => return Ok(Ended::Played),
                () = super::push::at(next), if next.is_some() => if let Some(scene) = scenes.next() {
                    self.hand_in(&scene).await?;
                },
                drained = self.governor.drained(), if next.is_none() => {
                    drained?;
                    return Ok(Ended::Played);
                }
                _ = looks.tick() => {
                    let tallies = self.ledger.tallies().await?;
                    self.audience.look(&tallies, &self.governor, self.invocation.clock.now());
                }
            }
        }
    }

    async fn hand_in(&mut self, scene: &Scene) -> anyhow::Result<()> {
        let wall = self.invocation.clock.wall();
        let mut reader = Reader::new(scene.lines.as_bytes(), Format::Ndjson, Arc::clone(&self.context));
        let mut entries = Vec::new();
        while let Some(intake) = reader.read(wall)? {
            let mutation = intake.result.map_err(|faults| anyhow::anyhow!("{faults}"))?;
            let expires = self.context.expires(&mutation);
            entries.push(Entry { mutation, recipe: Recipe::default(), expires });
        }
        self.audience.say(&scene.says);
        for admission in self.governor.accept(entries).await? {
            match admission {
                Admission::Accepted { .. } => {}
                Admission::Known { .. } | Admission::Conflict | Admission::Stale { .. } => self.known += 1,
            }
        }
        Ok(())
    }
}
