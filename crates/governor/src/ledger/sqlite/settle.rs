//! Settling: what the answers make of the mutations in flight.

use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;
use rusqlite::named_params;

use super::code;
use super::fault::Outcome;
use super::group::{self, Group};
use super::hold;
use super::row::{self, Row};
use super::tx::Tx;
use crate::ledger::{Attempt, Disposition, Outcome as Answer, Settled, Settlement};

/// Writes outcomes with the lane's state.
pub(super) fn run(tx: &mut Tx<'_>, settlement: &Settlement) -> Outcome<Vec<Settled>> {
    let mut settled = Vec::with_capacity(settlement.outcomes.len());
    for answer in &settlement.outcomes {
        let Some(row) = row::by_id(tx, answer.id)? else { continue };
        let state = one(tx, &row, answer, settlement.now)?;
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

/// Settles one that is in flight; one that is not stays as it is.
pub(super) fn one(tx: &mut Tx<'_>, row: &Row, answer: &Answer, now: Timestamp) -> Outcome<State> {
    if row.record.state != State::InFlight {
        return Ok(row.record.state);
    }
    if let Some(until) = answer.rest_until {
        let mutation = &row.record.mutation;
        tx.sql("UPDATE cell SET rest_us = ?4 WHERE stock = ?1 AND kind = ?2 AND plan = ?3")?.execute((
            &row.stock,
            code::kind(mutation.kind()),
            group::plan(mutation),
            until.as_micros(),
        ))?;
    }
    let mut group = Group::load(tx, &row.stock)?;
    let settled = group.find(row.record.id)?;
    if let Some(attempt) = &answer.attempt {
        record(tx, row, attempt, false)?;
        settled.record.requests += 1;
        settled.record.attempts += u32::from(attempt.counted);
        settled.record.throttled += u32::from(attempt.status == Some(429));
        settled.record.last_status = attempt.status;
        settled.record.last_answer.clone_from(&attempt.answer);
    }
    group.settle(row.record.id, &answer.disposition, now)?;
    let state = group.find(row.record.id)?.record.state;
    group.save(tx, now)?;
    Ok(state)
}

/// Keeps a request in the mutation's history.
pub(super) fn record(tx: &Tx<'_>, row: &Row, attempt: &Attempt, lost: bool) -> Outcome<()> {
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

impl Group {
    fn settle(
        &mut self,
        id: crate::ledger::MutationId,
        disposition: &Disposition,
        now: Timestamp,
    ) -> Outcome<()> {
        let settled = self.find(id)?.clone();
        let heir = self.rows.iter_mut().find(|row| {
            row.record.id > id
                && row.is_open()
                && group::supersedes(&row.record.mutation, &settled.record.mutation)
        });
        let heir = match heir {
            Some(heir) if !matches!(disposition, Disposition::Committed { .. }) => {
                group::bequeath(&settled, heir);
                Some(heir.record.mutation.correlation_id.clone())
            }
            _ => None,
        };
        let settled = self.find(id)?;
        settled.sent = None;
        settled.record.changed_at = now;
        match (disposition, heir) {
            (Disposition::Committed { confirmation_id }, _) => {
                settled.finish(State::Committed, now);
                settled.record.reason = None;
                settled.record.confirmation_id = Some(confirmation_id.clone());
            }
            (_, Some(heir)) => {
                settled.finish(State::Superseded, now);
                settled.record.reason = None;
                settled.record.superseded_by = Some(heir);
            }
            (Disposition::Deferred { reason, due }, None) => {
                settled.record.state = State::Deferred;
                settled.record.reason = Some(reason.as_str().to_owned());
                settled.record.due = Some(*due);
            }
            (Disposition::DeadLettered { reason }, None) => {
                settled.finish(State::DeadLettered, now);
                settled.record.reason = Some(reason.as_str().to_owned());
            }
            (Disposition::Returned, None) => {
                let parked = settled.record.reason.is_some();
                settled.record.state = if parked { State::Deferred } else { State::Queued };
            }
        }
        Ok(())
    }
}
