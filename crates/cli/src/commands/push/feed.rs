//! The file on its way in: a thread that reads, checks and gathers, so that neither a slow pipe nor a
//! million lines ever stand in the way of sending.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use ota_governor::clock::Clock;
use ota_governor::config::Config;
use ota_governor::core::mutation::draft::Context;
use ota_governor::core::mutation::fault::Faults;
use ota_governor::intake::{self, Format, IntakeError, Reader};
use ota_governor::ledger::Entry;
use tokio::sync::mpsc;

/// Mutations accepted in one transaction at most.
const BATCH: usize = 1_000;
/// Batches read ahead of the ledger at most.
const AHEAD: usize = 4;

/// What was read since the last batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Mutations with their lines.
    pub(super) entries: Vec<(u64, Entry)>,
    /// Refusals with their lines.
    pub(super) refused: Vec<(u64, Faults)>,
}

impl Batch {
    fn len(&self) -> usize {
        self.entries.len() + self.refused.len()
    }
}

/// A file being read.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) batches: mpsc::Receiver<Result<Batch, IntakeError>>,
    // Not joined: it may be waiting for a pipe that never ends, and holds nothing that must be kept.
    _thread: JoinHandle<()>,
}

impl Feed {
    /// Opens the file, or stdin for `-`, and begins to read.
    pub(super) fn open(
        path: &Path,
        format: Option<Format>,
        config: &Config,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let context = Arc::new(intake::channels(config)?);
        let recipes = Recipes::new(config);
        let input: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            let file =
                File::open(path).with_context(|| format!("opening the mutations {}", path.display()))?;
            Box::new(file)
        };
        let format = format.unwrap_or_else(|| Format::of(path));
        let (sender, batches) = mpsc::channel(AHEAD);
        let reader = Reader::new(input, format, Arc::clone(&context));
        let thread = std::thread::Builder::new()
            .name("intake".to_owned())
            .spawn(move || read(reader, &context, &recipes, &clock, &sender))
            .context("starting the thread that reads")?;
        Ok(Self { batches, _thread: thread })
    }
}

struct Recipes(
    std::collections::BTreeMap<
        ota_governor::core::name::ChannelName,
        ota_governor::core::idempotency::Recipe,
    >,
);

impl Recipes {
    fn new(config: &Config) -> Self {
        Self(config.channels.iter().map(|(name, channel)| (name.clone(), channel.idempotency)).collect())
    }
}

fn read(
    mut reader: Reader<Box<dyn Read + Send>>,
    context: &Context,
    recipes: &Recipes,
    clock: &Clock,
    to: &mpsc::Sender<Result<Batch, IntakeError>>,
) {
    let mut batch = Batch::default();
    loop {
        let full = batch.len() >= BATCH;
        if batch.len() > 0
            && (full || reader.would_block_next())
            && to.blocking_send(Ok(std::mem::take(&mut batch))).is_err()
        {
            return;
        }
        match reader.read(clock.wall()) {
            Ok(Some(intake)) => match intake.result {
                Ok(mutation) => {
                    let recipe = recipes.0.get(&mutation.ota).copied().unwrap_or_default();
                    let expires = context.expires(&mutation);
                    batch.entries.push((intake.line, Entry { mutation, recipe, expires }));
                }
                Err(faults) => batch.refused.push((intake.line, faults)),
            },
            Ok(None) => {
                if batch.len() > 0 {
                    // The receiver is gone only when the push is over.
                    let _ = to.blocking_send(Ok(batch));
                }
                return;
            }
            Err(error) => {
                if batch.len() > 0 && to.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
                    return;
                }
                let _ = to.blocking_send(Err(error));
                return;
            }
        }
    }
}
