//! Settling: what the answers make of the mutations in flight.

use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;
use rusqlite::named_params;

use super::fault::Outcome;
use super::group::Group;
use super::hold;
use super::row::{self, Row};
use super::tx::Tx;
use crate::ledger::{Attempt, Disposition, MutationId, Outcome as Answer, Settled, Settlement};

/// Writes outcomes with the lane's state.
pub(super) fn run(tx: &mut Tx<'_>, settlement: &Settlement) -> Outcome<Vec<Settled>> {
    let mut settled = Vec::with_capacity(settlement.outcomes.len());
    for answer in &settlement.outcomes {
        let Some(row) = row::by_id(tx, answer.id)? else { continue };
        let state = one(tx, &row, answer, false, settlement.now)?;
        settled.push(Settled { id: answer.id, state });
    }
    if let Some(health) = &settlement.health {
        hold::set_health(tx, &settlement.lane, health)?;
    }
    for (scope, cause) in &settlement.lifted {
        hold::lift(tx, scope, Some(*cause))?;
    }
    hold::put(tx, &settlement.holds)?;
    Ok(settled)
}

/// Settles one that is in flight; one that is not stays as it is. Its request is lost if the process
/// that sent it died before the answer.
pub(super) fn one(tx: &mut Tx<'_>, row: &Row, answer: &Answer, lost: bool, now: Timestamp) -> Outcome<State> {
    if row.record.state != State::InFlight {
        return Ok(row.record.state);
    }
    let mut group = Group::load(tx, &row.stock)?;
    let settled = group.row(row.record.id)?;
    if let Some(attempt) = &answer.attempt {
        record(tx, row, attempt, lost)?;
        settled.record.requests += 1;
        settled.record.attempts += u32::from(attempt.counted);
        settled.record.throttled += u32::from(attempt.status == Some(429));
        settled.record.last_status = attempt.status.or(settled.record.last_status);
        if attempt.answer.is_some() {
            settled.record.last_answer.clone_from(&attempt.answer);
        }
    }
    if let Some(until) = answer.rest_until {
        group.rest(tx, row.record.id, until)?;
    }
    dispose(tx, &mut group, row.record.id, &answer.disposition, now)?;
    let state = group.row(row.record.id)?.record.state;
    group.save(tx, now)?;
    Ok(state)
}

/// Keeps a request in the mutation's history.
fn record(tx: &Tx<'_>, row: &Row, attempt: &Attempt, lost: bool) -> Outcome<()> {
    tx.sql(
        "INSERT INTO attempt (mutation_id, lane_id, property_id, sent_us, answered_us, lost, status, answer,
         retry_after, counted)
         VALUES (:id, :lane, :property, :sent, :answered, :lost, :status, :answer, :retry_after, :counted)",
    )?
    .execute(named_params! {
        ":id": row.record.id.0,
        ":lane": row.lane_id,
        ":property": row.record.mutation.property_id.as_str(),
        ":sent": attempt.sent_at.as_micros(),
        ":answered": attempt.answered_at.as_micros(),
        ":lost": lost,
        ":status": attempt.status,
        ":answer": attempt.answer,
        ":retry_after": attempt.retry_after,
        ":counted": attempt.counted,
    })?;
    Ok(())
}

fn dispose(
    tx: &Tx<'_>,
    group: &mut Group,
    id: MutationId,
    disposition: &Disposition,
    now: Timestamp,
) -> Outcome<()> {
    group.row(id)?.sent = None;
    let committed = matches!(disposition, Disposition::Committed { .. });
    if !committed && group.succeed(id, now)? {
        return Ok(());
    }
    let row = group.row(id)?;
    let record = &mut row.record;
    record.changed_at = now;
    match disposition {
        Disposition::Committed { confirmation_id } => {
            record.confirmation_id = Some(confirmation_id.clone());
            row.finish(State::Committed, None, now);
            return Ok(());
        }
        Disposition::DeadLettered { reason } => {
            row.finish(State::DeadLettered, Some(reason.as_str()), now);
        }
        Disposition::Deferred { reason, due } => {
            record.state = State::Deferred;
            record.reason = Some(reason.as_str().to_owned());
            row.due = Some(*due);
        }
        // What was parked before it was claimed has its due time still.
        Disposition::Returned if row.due.is_some() => record.state = State::Deferred,
        Disposition::Returned => record.state = State::Queued,
    }
    group.restock(tx, id)
}
