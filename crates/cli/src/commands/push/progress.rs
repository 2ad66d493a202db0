//! How far a push has come: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ota_governor::core::state::State;
use ota_governor::core::time::show_duration;
use ota_governor::governor::Governor;
use ota_governor::ledger::Tallies;

/// How often a bar moves, and how often a line is written.
const LOOKS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    done_before: u64,
    started: tokio::time::Instant,
}

impl Progress {
    /// `quiet` shows nothing at all.
    pub(super) fn new(before: &Tallies, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}");
            ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, done_before: finals(before), started: tokio::time::Instant::now() }
    }

    /// How long until the next look.
    pub(super) const fn interval(&self) -> Duration {
        if self.bar.is_some() { LOOKS.0 } else { LOOKS.1 }
    }

    /// Shows where it stands.
    pub(super) fn show(
        &self,
        tallies: &Tallies,
        governor: &Governor,
        now: ota_governor::core::time::Timestamp,
    ) {
        let open = open(tallies);
        let done = finals(tallies).saturating_sub(self.done_before);
        let seconds = self.started.elapsed().as_secs().max(1);
        let eta = match done {
            0 => "?".to_owned(),
            _ => show_duration(Duration::from_secs(open.saturating_mul(seconds) / done)),
        };
        let held: Vec<String> = governor
            .views()
            .iter()
            .filter_map(|(lane, view)| {
                let hold = view.hold.as_ref()?;
                let until = match hold.until {
                    Some(until) => {
                        format!("for {}", show_duration(Duration::from_secs(until.since(now).as_secs())))
                    }
                    None => "until resumed".to_owned(),
                };
                Some(format!("{lane} held {until}"))
            })
            .collect();
        let rate = done / seconds;
        if let Some(bar) = &self.bar {
            bar.set_length(done + open);
            bar.set_position(done);
            bar.set_message(format!("{rate}/s  eta {eta}  {}", held.join(", ")));
        } else {
            tracing::info!(event = "progress", done, left = open, rate, eta, held = held.join(", "));
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn count(tallies: &Tallies, of: impl Fn(State) -> bool) -> u64 {
    tallies.rows.iter().filter(|row| of(row.state)).map(|row| row.count).sum()
}

/// Mutations that may still move.
pub(super) fn open(tallies: &Tallies) -> u64 {
    count(tallies, State::is_open)
}

fn finals(tallies: &Tallies) -> u64 {
    count(tallies, |state| !state.is_open())
}
