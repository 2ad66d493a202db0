//! What people do to mutations: replay, discard, cancel.

use std::collections::BTreeSet;

use ota_governor_core::name::CorrelationId;
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use super::code;
use super::fault::Outcome;
use super::filter;
use super::group::{self, Group};
use super::keep;
use super::row::{self, Row};
use super::tx::Tx;
use crate::ledger::{Filter, MutationId, Replay};

/// Puts dead letters back in the queue, unless their cell has a newer value.
pub(super) fn replay(tx: &mut Tx<'_>, ids: &[MutationId], now: Timestamp) -> Outcome<Vec<Replay>> {
    ids.iter().map(|id| replay_one(tx, *id, now)).collect()
}

fn replay_one(tx: &mut Tx<'_>, id: MutationId, now: Timestamp) -> Outcome<Replay> {
    let Some(row) = row::by_id(tx, id)? else { return Ok(Replay::Newer { by: None }) };
    if row.is_open() {
        return Ok(Replay::Queued);
    }
    let mutation = &row.record.mutation;
    let latest: Option<i64> = {
        let mut statement = tx.sql("SELECT latest FROM cell WHERE stock = ?1 AND kind = ?2 AND plan = ?3")?;
        let mut rows = statement.query((&row.stock, code::kind(mutation.kind()), group::plan(mutation)))?;
        rows.next()?.map(|row| row.get(0)).transpose()?
    };
    if row.record.state != State::DeadLettered || latest != Some(id.0) {
        let by = match latest.filter(|latest| *latest != id.0) {
            Some(latest) => row::by_id(tx, MutationId(latest))?.map(|row| row.record.mutation.correlation_id),
            None => None,
        };
        return Ok(Replay::Newer { by });
    }
    let mut queued = row.clone();
    queued.record.state = State::Queued;
    queued.record.changed_at = now;
    queued.record.attempts = 0;
    queued.record.reason = None;
    queued.record.due = None;
    row::save(tx, &row, &queued)?;
    Group::load(tx, &row.stock)?.save(tx, now)?;
    Ok(Replay::Queued)
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
    let query = filter::query(filter, None, usize::MAX);
    let rows = row::find_all(tx, &query.sql, rusqlite::params_from_iter(&query.params))?;
    let waiting = |row: &&Row| matches!(row.record.state, State::Queued | State::Deferred);
    let mut stocks = BTreeSet::new();
    let mut taken = Vec::new();
    for row in rows.iter().filter(waiting) {
        let mut cancelled = row.clone();
        cancelled.finish(State::Cancelled, now);
        row::save(tx, row, &cancelled)?;
        stocks.insert(row.stock.clone());
        taken.push(row.record.mutation.correlation_id.clone());
    }
    for stock in stocks {
        Group::load(tx, &stock)?.save(tx, now)?;
    }
    Ok(taken)
}
