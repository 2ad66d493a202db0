//! What a push reports: this file's mutations, and what became of them.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use ota_governor::core::name::ChannelName;
use ota_governor::core::state::State;
use ota_governor::ledger::Counts;
use serde::Serialize;

use crate::exit::Exit;
use crate::table::Table;

/// The counts of a set of mutations.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Figures {
    /// Distinct mutations in the ledger: the sum of the states.
    pub(crate) accepted: u64,
    /// Lines that were refused.
    pub(crate) rejected: u64,
    /// Lines whose mutation was in the ledger already.
    pub(crate) duplicates: u64,
    queued: u64,
    in_flight: u64,
    committed: u64,
    deferred: u64,
    dead_lettered: u64,
    superseded: u64,
    cancelled: u64,
    /// Requests really sent.
    requests: u64,
    /// Of those, answered 429.
    throttled: u64,
    elapsed_s: Seconds,
}

/// Seconds, as a JSON number with three digits after the point.
#[derive(Debug, Clone, Copy, Default)]
struct Seconds(Duration);

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = format!("{}.{:03}", self.0.as_secs(), self.0.subsec_millis());
        let number: serde_json::Number = text.parse().map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

impl Figures {
    fn add(&mut self, counts: &Counts) {
        for (state, count) in State::ALL.iter().zip(counts.states) {
            self.accepted += count;
            *match state {
                State::Queued => &mut self.queued,
                State::InFlight => &mut self.in_flight,
                State::Deferred => &mut self.deferred,
                State::Committed => &mut self.committed,
                State::DeadLettered => &mut self.dead_lettered,
                State::Superseded => &mut self.superseded,
                State::Cancelled => &mut self.cancelled,
            } += count;
        }
        self.requests += counts.requests;
        self.throttled += counts.throttled;
    }

    /// Mutations that may still move.
    pub(crate) const fn open(&self) -> u64 {
        self.queued + self.in_flight + self.deferred
    }
}

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    total: Figures,
    channels: BTreeMap<String, Figures>,
    /// Leftovers of other files that were drained along.
    earlier: u64,
}

/// What reading the file counted.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) rejected: u64,
    pub(crate) duplicates: u64,
    /// The same per channel, as far as a refused line names one.
    pub(crate) channels: BTreeMap<String, (u64, u64)>,
}

impl Report {
    pub(crate) fn new(counts: &[(ChannelName, Counts)], lines: &Lines, elapsed: Duration) -> Self {
        let mut total = Figures {
            rejected: lines.rejected,
            duplicates: lines.duplicates,
            elapsed_s: Seconds(elapsed),
            ..Figures::default()
        };
        let mut channels: BTreeMap<String, Figures> = BTreeMap::new();
        for (channel, counts) in counts {
            total.add(counts);
            channels.entry(channel.to_string()).or_default().add(counts);
        }
        for (channel, (rejected, duplicates)) in &lines.channels {
            let figures = channels.entry(channel.clone()).or_default();
            figures.rejected = *rejected;
            figures.duplicates = *duplicates;
        }
        for figures in channels.values_mut() {
            figures.elapsed_s = Seconds(elapsed);
        }
        Self { total, channels, earlier: 0 }
    }

    pub(crate) const fn total(&self) -> &Figures {
        &self.total
    }

    pub(crate) const fn set_earlier(&mut self, earlier: u64) {
        self.earlier = earlier;
    }

    /// How the push ended. `left` are mutations still open, of other files too.
    pub(crate) const fn exit(&self, left: u64) -> Exit {
        let total = &self.total;
        if left > 0 {
            Exit::WorkLeft
        } else if total.rejected + total.dead_lettered + total.cancelled > 0 {
            Exit::Refused
        } else {
            Exit::Done
        }
    }

    /// One JSON object on a line.
    pub(crate) fn json(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)?;
        Ok(())
    }

    /// A table for people.
    pub(crate) fn table(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let titles = [
            "channel",
            "accepted",
            "committed",
            "superseded",
            "dead-lettered",
            "cancelled",
            "left",
            "requests",
            "429s",
        ];
        let row = |name: &str, f: &Figures| {
            let mut cells = vec![name.to_owned()];
            let figures = [
                f.accepted,
                f.committed,
                f.superseded,
                f.dead_lettered,
                f.cancelled,
                f.open(),
                f.requests,
                f.throttled,
            ];
            cells.extend(figures.iter().map(u64::to_string));
            cells
        };
        let mut table = Table::new(&titles);
        self.channels.iter().for_each(|(name, figures)| table.row(row(name, figures)));
        if self.channels.len() != 1 {
            table.row(row("all", &self.total));
        }
        table.write(out)?;
        let total = &self.total;
        write!(out, "{} refused, {} known before", total.rejected, total.duplicates)?;
        if self.earlier > 0 {
            write!(out, ", {} of earlier files drained along", self.earlier)?;
        }
        writeln!(out, "; {}.{:03} s", total.elapsed_s.0.as_secs(), total.elapsed_s.0.subsec_millis())?;
        Ok(())
    }
}
