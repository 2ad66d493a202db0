//! What keeps the ledger in order over time: recovery after a crash, pruning, the lanes' flags.

use std::time::Duration;

use ota_governor_core::lane::LaneKey;
use ota_governor_core::state::DeferReason;
use ota_governor_core::time::Timestamp;
use rusqlite::OptionalExtension;

use super::code;
use super::digest;
use super::fault::Outcome;
use super::row::{self, SELECT};
use super::settle;
use super::tx::Tx;
use crate::ledger::{Attempt, Disposition, Outcome as Answer};

/// Most finished rows removed by one call.
const ROWS: i64 = 2_000;
/// Most cells looked at by one call.
const CELLS: i64 = 20_000;

/// Marks exactly these lanes as keyed by property.
pub(super) fn key_by_property(tx: &mut Tx<'_>, lanes: &[LaneKey]) -> Outcome<()> {
    let mut wanted = Vec::new();
    for key in lanes {
        wanted.push(tx.lane(key)?.id);
    }
    let all: Vec<(i64, bool)> = tx
        .sql("SELECT id, keyed FROM lane")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (id, was) in all {
        let keyed = wanted.contains(&id);
        if keyed == was {
            continue;
        }
        tx.sql("UPDATE lane SET keyed = ?2 WHERE id = ?1")?.execute((id, keyed))?;
        // Rows that may not go yet take the flag when they next move.
        for gate in [
            "INDEXED BY mutation_ready SET keyed = ?2 WHERE gate = 1",
            "INDEXED BY mutation_parked SET keyed = ?2 WHERE gate = 2",
        ] {
            tx.sql(&format!("UPDATE mutation {gate} AND lane_id = ?1"))?.execute((id, keyed))?;
        }
        tx.forget_lanes();
        let lane = tx.lane_of(id)?;
        tx.touch(&lane);
    }
    Ok(())
}

/// Removes finished rows whose state changed before `before`, and cells whose stay date is before it.
pub(super) fn prune(tx: &mut Tx<'_>, before: Timestamp, _retention: Duration) -> Outcome<u64> {
    let mut gone = 0;
    for state in [3, 4, 5, 6] {
        let left = ROWS.saturating_sub(i64::try_from(gone).unwrap_or(ROWS));
        let rows: Vec<(i64, i64, u16)> = tx
            .sql(&format!(
                "SELECT id, lane_id, priority FROM mutation INDEXED BY mutation_finished
                 WHERE state = {state} AND state > 2 AND changed_us < ?1 ORDER BY changed_us LIMIT ?2"
            ))?
            .query_map((before.as_micros(), left), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let state = code::read_state(state)?;
        for (id, lane, priority) in rows {
            remove(tx, id)?;
            tx.count_pruned(lane, priority, state);
            gone += 1;
        }
    }
    tx.sql(
        "DELETE FROM attempt WHERE id IN (SELECT id FROM attempt a WHERE a.sent_us < ?1 AND NOT EXISTS (
             SELECT 1 FROM mutation m WHERE m.id = a.mutation_id) LIMIT ?2)",
    )?
    .execute((before.as_micros(), 5 * ROWS))?;
    prune_cells(tx, before)?;
    Ok(gone)
}

/// Removes a row. Its requests still count against limits: they go when they are old.
pub(super) fn remove(tx: &Tx<'_>, id: i64) -> Outcome<()> {
    // That it was there stays known: no older value of its cell is replayed.
    tx.sql(
        "UPDATE cell SET gone = max(ifnull(gone, 0), m.id) FROM mutation m
         WHERE m.id = ?1 AND m.state <> 6 AND cell.stock = m.stock AND cell.kind = m.kind
         AND cell.plan = ifnull(m.plan, '')",
    )?
    .execute([id])?;
    tx.sql("DELETE FROM mutation WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Looks at the next cells after those the call before looked at: an index over their dates would cost
/// every entry more than this costs now and then.
fn prune_cells(tx: &Tx<'_>, before: Timestamp) -> Outcome<()> {
    let day = digest::date(jiff::tz::TimeZone::UTC.to_datetime(before.to_jiff()).date());
    let from: Vec<u8> = tx.sql("SELECT cells_pruned_to FROM counter")?.query_row([], |row| row.get(0))?;
    let to: Option<Vec<u8>> = tx
        .sql("SELECT stock FROM cell WHERE stock >= ?1 ORDER BY stock LIMIT 1 OFFSET ?2")?
        .query_row((&from, CELLS), |row| row.get(0))
        .optional()?;
    let open = "EXISTS (SELECT 1 FROM mutation m WHERE m.stock = cell.stock AND m.state < 3)";
    tx.sql(&format!(
        "DELETE FROM cell WHERE stock >= ?1 AND (?2 IS NULL OR stock < ?2) AND substr(stock, 13) < ?3 AND NOT {open}"
    ))?
    .execute((&from, &to, day))?;
    tx.sql("UPDATE counter SET cells_pruned_to = ?1")?.execute([to.unwrap_or_default()])?;
    Ok(())
}

/// Parks what a dead process left in flight as of unknown outcome, due now.
pub(super) fn recover(tx: &mut Tx<'_>, now: Timestamp, rest: Duration) -> Outcome<u64> {
    // Those left by the process before the last were waited for at its start.
    tx.sql("UPDATE attempt INDEXED BY attempt_lost SET lost = 0 WHERE lost = 1")?.execute([])?;
    let indexed = SELECT.replace("mutation m", "mutation m INDEXED BY mutation_sent");
    let rows = row::find_all(tx, &format!("{indexed} WHERE m.state = 1 ORDER BY m.id"), [])?;
    let mut recovered = 0;
    for row in rows {
        let sent_at = row.sent.unwrap_or(now);
        let rest_until = Some(sent_at + rest);
        let attempt = Attempt {
            sent_at,
            answered_at: now,
            status: None,
            answer: Some("the process ended before the answer".to_owned()),
            retry_after: None,
            counted: false,
        };
        let disposition = Disposition::Deferred { reason: DeferReason::UnknownOutcome, due: now };
        let answer = Answer { id: row.record.id, attempt: Some(attempt), disposition, rest_until };
        settle::one(tx, &row, &answer, true, now)?;
        recovered += 1;
    }
    Ok(recovered)
}
