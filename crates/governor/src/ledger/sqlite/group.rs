//! A stock group: the open mutations of one channel, account, property, room and date.

use ota_governor_core::mutation::{Kind, Mutation, Value};
use ota_governor_core::name::{CorrelationId, RatePlanCode};
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use super::code;
use super::code::gate;
use super::fault::{Outcome, damaged};
use super::row::{self, Row};
use super::tx::Tx;
use crate::ledger::MutationId;

/// The open mutations of a stock as they were and as they are to be.
pub(super) struct Group {
    before: Vec<Row>,
    pub(super) rows: Vec<Row>,
}

impl Group {
    pub(super) fn load(tx: &Tx<'_>, stock: &[u8]) -> Outcome<Self> {
        let before = row::open_of(tx, stock)?;
        Ok(Self { rows: before.clone(), before })
    }

    /// Decides anew what each of them waits for, and writes what has changed.
    pub(super) fn save(mut self, tx: &mut Tx<'_>, now: Timestamp) -> Outcome<()> {
        for at in 0..self.rows.len() {
            let Some(row) = self.rows.get(at) else { continue };
            if !matches!(row.record.state, State::Queued | State::Deferred) {
                continue;
            }
            let blocker = self
                .rows
                .iter()
                .find(|other| other.record.id != row.record.id && blocks(other, row))
                .map(|other| other.record.mutation.correlation_id.clone());
            let free = rest(tx, &row.stock, &row.record.mutation)?.max(row.record.due);
            let Some(row) = self.rows.get_mut(at) else { continue };
            row.gate = match (&blocker, free) {
                (Some(_), _) => gate::BEHIND,
                (None, Some(free)) if free > now => {
                    row.record.due = Some(free);
                    gate::TIME
                }
                (None, _) => gate::READY,
            };
            row.record.behind = blocker;
        }
        for (before, after) in self.before.iter().zip(&self.rows) {
            if before != after {
                row::save(tx, before, after)?;
            }
        }
        Ok(())
    }

    /// Lets the newest take the place of those it supersedes; rewrites stock that it makes old.
    pub(super) fn admit(&mut self, id: MutationId, now: Timestamp) -> Outcome<Vec<CorrelationId>> {
        let newest = self.find(id)?.clone();
        let value = &newest.record.mutation;
        let mut heir = newest.clone();
        let mut superseded = Vec::new();
        for row in self.rows.iter_mut().filter(|row| row.record.id != id) {
            if !matches!(row.record.state, State::Queued | State::Deferred) {
                continue;
            }
            if supersedes(value, &row.record.mutation) {
                superseded.push(row.record.mutation.correlation_id.clone());
                bequeath(row, &mut heir);
                row.record.superseded_by = Some(value.correlation_id.clone());
                row.finish(State::Superseded, now);
            } else if let (Value::Availability { inventory: new }, Value::Rate { inventory, .. }) =
                (&value.value, &mut row.record.mutation.value)
                && value
                    .rate_plan_code
                    .as_ref()
                    .is_none_or(|plan| row.record.mutation.rate_plan_code.as_ref() == Some(plan))
            {
                *inventory = *new;
            }
        }
        *self.find(id)? = heir;
        Ok(superseded)
    }

    pub(super) fn find(&mut self, id: MutationId) -> Outcome<&mut Row> {
        self.rows.iter_mut().find(|row| row.record.id == id).ok_or(damaged("state"))
    }
}

fn rest(tx: &Tx<'_>, stock: &[u8], mutation: &Mutation) -> Outcome<Option<Timestamp>> {
    let mut statement = tx.sql(
        "SELECT rest_us FROM cell WHERE stock = ?1 AND kind = ?2 AND plan = ?3 AND rest_us IS NOT NULL",
    )?;
    let mut rows = statement.query((stock, code::kind(mutation.kind()), plan(mutation)))?;
    Ok(match rows.next()? {
        Some(row) => Some(Timestamp::from_micros(row.get(0)?)),
        None => None,
    })
}

/// The plan as a cell's row has it.
pub(super) fn plan(mutation: &Mutation) -> &str {
    mutation.rate_plan_code.as_ref().map_or("", RatePlanCode::as_str)
}

fn same_cell(a: &Mutation, b: &Mutation) -> bool {
    a.kind() == b.kind() && a.rate_plan_code == b.rate_plan_code
}

pub(super) fn supersedes(newer: &Mutation, older: &Mutation) -> bool {
    same_cell(newer, older)
        && match (&newer.value, &older.value) {
            (Value::Restriction(newer), Value::Restriction(older)) => {
                newer.fields() & older.fields() == older.fields()
            }
            _ => true,
        }
}

fn blocks(other: &Row, row: &Row) -> bool {
    let (a, b) = (&other.record.mutation, &row.record.mutation);
    let stock = |m: &Mutation| m.kind() != Kind::Restriction;
    let mixed = stock(a) && stock(b) && a.kind() != b.kind();
    let in_flight = other.record.state == State::InFlight;
    other.is_open()
        && ((same_cell(a, b) && (in_flight || other.record.id < row.record.id)) || (mixed && in_flight))
}

/// The newer takes over the place in the queue and the more urgent of the two priorities.
pub(super) fn bequeath(older: &Row, newer: &mut Row) {
    newer.place = newer.place.min(older.place);
    let priority = newer.record.mutation.priority.min(older.record.mutation.priority);
    newer.record.mutation.priority = priority;
    newer.record.replaced = Some(older.record.mutation.correlation_id.clone());
}

pub(super) fn key(
    _recipe: ota_governor_core::idempotency::Recipe,
    ledger: &str,
    m: &Mutation,
    revision: u64,
) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(format!("{ledger}{m:?}{revision}"));
    digest.iter().map(|b| format!("{b:02x}")).collect()
}
