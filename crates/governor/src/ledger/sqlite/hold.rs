//! Holds and the lanes' health.

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::{Outcome, damaged};
use super::tx::Tx;
use crate::ledger::{Hold, HoldCause};

/// Puts holds in place; one of the same scope and cause is replaced.
pub(super) fn put(tx: &mut Tx<'_>, holds: &[Hold]) -> Outcome<()> {
    for hold in holds {
        tx.sql(
            "INSERT INTO hold (scope, cause, since_us, until_us, detail) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET since_us = excluded.since_us, until_us = excluded.until_us,
             detail = excluded.detail",
        )?
        .execute((
            word(&hold.scope)?,
            word(&hold.cause)?,
            hold.since.as_micros(),
            hold.until.map(Timestamp::as_micros),
            &hold.detail,
        ))?;
        tx.touch_scope(&hold.scope);
    }
    Ok(())
}

/// Lifts the holds of a scope, all causes or one.
pub(super) fn lift(tx: &mut Tx<'_>, scope: &Scope, cause: Option<HoldCause>) -> Outcome<Vec<Hold>> {
    let cause = cause.map(|cause| word(&cause)).transpose()?;
    let mut lifted = Vec::new();
    {
        let mut statement = tx.sql(
            "DELETE FROM hold WHERE scope = ?1 AND (?2 IS NULL OR cause = ?2)
             RETURNING scope, cause, since_us, until_us, detail",
        )?;
        let mut rows = statement.query((word(scope)?, cause))?;
        while let Some(row) = rows.next()? {
            lifted.push(read(row)?);
        }
    }
    lifted.sort_by_key(|hold| hold.cause);
    if !lifted.is_empty() {
        tx.touch_scope(scope);
    }
    Ok(lifted)
}

/// Every hold in place, in the order of scope and cause.
pub(super) fn all(conn: &Connection) -> Outcome<Vec<Hold>> {
    let mut statement = conn.prepare_cached("SELECT scope, cause, since_us, until_us, detail FROM hold")?;
    let mut rows = statement.query([])?;
    let mut holds = Vec::new();
    while let Some(row) = rows.next()? {
        holds.push(read(row)?);
    }
    holds.sort_by(|a, b| (&a.scope, a.cause).cmp(&(&b.scope, b.cause)));
    Ok(holds)
}

/// Keeps a lane's health.
pub(super) fn set_health(tx: &mut Tx<'_>, lane: &LaneKey, health: &str) -> Outcome<()> {
    let lane = tx.lane(lane)?;
    tx.sql("UPDATE lane SET health = ?2 WHERE id = ?1")?.execute((lane.id, health))?;
    Ok(())
}

/// The health kept for a lane.
pub(super) fn health(conn: &Connection, lane: &LaneKey) -> Outcome<Option<String>> {
    let kept = conn
        .prepare_cached("SELECT health FROM lane WHERE channel = ?1 AND account = ?2 AND endpoint = ?3")?
        .query_row((lane.channel.as_str(), lane.account.as_str(), lane.endpoint.as_str()), |row| row.get(0))
        .optional()?;
    Ok(kept.flatten())
}

fn read(row: &rusqlite::Row<'_>) -> Outcome<Hold> {
    Ok(Hold {
        scope: parse(&row.get::<_, String>(0)?, "scope")?,
        cause: parse(&row.get::<_, String>(1)?, "cause")?,
        since: Timestamp::from_micros(row.get(2)?),
        until: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_micros),
        detail: row.get(4)?,
    })
}

fn word<T: Serialize>(value: &T) -> Outcome<String> {
    serde_json::to_string(value).map_err(|_| damaged("hold"))
}

fn parse<T: DeserializeOwned>(text: &str, what: &'static str) -> Outcome<T> {
    serde_json::from_str(text).map_err(|_| damaged(what))
}
