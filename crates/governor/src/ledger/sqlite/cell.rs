//! Cells: what is kept of a cell beyond its open mutations.

use ota_governor_core::mutation::{Inventory, Kind, Mutation, Priority};
use ota_governor_core::name::RatePlanCode;
use ota_governor_core::order::{Member, Rest, Stock};
use ota_governor_core::time::Timestamp;

use super::code;
use super::fault::{Outcome, damaged};
use super::tx::Tx;

/// A cell's row.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    kind: Kind,
    plan: Option<RatePlanCode>,
    /// The newest mutation accepted for it.
    pub(super) latest: i64,
    /// The newest taken off the record that was not cancelled.
    gone: Option<i64>,
    /// The inventory of that one, for an availability.
    inventory: Option<Inventory>,
    /// Until when it rests, and after whose request.
    pub(super) rest: Option<(Timestamp, Option<i64>)>,
}

impl Cell {
    /// Whether this mutation sets it.
    pub(super) fn is_of(&self, mutation: &Mutation) -> bool {
        self.kind == mutation.kind() && self.plan == mutation.rate_plan_code
    }

    /// A member that stands for what was taken off the record; it may have set any field.
    pub(super) fn gone(&self) -> Option<Member> {
        Some(Member {
            id: self.gone?,
            kind: self.kind,
            plan: self.plan.clone(),
            fields: u8::MAX,
            in_flight: false,
            priority: Priority::default(),
            place: self.gone?,
            due: None,
        })
    }

    /// Its rest, as the rules see it.
    pub(super) fn rest(&self) -> Option<Rest> {
        let (until, of) = self.rest?;
        Some(Rest { kind: self.kind, plan: self.plan.clone(), until, of })
    }

    /// The inventory last accepted for it, as the rules see it.
    pub(super) fn stock(&self) -> Option<Stock> {
        Some(Stock { plan: self.plan.clone(), inventory: self.inventory?, id: self.latest })
    }

    /// Writes its rest.
    pub(super) fn save_rest(&self, tx: &Tx<'_>, stock: &[u8]) -> Outcome<()> {
        let plan = self.plan.as_ref().map_or("", RatePlanCode::as_str);
        let (until, of) = self.rest.map_or((None, None), |(until, of)| (Some(until.as_micros()), of));
        tx.sql("UPDATE cell SET rest_us = ?4, rest_of = ?5 WHERE stock = ?1 AND kind = ?2 AND plan = ?3")?
            .execute((stock, code::kind(self.kind), plan, until, of))?;
        Ok(())
    }
}

/// The cells of a stock.
pub(super) fn of_stock(tx: &Tx<'_>, stock: &[u8]) -> Outcome<Vec<Cell>> {
    let mut statement =
        tx.sql("SELECT kind, plan, latest, inventory, rest_us, rest_of, gone FROM cell WHERE stock = ?1")?;
    let mut rows = statement.query([stock])?;
    let mut cells = Vec::new();
    while let Some(row) = rows.next()? {
        let plan = row.get_ref(1)?.as_str().map_err(|_| damaged("plan"))?;
        let plan = if plan.is_empty() {
            None
        } else {
            Some(RatePlanCode::try_new(plan).map_err(|_| damaged("plan"))?)
        };
        let inventory = match row.get::<_, Option<u16>>(3)? {
            Some(number) => Some(Inventory::try_new(number).ok_or(damaged("inventory"))?),
            None => None,
        };
        let of = row.get(5)?;
        cells.push(Cell {
            kind: code::read_kind(row.get(0)?)?,
            plan,
            latest: row.get(2)?,
            gone: row.get(6)?,
            inventory,
            rest: row.get::<_, Option<i64>>(4)?.map(|until| (Timestamp::from_micros(until), of)),
        });
    }
    Ok(cells)
}
