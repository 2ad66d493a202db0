//! `push`: a file's mutations, stored and sent until all are final.

mod feed;
mod progress;
mod report;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ota_governor::config::{Config, ConfigFaults, LedgerPlace};
use ota_governor::core::state::State;
use ota_governor::core::time::Timestamp;
use ota_governor::governor::{Drained, Governor, Parts};
use ota_governor::intake::Format;
use ota_governor::ledger::memory::MemoryLedger;
use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};
use ota_governor::ledger::{Admission, Ledger, MutationId};
use ota_governor::limiter::local::LocalLimiter;
use ota_governor::transport::http::HttpTransport;
use tokio::time::Instant;

use crate::arguments::{FileFormat, PushArguments};
use crate::exit::Exit;
use crate::invocation::Invocation;
use feed::{Batch, Feed};
use progress::Progress;
use report::{Lines, Report};

/// How many ids are counted in one question to the ledger.
const COUNTED_AT_ONCE: usize = 10_000;

/// Stores the file's mutations and sends them.
pub(crate) async fn run(
    invocation: &Invocation,
    arguments: &PushArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let config = invocation.config()?;
    let missing = config.missing_tokens();
    if !missing.is_empty() {
        return Err(ConfigFaults { faults: missing }.into());
    }
    // The file is opened first: a name that is wrong must not cost a look at the ledger.
    let format = arguments.format.map(|format| match format {
        FileFormat::Ndjson => Format::Ndjson,
        FileFormat::Csv => Format::Csv,
    });
    let feed = match &arguments.file {
        Some(path) => Some(Feed::open(path, format, &config, invocation.clock.clone())?),
        None => None,
    };
    let ledger = open(invocation, &config)?;
    let before = ledger.tallies().await?;
    let governor = start(invocation, config, Arc::clone(&ledger)).await?;
    let mut push = Push {
        progress: Progress::new(&before, false),
        governor,
        ledger,
        lines: Lines::default(),
        ids: Vec::new(),
        open_before: progress::open(&before),
        own_before: 0,
        began: invocation.clock.now(),
    };
    let ended = push.drive(feed, arguments.deadline, invocation).await;
    push.progress.finish();
    let Push { governor, ledger, mut ids, lines, open_before, own_before, .. } = push;
    governor.stop().await;
    ended?;
    ids.sort_unstable();
    ids.dedup();
    let mut counts = Vec::new();
    for some in ids.chunks(COUNTED_AT_ONCE) {
        counts.extend(ledger.counts(some).await?);
    }
    let mut report = Report::new(&counts, &lines, started.elapsed());
    let left = progress::open(&ledger.tallies().await?);
    let others_left = left.saturating_sub(report.total().open());
    report.set_earlier(open_before.saturating_sub(own_before).saturating_sub(others_left));
    ledger.close().await?;
    if arguments.report.is_some() {
        report.json(out)?;
    } else {
        report.table(out)?;
        if left > 0 {
            writeln!(out, "{left} left in the ledger: the next push goes on with them")?;
        }
    }
    Ok(report.exit(left))
}

fn open(invocation: &Invocation, config: &Config) -> anyhow::Result<Arc<dyn Ledger>> {
    Ok(match config.ledger_place() {
        LedgerPlace::Memory => MemoryLedger::new(),
        LedgerPlace::Sqlite(path) => {
            SqliteLedger::open(&path, OpenOptions { dispatcher: true, clock: invocation.clock.clone() })?
        }
    })
}

async fn start(invocation: &Invocation, config: Config, ledger: Arc<dyn Ledger>) -> anyhow::Result<Governor> {
    let clock = invocation.clock.clone();
    let past = ledger.past_calls(clock.now() - config.longest_window()).await?;
    let limiter = LocalLimiter::from_config(&config, clock.clone(), past);
    let transport = Arc::new(HttpTransport::try_new(clock.clone()).context("preparing to call channels")?);
    let seed = u64::try_from(clock.now().as_micros()).unwrap_or(0) ^ u64::from(std::process::id());
    let parts = Parts { config: Arc::new(config), ledger, limiter, transport, clock, seed };
    Governor::start(parts).await.context("starting the governor")
}

/// A push at work.
struct Push {
    governor: Governor,
    ledger: Arc<dyn Ledger>,
    progress: Progress,
    lines: Lines,
    /// This file's mutations, with repeats: eight bytes each are all that is held of them.
    ids: Vec<MutationId>,
    open_before: u64,
    /// Of those open before, how many are this file's.
    own_before: u64,
    began: Timestamp,
}

impl Push {
    /// Reads and waits until all is final, or something ends it.
    async fn drive(
        &mut self,
        mut feed: Option<Feed>,
        deadline: Option<Duration>,
        invocation: &Invocation,
    ) -> anyhow::Result<()> {
        let mut stop = std::pin::pin!(stop_asked());
        let end = deadline.map(|deadline| Instant::now() + deadline);
        let mut looks = tokio::time::interval(self.progress.interval());
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = at(end) => return Ok(()),
                batch = next(&mut feed), if feed.is_some() => match batch {
                    Some(batch) => self.accept(batch?).await?,
                    None => feed = None,
                },
                drained = self.governor.drained(), if feed.is_none() => {
                    match drained? {
                        Drained::Empty => {}
                        Drained::Held => tracing::warn!(event = "held", reason = "nothing moves until a hold is lifted: see status"),
                    }
                    return Ok(());
                }
                _ = looks.tick() => {
                    let tallies = self.ledger.tallies().await?;
                    self.progress.show(&tallies, &self.governor, invocation.clock.now());
                }
            }
        }
    }

    async fn accept(&mut self, batch: Batch) -> anyhow::Result<()> {
        for (line, faults) in &batch.refused {
            self.refuse(*line, None, &faults.to_string());
        }
        let (lines, entries): (Vec<u64>, Vec<_>) = batch.entries.into_iter().unzip();
        let names: Vec<_> = entries
            .iter()
            .map(|entry| (entry.mutation.ota.clone(), entry.mutation.correlation_id.clone()))
            .collect();
        let admissions = self.governor.accept(entries).await?;
        for ((line, (ota, id)), admission) in lines.iter().zip(&names).zip(admissions) {
            match admission {
                Admission::Accepted { id, .. } => self.ids.push(id),
                Admission::Known { id: known, state } => {
                    self.ids.push(known);
                    self.lines.duplicates += 1;
                    self.lines.channels.entry(ota.to_string()).or_default().1 += 1;
                    self.own_before += u64::from(self.was_open(id, state).await?);
                }
                Admission::Conflict => {
                    let rule = format!("correlation_id {id}: was accepted before with other content");
                    self.refuse(*line, Some(ota.as_str()), &rule);
                }
                Admission::Stale { last } => {
                    let rule = format!("sequence: is lower than {last}, the last one of its cell (stale)");
                    self.refuse(*line, Some(ota.as_str()), &rule);
                }
            }
        }
        Ok(())
    }

    /// Whether a mutation known before was open when this push began.
    async fn was_open(
        &self,
        id: &ota_governor::core::name::CorrelationId,
        state: State,
    ) -> anyhow::Result<bool> {
        if self.open_before == 0 {
            return Ok(false);
        }
        let Some(record) = self.ledger.get(id).await? else { return Ok(false) };
        Ok(record.accepted_at < self.began && (state.is_open() || record.changed_at >= self.began))
    }

    fn refuse(&mut self, line: u64, ota: Option<&str>, faults: &str) {
        self.lines.rejected += 1;
        if let Some(ota) = ota {
            self.lines.channels.entry(ota.to_owned()).or_default().0 += 1;
        }
        tracing::error!(event = "refused", line, ota, reason = faults);
    }
}

async fn next(feed: &mut Option<Feed>) -> Option<anyhow::Result<Batch>> {
    let batch = feed.as_mut()?.batches.recv().await?;
    Some(batch.map_err(anyhow::Error::from))
}

/// Returns at that time; never without one.
pub(super) async fn at(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Returns at the first Ctrl-C or SIGTERM; a second one ends the process at once, losing nothing.
async fn stop_asked() {
    asked().await;
    if std::io::stderr().is_terminal() {
        let _ = writeln!(
            std::io::stderr(),
            "stopping: waiting for the calls in flight; once more to stop at once"
        );
    }
    tokio::spawn(async {
        asked().await;
        std::process::exit(3);
    });
}

/// Returns at Ctrl-C or SIGTERM.
pub(super) async fn asked() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).ok();
    let term = async {
        match terminate.as_mut() {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = tokio::signal::ctrl_c() => if result.is_err() { std::future::pending::<()>().await },
        () = term => {}
    }
}
