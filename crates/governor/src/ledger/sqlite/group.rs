//! A stock group: the rows of the open mutations of one channel, account, property, room and date.
//!
//! The rules of order are asked here and nowhere else: every change to a group loads it, changes it,
//! and saves what has become of it in the same transaction.

use ota_governor_core::idempotency;
use ota_governor_core::mutation::{Inventory, Mutation, Priority, Value};
use ota_governor_core::name::{CorrelationId, RatePlanCode};
use ota_governor_core::order::{self, Member, Rest, Standing, Stock};
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use super::cell::{self, Cell};
use super::code::gate;
use super::fault::{Outcome, damaged};
use super::row::{self, Row};
use super::tx::Tx;
use crate::ledger::MutationId;

/// The open mutations of a stock as they were and as they are to be.
pub(super) struct Group {
    stock: Vec<u8>,
    before: Vec<Row>,
    rows: Vec<Row>,
    cells: Vec<Cell>,
}

impl Group {
    /// Loads the open mutations of a stock and its cells.
    pub(super) fn load(tx: &Tx<'_>, stock: &[u8]) -> Outcome<Self> {
        let before = row::open_of(tx, stock)?;
        let cells = cell::of_stock(tx, stock)?;
        Ok(Self { stock: stock.to_vec(), rows: before.clone(), before, cells })
    }

    /// One of its mutations, to be changed.
    pub(super) fn row(&mut self, id: MutationId) -> Outcome<&mut Row> {
        self.rows.iter_mut().find(|row| row.record.id == id).ok_or(damaged("state"))
    }

    /// Lets the newest, which is among the rows already, take the place of those it supersedes.
    pub(super) fn admit(
        &mut self,
        tx: &Tx<'_>,
        id: MutationId,
        now: Timestamp,
    ) -> Outcome<Vec<CorrelationId>> {
        let newest = self.row(id)?.clone();
        let others = self.members(|row| row.record.id != id);
        let admitted = order::admit(&member(&newest), &others);
        let mut superseded = Vec::new();
        for old in &admitted.superseded {
            let row = self.row(MutationId(*old))?;
            superseded.push(row.record.mutation.correlation_id.clone());
            row.supersede(&newest.record.mutation.correlation_id, now);
        }
        if let Some(inventory) = newest.record.mutation.value.inventory() {
            for rate in &admitted.rewritten {
                self.rewrite(tx, MutationId(*rate), inventory)?;
            }
        }
        let row = self.row(id)?;
        row.place = admitted.place;
        row.record.mutation.priority = admitted.priority;
        row.record.replaced = superseded.last().cloned();
        self.promote(&admitted.promoted)?;
        Ok(superseded)
    }

    /// Whether a newer one takes the place of this one, whose request was no success; then it does.
    pub(super) fn succeed(&mut self, id: MutationId, now: Timestamp) -> Outcome<bool> {
        let settled = member(self.row(id)?);
        let Some(succession) = order::superseded_at_settle(&settled, &self.members(|_| true)) else {
            return Ok(false);
        };
        let older = self.row(id)?.record.mutation.correlation_id.clone();
        let heir = self.row(MutationId(succession.by))?;
        heir.place = succession.place;
        heir.record.mutation.priority = succession.priority;
        // The value that it replaced last stays the one that is named.
        heir.record.replaced = heir.record.replaced.take().or(Some(older));
        let by = heir.record.mutation.correlation_id.clone();
        self.row(id)?.supersede(&by, now);
        self.promote(&succession.promoted)?;
        Ok(true)
    }

    /// Gives one the newest inventory, which may have been accepted while it could not be rewritten.
    pub(super) fn restock(&mut self, tx: &Tx<'_>, id: MutationId) -> Outcome<()> {
        let stocks: Vec<Stock> = self.cells.iter().filter_map(Cell::stock).collect();
        if let Some(inventory) = order::inventory_for(&member(self.row(id)?), &stocks) {
            self.rewrite(tx, id, inventory)?;
        }
        Ok(())
    }

    /// Gives those in front of an urgent one its urgency.
    pub(super) fn hurry(&mut self) -> Outcome<()> {
        let promoted = order::promotions(&self.members(|_| true));
        self.promote(&promoted)
    }

    /// Lets the cell of this one rest: only itself may go before then.
    pub(super) fn rest(&mut self, tx: &Tx<'_>, id: MutationId, until: Timestamp) -> Outcome<()> {
        let mutation = self.row(id)?.record.mutation.clone();
        for cell in self.cells.iter_mut().filter(|cell| cell.is_of(&mutation)) {
            // A rest under way is only ever lengthened.
            let until = cell.rest.map_or(until, |(before, _)| until.max(before));
            cell.rest = Some((until, Some(id.0)));
            cell.save_rest(tx, &self.stock)?;
        }
        Ok(())
    }

    fn rewrite(&mut self, tx: &Tx<'_>, id: MutationId, new: Inventory) -> Outcome<()> {
        let row = self.row(id)?;
        let Value::Rate { inventory, .. } = &mut row.record.mutation.value else { return Ok(()) };
        if *inventory == new {
            return Ok(());
        }
        *inventory = new;
        let record = &mut row.record;
        record.idempotency_key =
            idempotency::key(row.recipe, tx.ledger_id(), &record.mutation, record.revision);
        // What may still arrive is no longer what would be sent.
        for cell in &mut self.cells {
            if let Some((until, Some(of))) = cell.rest
                && of == id.0
            {
                cell.rest = Some((until, None));
                cell.save_rest(tx, &self.stock)?;
            }
        }
        Ok(())
    }

    fn promote(&mut self, promoted: &[(i64, Priority)]) -> Outcome<()> {
        for (id, priority) in promoted {
            self.row(MutationId(*id))?.record.mutation.priority = *priority;
        }
        Ok(())
    }

    fn members(&self, keep: impl Fn(&Row) -> bool) -> Vec<Member> {
        self.rows.iter().filter(|row| row.is_open() && keep(row)).map(member).collect()
    }

    /// Decides anew what each of them waits for, and writes what has changed.
    pub(super) fn save(mut self, tx: &mut Tx<'_>, now: Timestamp) -> Outcome<()> {
        let rests: Vec<Rest> = self.cells.iter().filter_map(Cell::rest).collect();
        for (id, standing) in order::arrange(&self.members(|_| true), &rests, now) {
            let (gate, at, behind) = match standing {
                Standing::Ready => (gate::READY, None, None),
                Standing::At(time) => (gate::TIME, Some(time), None),
                Standing::Behind(other) => {
                    let other = self.row(MutationId(other))?;
                    (gate::BEHIND, None, Some(other.record.mutation.correlation_id.clone()))
                }
            };
            let row = self.row(MutationId(id))?;
            row.gate = gate;
            row.at = at;
            row.show_due();
            row.record.behind = behind;
        }
        for (before, after) in self.before.iter().zip(&self.rows) {
            if before != after {
                row::save(tx, before, after)?;
            }
        }
        Ok(())
    }
}

/// What the rules must know of a row.
pub(super) fn member(row: &Row) -> Member {
    let record = &row.record;
    Member {
        in_flight: record.state == State::InFlight,
        priority: record.mutation.priority,
        place: row.place,
        due: row.due,
        ..Member::new(record.id.0, &record.mutation)
    }
}

/// The plan as a cell's row has it: empty where it covers every plan.
pub(super) fn plan(mutation: &Mutation) -> &str {
    mutation.rate_plan_code.as_ref().map_or("", RatePlanCode::as_str)
}
