//! What people do to mutations: replay, discard, cancel.

use std::collections::BTreeSet;

use ota_governor_core::name::CorrelationId;
use ota_governor_core::order::{self, Member};
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use super::cell::{self, Cell};
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
    if let Some(refused) = newer(tx, &row)? {
        return Ok(refused);
    }
    if row.record.state != State::DeadLettered {
        return Ok(Replay::Newer { by: None });
    }
    let mut queued = row.clone();
    queued.finish(State::Queued, None, now);
    queued.record.attempts = 0;
    queued.gate = gate::BEHIND;
    row::save(tx, &row, &queued)?;
    let mut group = Group::load(tx, &row.stock)?;
    group.restock(tx, id)?;
    group.hurry()?;
    group.save(tx, now)?;
    Ok(Replay::Queued)
}

/// The refusal of a replay that would overwrite a newer value; it names that one if it is on record.
fn newer(tx: &Tx<'_>, dead: &Row) -> Outcome<Option<Replay>> {
    let id = dead.record.id.0;
    let dead_member = group::member(dead);
    let cells = cell::of_stock(tx, &dead.stock)?;
    let mut others: Vec<Member> = cells.iter().filter_map(Cell::gone).collect();
    let mut rows = Vec::new();
    let mut hidden = false;
    for cell in cells.iter().filter(|cell| cell.latest > id) {
        match row::by_id(tx, MutationId(cell.latest))? {
            Some(row) if row.record.state != State::Cancelled => {
                // A restriction of other fields may hide one of the same fields.
                hidden |= order::newer_than(&dead_member, &[group::member(&row)]).is_none();
                rows.push(row);
            }
            Some(_) | None => hidden = true,
        }
    }
    if hidden {
        rows = scan(tx, dead)?;
    }
    others.extend(rows.iter().map(group::member));
    let Some(by) = order::newer_than(&dead_member, &others) else { return Ok(None) };
    let by = rows.into_iter().find(|row| row.record.id.0 == by);
    Ok(Some(Replay::Newer { by: by.map(|row| row.record.mutation.correlation_id) }))
}

/// All rows of the stock accepted since: the rare case, and no index is kept for it.
fn scan(tx: &Tx<'_>, dead: &Row) -> Outcome<Vec<Row>> {
    let sql = format!("{SELECT} WHERE m.id > ?1 AND +m.stock = ?2 AND +m.state <> 6");
    row::find_all(tx, &sql, (dead.record.id.0, &dead.stock))
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
            cancelled.finish(State::Cancelled, None, now);
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
