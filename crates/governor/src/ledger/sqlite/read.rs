//! What people and reports ask: records, lists, counts.

use std::collections::{BTreeMap, BTreeSet};

use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::{ChannelName, CorrelationId, PropertyId};
use ota_governor_core::time::Timestamp;
use rusqlite::Connection;

use super::code;
use super::digest;
use super::fault::{Outcome, damaged};
use super::filter;
use super::row::{Row, SELECT};
use super::tx::lane_key;
use crate::ledger::{Attempt, Counts, Filter, MutationId, PastCall, Record, Tallies, Tally};

/// All counts; the rows of mutations are not looked at.
pub(super) fn tallies(conn: &Connection) -> Outcome<Tallies> {
    let (accepted, pruned, discarded) = conn
        .prepare_cached("SELECT accepted, pruned, discarded FROM counter")?
        .query_row([], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?, unsigned(row, 2)?)))?;
    let mut statement = conn.prepare_cached(
        "SELECT l.channel, l.account, l.endpoint, t.state, t.priority, t.n FROM tally t
         JOIN lane l ON l.id = t.lane_id ORDER BY l.channel, l.account, l.endpoint, t.state, t.priority",
    )?;
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(Tally {
            lane: read_lane(row)?,
            state: code::read_state(row.get(3)?)?,
            priority: Priority::try_new(row.get(4)?).ok_or(damaged("priority"))?,
            count: unsigned(row, 5)?,
        });
    }
    Ok(Tallies { rows, accepted, pruned, discarded })
}

/// The lanes with open mutations.
pub(super) fn lanes(conn: &Connection) -> Outcome<Vec<LaneKey>> {
    let mut statement = conn.prepare_cached(
        "SELECT channel, account, endpoint FROM lane WHERE open > 0 ORDER BY channel, account, endpoint",
    )?;
    let mut found = statement.query([])?;
    let mut lanes = Vec::new();
    while let Some(row) = found.next()? {
        lanes.push(read_lane(row)?);
    }
    Ok(lanes)
}

/// One mutation with its history.
pub(super) fn get(conn: &Connection, correlation_id: &CorrelationId) -> Outcome<Option<Record>> {
    let mut statement =
        conn.prepare_cached(&format!("{SELECT} WHERE m.name = ?1 AND m.correlation_id = ?2"))?;
    let mut rows = statement.query((digest::name(correlation_id), correlation_id.as_str()))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut record = Row::read(row)?.record;
    record.history = history(conn, record.id)?;
    Ok(Some(record))
}

fn history(conn: &Connection, id: MutationId) -> Outcome<Vec<Attempt>> {
    let mut statement = conn.prepare_cached(
        "SELECT sent_us, answered_us, status, answer, retry_after, counted FROM attempt
         WHERE mutation_id = ?1 ORDER BY id",
    )?;
    let attempts = statement.query_map([id.0], |row| {
        Ok(Attempt {
            sent_at: Timestamp::from_micros(row.get(0)?),
            answered_at: Timestamp::from_micros(row.get(1)?),
            status: row.get(2)?,
            answer: row.get(3)?,
            retry_after: row.get(4)?,
            counted: row.get(5)?,
        })
    })?;
    Ok(attempts.collect::<rusqlite::Result<_>>()?)
}

/// Mutations after the cursor in order of acceptance, without history.
pub(super) fn list(
    conn: &Connection,
    filter: &Filter,
    after: Option<MutationId>,
    limit: usize,
) -> Outcome<Vec<Record>> {
    let query = filter::query(filter, after, limit);
    let mut statement = conn.prepare_cached(&query.sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(&query.params))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(Row::read(row)?.record);
    }
    Ok(records)
}

/// Counts of these mutations, per channel.
pub(super) fn counts(conn: &Connection, ids: &[MutationId]) -> Outcome<Vec<(ChannelName, Counts)>> {
    let mut channels: BTreeMap<String, Counts> = BTreeMap::new();
    let mut statement = conn.prepare_cached(
        "SELECT l.channel, m.state, m.requests, m.throttled FROM mutation m
         CROSS JOIN lane l ON l.id = m.lane_id WHERE m.id = ?1",
    )?;
    for id in ids.iter().collect::<BTreeSet<_>>() {
        let mut rows = statement.query([id.0])?;
        let Some(row) = rows.next()? else { continue };
        let channel = row.get_ref(0)?.as_str().map_err(|_| damaged("channel"))?;
        if !channels.contains_key(channel) {
            channels.insert(channel.to_owned(), Counts::default());
        }
        let Some(counts) = channels.get_mut(channel) else { continue };
        let state = usize::try_from(row.get::<_, i64>(1)?).map_err(|_| damaged("state"))?;
        *counts.states.get_mut(state).ok_or(damaged("state"))? += 1;
        counts.requests += unsigned(row, 2)?;
        counts.throttled += unsigned(row, 3)?;
    }
    channels
        .into_iter()
        .map(|(channel, counts)| {
            Ok((ChannelName::try_new(&channel).map_err(|_| damaged("channel"))?, counts))
        })
        .collect()
}

/// Calls sent at or after `since`, and those in flight when the process before died.
pub(super) fn past_calls(conn: &Connection, since: Timestamp) -> Outcome<Vec<PastCall>> {
    let mut statement = conn.prepare_cached(
        "SELECT l.channel, l.account, l.endpoint, c.property_id, c.sent_us, c.answered_us FROM (
             SELECT lane_id, property_id, sent_us, iif(lost, NULL, answered_us) AS answered_us
             FROM attempt INDEXED BY attempt_sent WHERE sent_us >= ?1
             UNION ALL
             SELECT lane_id, property_id, sent_us, NULL
             FROM attempt INDEXED BY attempt_lost WHERE lost = 1 AND sent_us < ?1
             UNION ALL
             SELECT lane_id, property_id, sent_us, NULL FROM mutation INDEXED BY mutation_sent WHERE state = 1
         ) c JOIN lane l ON l.id = c.lane_id
         ORDER BY c.sent_us, l.channel, l.account, l.endpoint, c.property_id",
    )?;
    let mut rows = statement.query([since.as_micros()])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let property: String = row.get(3)?;
        calls.push(PastCall {
            lane: read_lane(row)?,
            property: PropertyId::try_new(&property).map_err(|_| damaged("property"))?,
            sent_at: Timestamp::from_micros(row.get(4)?),
            answered_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_micros),
        });
    }
    Ok(calls)
}

fn read_lane(row: &rusqlite::Row<'_>) -> Outcome<LaneKey> {
    lane_key(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?, &row.get::<_, String>(2)?)
}

fn unsigned(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}
