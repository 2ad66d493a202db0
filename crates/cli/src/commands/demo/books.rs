//! The books of both sides, read when all is over, and the tables made of them.

use std::io::Write;
use std::time::Duration;

use ota_governor::core::state::State;
use ota_governor::ledger::{Filter, Ledger, LedgerError, Record};
use ota_sim::{Arrival, CellBook, ChannelBooks, LimitBooks, Server};

use super::script::URGENT;
use super::stage::{ACTS, Act, CEILING, MINUTE};
use crate::table::Table;
use crate::words::about;

/// Records read at once.
const PAGE: usize = 1_000;

/// What both sides wrote down.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) channels: Vec<Channel>,
    /// The receiver's cells.
    pub(super) cells: Vec<CellBook>,
    /// Calls to nowhere.
    pub(super) unrouted: u64,
}

/// What both sides wrote down of one channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) act: &'static Act,
    /// The ledger's side.
    pub(super) records: Vec<Record>,
    /// The receiver's side.
    pub(super) received: ChannelBooks,
    arrivals: Vec<Arrival>,
}

impl Books {
    pub(super) async fn read(ledger: &dyn Ledger, server: &Server) -> Result<Self, LedgerError> {
        let mut records = Vec::new();
        loop {
            let last = records.last().map(|record: &Record| record.id);
            let page = ledger.list(&Filter::default(), last, PAGE).await?;
            let full = page.len() >= PAGE;
            records.extend(page);
            if !full {
                break;
            }
        }
        let mut books = server.books();
        let arrivals = server.ota().arrivals();
        let channels = ACTS.iter().map(|act| Channel {
            act,
            records: records.iter().filter(|r| r.mutation.ota.as_str() == act.slug).cloned().collect(),
            received: books.channels.remove(act.slug).unwrap_or_default(),
            arrivals: arrivals.iter().filter(|a| a.channel.as_ref() == act.slug).cloned().collect(),
        });
        let channels = channels.collect();
        Ok(Self { channels, cells: server.ota().cells(), unrouted: books.unrouted })
    }

    /// A sum over the channels.
    pub(super) fn sum(&self, of: impl Fn(&Channel) -> u64) -> u64 {
        self.channels.iter().map(of).sum()
    }

    /// Writes the tables.
    pub(super) fn tables(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let titles =
            ["channel", "accepted", "committed", "superseded", "dead-lettered", "left", "requests", "429s"];
        let mut fates = Table::new(&titles);
        for channel in &self.channels {
            let mut row = vec![channel.act.slug.to_owned()];
            row.extend(channel.fates().iter().map(u64::to_string));
            fates.row(row);
        }
        let mut all = vec!["all".to_owned()];
        all.extend(
            (0..titles.len() - 1)
                .map(|at| self.sum(|channel| channel.fates().get(at).copied().unwrap_or(0)).to_string()),
        );
        fates.row(all);
        fates.write(out)?;
        writeln!(out, "\na minute is played in {}; waits are as played", about(MINUTE))?;
        let mut paces = Table::new(&[
            "channel",
            "ceiling a minute",
            "fullest minute",
            "budget used",
            "urgent: median",
            "worst",
            "bulk: median",
            "worst",
        ]);
        for channel in &self.channels {
            let mut row = vec![channel.act.slug.to_owned(), channel.act.ceiling.to_string()];
            row.push(channel.fullest().to_string());
            row.push(channel.used());
            for urgent in [true, false] {
                let waits = channel.waits(urgent);
                for wait in [median(&waits), waits.last().copied()] {
                    row.push(wait.map_or_else(|| "-".to_owned(), about));
                }
            }
            paces.row(row);
        }
        paces.write(out)
    }
}

impl Channel {
    /// Its mutations in this state.
    pub(super) fn count(&self, state: State) -> u64 {
        count(self.records.iter().filter(|record| record.state == state))
    }

    /// Its mutations that may still move.
    pub(super) fn open(&self) -> u64 {
        count(self.records.iter().filter(|record| record.state.is_open()))
    }

    /// Requests sent, by the ledger.
    pub(super) fn requests(&self) -> u64 {
        self.records.iter().map(|record| u64::from(record.requests)).sum()
    }

    /// Requests answered 429, by the ledger.
    pub(super) fn throttled(&self) -> u64 {
        self.records.iter().map(|record| u64::from(record.throttled)).sum()
    }

    fn fates(&self) -> [u64; 7] {
        [
            count(self.records.iter()),
            self.count(State::Committed),
            self.count(State::Superseded),
            self.count(State::DeadLettered),
            self.open(),
            self.requests(),
            self.throttled(),
        ]
    }

    /// The receiver's book of the limit that both sides know.
    pub(super) fn ceiling(&self) -> Option<&LimitBooks> {
        self.received.limits.iter().find(|limit| limit.name == CEILING)
    }

    /// The most calls that arrived in any trailing minute.
    pub(super) fn fullest(&self) -> u64 {
        self.ceiling().map_or(0, |limit| limit.worst_window.arrivals.calls)
    }

    /// The share of the ceiling used between the first arrival and the last: those of the first burst
    /// were saved up before, and do not count.
    fn used(&self) -> String {
        let (Some(first), Some(last)) = (self.arrivals.first(), self.arrivals.last()) else {
            return "-".to_owned();
        };
        let calls = count(self.arrivals.iter()).saturating_sub(self.act.burst);
        let full = last.at.since(first.at).as_micros() * u128::from(self.act.ceiling);
        let used = MINUTE.as_micros() * u128::from(calls) * 1_000;
        let tenths = used.checked_div(full).unwrap_or(0);
        format!("{}.{} %", tenths / 10, tenths % 10)
    }

    /// From acceptance to commit, the shortest first.
    pub(super) fn waits(&self, urgent: bool) -> Vec<Duration> {
        let committed = self.records.iter().filter(|record| record.state == State::Committed);
        let mut waits: Vec<Duration> = committed
            .filter(|record| (record.mutation.priority.get() == URGENT) == urgent)
            .map(|record| record.changed_at.since(record.accepted_at))
            .collect();
        waits.sort_unstable();
        waits
    }
}

/// The one in the middle of what is sorted.
pub(super) fn median(waits: &[Duration]) -> Option<Duration> {
    waits.get(waits.len() / 2).copied()
}

fn count<T>(of: impl Iterator<Item = T>) -> u64 {
    u64::try_from(of.count()).unwrap_or(u64::MAX)
}
