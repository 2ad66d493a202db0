//! What is told on stderr while the play goes on.

use std::io::Write;

use ota_governor::core::time::{Timestamp, show_duration};
use ota_governor::governor::Governor;
use ota_governor::ledger::Tallies;
use tokio::time::Instant;

use super::stage::{ACTS, MINUTE};
use crate::words::about;

/// Those who watch.
#[derive(Debug)]
pub(super) struct Audience {
    started: Instant,
}

impl Audience {
    /// Says what is to be seen.
    pub(super) fn begin(url: &str) -> Self {
        let audience = Self { started: Instant::now() };
        let per = show_duration(MINUTE);
        audience
            .tell(&format!("A minute is played in {per}. The simulated OTA at {url} enforces to the call:"));
        for act in &ACTS {
            let hidden =
                act.hidden.map(|hidden| format!(", and really only {hidden}, which it tells nobody"));
            let hidden = hidden.unwrap_or_default();
            let line = format!("  {:<12} {} calls a minute{hidden}", act.slug, act.ceiling);
            audience.tell(&line);
        }
        audience
    }

    /// Says what happens now.
    pub(super) fn say(&self, what: &str) {
        self.tell(&format!("{:>4} s  {what}", self.started.elapsed().as_secs()));
    }

    /// Says how far each channel is, and what holds it.
    pub(super) fn look(&self, tallies: &Tallies, governor: &Governor, now: Timestamp) {
        let progress: Vec<String> = ACTS
            .iter()
            .map(|act| {
                let of = |wanted: &dyn Fn(bool) -> bool| -> u64 {
                    let rows = tallies.rows.iter().filter(|row| row.lane.channel.as_str() == act.slug);
                    rows.filter(|row| wanted(row.state.is_open())).map(|row| row.count).sum()
                };
                format!("{} {} of {} done", act.slug, of(&|open| !open), of(&|_| true))
            })
            .collect();
        self.say(&progress.join(", "));
        for (lane, view) in governor.views() {
            if let Some(hold) = &view.hold {
                let wait =
                    hold.until.map_or_else(String::new, |until| format!(" {}", about(now.until(until))));
                self.say(&format!("{} asked for quiet, the rest of it{wait}: {}", lane.channel, hold.detail));
            }
        }
    }

    /// Nothing is left to be done about a stderr that cannot be written to.
    #[expect(clippy::unused_self, reason = "only an audience is told anything")]
    fn tell(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
