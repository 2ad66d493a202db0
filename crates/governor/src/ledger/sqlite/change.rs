//! What people do to mutations: replay, discard, cancel.

use std::collections::BTreeSet;

use ota_governor_core::mutation::Kind;
use ota_governor_core::name::CorrelationId;
use ota_governor_core::order;
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use super::cell;
use super::code::gate;
use super::fault::Outcome;
use super::filter;
use super::group::{self, Group};
use super::keep;
use super::row::{self, Row, SELECT};
use super::tx::Tx;
use crate::ledger::{Filter, MutationId, Replay};

/// Rows held in memory while a filter's mutations are taken back.
const PAGE: usize = 1_000;

/// Puts dead letters back in the queue, unless their cell has a newer value.
pub(super) fn replay(tx: &mut Tx<'_>, ids: &[MutationId], now: Timestamp) -> Outcome<Vec<Replay>> {
    ids.iter().map(|id| replay_one(tx, *id, now)).collect()
}

fn replay_one(tx: &mut Tx<'_>, id: MutationId, now: Timestamp) -> Outcome<Replay> {
    let Some(row) = row::by_id(tx, id)? else { return Ok(Replay::Newer { by: None }) };
    if row.is_open() {
        return Ok(Replay::Queued);
    }
    if row.record.state != State::DeadLettered {
        return Ok(Replay::Newer { by: row.record.superseded_by });
    }
    if let Some(by) = newer(tx, &row)? {
        return Ok(Replay::Newer { by });
    }
    let mut queued = row.clone();
    queued.record.state = State::Queued;
    queued.record.changed_at = now;
    queued.record.attempts = 0;
    queued.record.reason = None;
    queued.gate = gate::BEHIND;
    row::save(tx, &row, &queued)?;
    let mut group = Group::load(tx, &row.stock)?;
    group.rejoin(tx, id)?;
    group.save(tx, now)?;
    Ok(Replay::Queued)
}

/// What a replay of this dead letter would overwrite; its id, if it is still on record.
fn newer(tx: &Tx<'_>, dead: &Row) -> Outcome<Option<Option<CorrelationId>>> {
    let id = dead.record.id;
    let dead_member = group::member(dead);
    let mut look_further = false;
    let mut found: Option<Row> = None;
    for cell in cell::of_stock(tx, &dead.stock)?.into_iter().filter(|cell| cell.latest > id.0) {
        match row::by_id(tx, MutationId(cell.latest))? {
            Some(latest) if latest.record.state == State::Cancelled => look_further = true,
            Some(latest) if order::newer_than(&dead_member, &[group::member(&latest)]).is_some() => {
                if found.as_ref().is_none_or(|row| row.record.id < latest.record.id) {
                    found = Some(latest);
                }
            }
            // A restriction of other fields may hide one of the same fields.
            Some(latest) => look_further |= latest.record.mutation.kind() == Kind::Restriction,
            // It finished, and has been pruned since.
            None if cell.is_of(&dead.record.mutation) => return Ok(Some(None)),
            None => {}
        }
    }
    if found.is_none() && look_further {
        found = scan(tx, dead)?;
    }
    Ok(found.map(|row| Some(row.record.mutation.correlation_id)))
}

/// The same by all rows accepted since: the rare case, and no index is kept for it.
fn scan(tx: &Tx<'_>, dead: &Row) -> Outcome<Option<Row>> {
    let sql = format!("{SELECT} WHERE m.id > ?1 AND +m.stock = ?2 AND +m.state <> 6");
    let rows = row::find_all(tx, &sql, (dead.record.id.0, &dead.stock))?;
    let members: Vec<_> = rows.iter().map(group::member).collect();
    let by = order::newer_than(&group::member(dead), &members);
    Ok(rows.into_iter().find(|row| Some(row.record.id.0) == by))
}

/// Removes dead letters for good.
pub(super) fn discard(tx: &mut Tx<'_>, ids: &[MutationId]) -> Outcome<u64> {
    let mut gone = 0;
    for id in ids {
        let Some(row) = row::by_id(tx, *id)?.filter(|row| row.record.state == State::DeadLettered) else {
            continue;
        };
        keep::remove(tx, id.0)?;
        tx.count_discarded(row.lane_id, row.record.mutation.priority.get());
        gone += 1;
    }
    Ok(gone)
}

/// Takes back what is not in flight and not final.
pub(super) fn cancel(tx: &mut Tx<'_>, filter: &Filter, now: Timestamp) -> Outcome<Vec<CorrelationId>> {
    let mut taken = Vec::new();
    let mut after = None;
    loop {
        let query = filter::waiting(filter, after, PAGE);
        let rows = row::find_all(tx, &query.sql, rusqlite::params_from_iter(&query.params))?;
        let mut stocks = BTreeSet::new();
        for row in &rows {
            let mut cancelled = row.clone();
            cancelled.finish(State::Cancelled, now);
            row::save(tx, row, &cancelled)?;
            stocks.insert(row.stock.clone());
            taken.push(row.record.mutation.correlation_id.clone());
        }
        for stock in stocks {
            Group::load(tx, &stock)?.save(tx, now)?;
        }
        let Some(last) = rows.last() else { return Ok(taken) };
        after = Some(last.record.id);
    }
}
