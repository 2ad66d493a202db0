//! What waits in a lane.

use std::collections::HashSet;

use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::fault::{Outcome, damaged};
use super::tx::Tx;
use crate::ledger::Head;

/// Most ready ones counted.
const READY: i64 = 1_000;
/// Most properties listed.
const PROPERTIES: usize = 64;
/// Rows looked at in order of urgency before properties are looked up one by one.
const WALK: i64 = 512;

/// What waits, as far as the rows say.
pub(super) struct Look {
    pub(super) head: Head,
    /// Some parked ones have come due and are to be promoted before this is the whole truth.
    pub(super) overdue: bool,
}

/// What waits in a lane.
pub(super) fn look(conn: &Connection, lane: &LaneKey, now: Timestamp) -> Outcome<Look> {
    let lane: Option<(i64, bool)> = conn
        .prepare_cached("SELECT id, keyed FROM lane WHERE channel = ?1 AND account = ?2 AND endpoint = ?3")?
        .query_row((lane.channel.as_str(), lane.account.as_str(), lane.endpoint.as_str()), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((lane, keyed)) = lane else {
        return Ok(Look { head: Head::default(), overdue: false });
    };
    of(conn, lane, keyed, now)
}

/// What waits in the lane of this row.
pub(super) fn of(conn: &Connection, lane: i64, keyed: bool, now: Timestamp) -> Outcome<Look> {
    let due: Option<Timestamp> = conn
        .prepare_cached(
            "SELECT at_us FROM mutation INDEXED BY mutation_parked WHERE lane_id = ?1 AND gate = 2
             ORDER BY at_us LIMIT 1",
        )?
        .query_row([lane], |row| row.get(0))
        .optional()?
        .map(Timestamp::from_micros);
    let priority: Option<u16> = conn
        .prepare_cached(
            "SELECT priority FROM mutation INDEXED BY mutation_ready WHERE lane_id = ?1 AND gate = 1
             ORDER BY priority, place LIMIT 1",
        )?
        .query_row([lane], |row| row.get(0))
        .optional()?;
    let priority = match priority {
        Some(number) => Some(Priority::try_new(number).ok_or(damaged("priority"))?),
        None => None,
    };
    let ready: i64 = conn
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM mutation INDEXED BY mutation_ready
             WHERE lane_id = ?1 AND gate = 1 LIMIT ?2)",
        )?
        .query_row([lane, READY], |row| row.get(0))?;
    let properties = if keyed && ready > 0 { properties(conn, lane)? } else { Vec::new() };
    let head = Head { priority, ready: usize::try_from(ready).unwrap_or(0), due, properties };
    Ok(Look { head, overdue: due.is_some_and(|due| due <= now) })
}

/// Makes ready what is due by now.
pub(super) fn promote(tx: &Tx<'_>, lane: i64, now: Timestamp) -> Outcome<()> {
    // Counts do not change: a parked mutation stays `deferred` (or `queued`) until it is claimed.
    tx.sql(
        "UPDATE mutation INDEXED BY mutation_parked SET gate = 1 WHERE lane_id = ?1 AND gate = 2 AND at_us <= ?2",
    )?
    .execute((lane, now.as_micros()))?;
    Ok(())
}

/// Distinct properties in order of urgency.
fn properties(conn: &Connection, lane: i64) -> Outcome<Vec<PropertyId>> {
    let mut found = first_properties(conn, lane)?;
    if found.len() < PROPERTIES {
        found = each_property(conn, lane)?;
    }
    found.iter().map(|text| PropertyId::try_new(text).map_err(|_| damaged("property"))).collect()
}

/// The properties of the most urgent few rows: enough where many properties wait.
fn first_properties(conn: &Connection, lane: i64) -> Outcome<Vec<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT property_id FROM mutation INDEXED BY mutation_ready WHERE lane_id = ?1 AND gate = 1
         ORDER BY priority, place LIMIT ?2",
    )?;
    let mut rows = statement.query([lane, WALK])?;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let property = row.get_ref(0)?.as_str().map_err(|_| damaged("property"))?;
        if !seen.contains(property) {
            seen.insert(property.to_owned());
            found.push(property.to_owned());
            if found.len() == PROPERTIES {
                break;
            }
        }
    }
    Ok(found)
}

/// One seek per property, so that those behind a long queue of another are found too.
fn each_property(conn: &Connection, lane: i64) -> Outcome<Vec<String>> {
    let mut next = conn.prepare_cached(
        "SELECT property_id, priority, place FROM mutation INDEXED BY mutation_keyed
         WHERE lane_id = ?1 AND gate = 1 AND keyed = 1 AND property_id > ?2
         ORDER BY property_id, priority, place LIMIT 1",
    )?;
    let mut found: Vec<(u16, i64, String)> = Vec::new();
    let mut after = String::new();
    while let Some((property, priority, place)) = next
        .query_row((lane, &after), |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?)))
        .optional()?
    {
        after.clone_from(&property);
        found.push((priority, place, property));
    }
    found.sort_unstable();
    found.truncate(PROPERTIES);
    Ok(found.into_iter().map(|(_, _, property)| property).collect())
}
