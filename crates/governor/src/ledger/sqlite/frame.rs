//! The wall clock may be stepped between two runs; stored waits must not move with it.
//!
//! Times are stored as the dispatcher's clock tells them, which runs evenly from one reading of the
//! wall. While the machine has not been restarted, its uptime ties two such readings together: if the
//! later run reads the wall an hour earlier, everything that is still to come is moved an hour earlier
//! too. So a clock set back freezes no parked mutation, and one set forward gives no second burst.

use std::time::Duration;

use ota_governor_core::time::{Timestamp, micros};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::clock::Clock;

/// Steps up to this are the ordinary drift of a disciplined clock.
const DRIFT: Duration = Duration::from_secs(2);
/// Calls made longer ago than this count against no limit: a day of the calendar has at most 25 h.
const PAST_CALLS: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// Where the dispatcher's clock stands against the machine's uptime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    boot_id: String,
    /// The clock minus the uptime, in microseconds: the same for a whole run.
    offset: i64,
}

impl Frame {
    /// This run's, where the system tells its uptime.
    pub(super) fn read(clock: &Clock) -> Option<Self> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let uptime = parse_uptime(&uptime)?;
        Some(Self { boot_id: boot_id.trim().to_owned(), offset: (clock.now() - uptime).as_micros() })
    }

    /// Moves what is still to come by the step since the run before, and keeps this run's frame.
    pub(super) fn align(&self, conn: &mut Connection, now: Timestamp) -> rusqlite::Result<()> {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before: Option<(String, i64)> = tx
            .query_row("SELECT boot_id, offset_us FROM frame", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        if let Some((boot_id, offset)) = before {
            let step = self.offset.saturating_sub(offset);
            if boot_id == self.boot_id && step.unsigned_abs() > micros(DRIFT).unsigned_abs() {
                let past = (now - PAST_CALLS).as_micros().saturating_sub(step);
                tx.execute(
                    "UPDATE mutation SET due_us = due_us + ?1, at_us = at_us + ?1
                     WHERE state < 3 AND due_us IS NOT NULL OR gate = 2",
                    [step],
                )?;
                tx.execute("UPDATE mutation SET sent_us = sent_us + ?1 WHERE state = 1", [step])?;
                tx.execute("UPDATE cell SET rest_us = rest_us + ?1 WHERE rest_us IS NOT NULL", [step])?;
                tx.execute("UPDATE hold SET since_us = since_us + ?1, until_us = until_us + ?1", [step])?;
                tx.execute(
                    "UPDATE attempt SET sent_us = sent_us + ?1, answered_us = answered_us + ?1 WHERE sent_us >= ?2",
                    [step, past],
                )?;
                tracing::warn!(step_us = step, "the wall clock was stepped since the run before");
            }
        }
        tx.execute("DELETE FROM frame", [])?;
        tx.execute("INSERT INTO frame (boot_id, offset_us) VALUES (?1, ?2)", (&self.boot_id, self.offset))?;
        tx.commit()
    }
}

/// `12345.67 …` as a duration.
fn parse_uptime(text: &str) -> Option<Duration> {
    let (seconds, rest) = text.split_whitespace().next()?.split_once('.')?;
    let hundredths: u64 = rest.get(..2)?.parse().ok()?;
    Some(Duration::from_secs(seconds.parse().ok()?) + Duration::from_millis(hundredths.checked_mul(10)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_is_read_in_hundredths() {
        assert_eq!(parse_uptime("12345.67 99.00\n"), Some(Duration::from_millis(12_345_670)));
        assert_eq!(parse_uptime("soon"), None);
    }
}
