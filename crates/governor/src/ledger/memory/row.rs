//! One mutation as the memory ledger keeps it, and the group it belongs to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use ota_governor_core::idempotency::{self, Recipe};
use ota_governor_core::mutation::{Inventory, Kind, Mutation, Value};
use ota_governor_core::name::{AccountName, ChannelName, PropertyId, RatePlanCode, RoomTypeCode};
use ota_governor_core::order::{Member, Rest, Stock};
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use crate::ledger::{Filter, Record};

/// What names a stock group.
pub(super) type GroupKey = (ChannelName, AccountName, PropertyId, RoomTypeCode, Date);

/// What names a cell within its group.
pub(super) type CellKey = (Kind, Option<RatePlanCode>);

/// Where a mutation stands in its lane's indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// In none: in flight, final, or behind another.
    Out,
    /// Among those that may go.
    Ready,
    /// Among those that may go from then on.
    At(Timestamp),
}

/// A mutation and what its record does not show.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) record: Record,
    pub(super) recipe: Recipe,
    pub(super) content: [u8; 32],
    pub(super) place: i64,
    /// Its own due time, kept while it is in flight in case nothing is sent.
    pub(super) due: Option<Timestamp>,
    pub(super) sent_at: Option<Timestamp>,
    pub(super) slot: Slot,
}

impl Row {
    pub(super) fn member(&self) -> Member {
        let record = &self.record;
        Member {
            in_flight: record.state == State::InFlight,
            place: self.place,
            due: self.due,
            ..Member::new(record.id.0, &record.mutation)
        }
    }

    /// Gives a rate another inventory and the key that goes with it; whether that changed anything.
    pub(super) fn rewrite(&mut self, new: Inventory, ledger_id: &str) -> bool {
        let Value::Rate { inventory, .. } = &mut self.record.mutation.value else { return false };
        if *inventory == new {
            return false;
        }
        *inventory = new;
        let record = &mut self.record;
        record.idempotency_key = idempotency::key(self.recipe, ledger_id, &record.mutation, record.revision);
        true
    }

    /// Ends it, for good or until a replay.
    pub(super) fn finish(&mut self, state: State, reason: Option<&str>, now: Timestamp) {
        self.record.state = state;
        self.record.changed_at = now;
        self.record.reason = reason.map(str::to_owned);
        self.record.due = None;
        self.record.behind = None;
        self.due = None;
        self.sent_at = None;
    }

    /// Lets it wait again after it was in flight.
    pub(super) fn back(&mut self, state: State, now: Timestamp) {
        self.record.state = state;
        self.record.changed_at = now;
        self.sent_at = None;
    }

    pub(super) fn matches(&self, filter: &Filter) -> bool {
        fn wanted<T: PartialEq>(filter: Option<&T>, value: Option<&T>) -> bool {
            filter.is_none() || filter == value
        }
        let Record { mutation, state, reason, changed_at, .. } = &self.record;
        wanted(filter.correlation_id.as_ref(), Some(&mutation.correlation_id))
            && wanted(filter.batch.as_ref(), mutation.batch.as_ref())
            && wanted(filter.state.as_ref(), Some(state))
            && wanted(filter.ota.as_ref(), Some(&mutation.ota))
            && wanted(filter.account.as_ref(), Some(&mutation.account))
            && wanted(filter.kind.as_ref(), Some(&mutation.kind()))
            && wanted(filter.property_id.as_ref(), Some(&mutation.property_id))
            && wanted(filter.reason.as_ref(), reason.as_ref())
            && filter.changed_since.is_none_or(|since| *changed_at >= since)
    }
}

/// A stock group with what outlives its open mutations.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) open: BTreeSet<i64>,
    pub(super) all: BTreeSet<i64>,
    pub(super) cells: BTreeMap<CellKey, Cell>,
    pub(super) stocks: Vec<Stock>,
}

/// What is kept of a cell beside its mutations.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) revision: u64,
    pub(super) sequence: Option<u64>,
    pub(super) rest: Option<Rest>,
    /// The newest mutation that was not cancelled and is no longer on record.
    pub(super) gone: Option<i64>,
}

impl Group {
    pub(super) fn rests(&self) -> Vec<Rest> {
        self.cells.values().filter_map(|cell| cell.rest.clone()).collect()
    }

    /// Lets a cell rest after a request of this mutation; a rest under way is only ever lengthened.
    pub(super) fn rest(&mut self, of: &Member, until: Timestamp) {
        let cell = self.cells.entry((of.kind, of.plan.clone())).or_default();
        let before = cell.rest.as_ref().map_or(until, |rest| rest.until);
        cell.rest =
            Some(Rest { kind: of.kind, plan: of.plan.clone(), until: until.max(before), of: Some(of.id) });
    }

    /// What rests because of this mutation rests for it too, as it says something else now.
    pub(super) fn disown(&mut self, id: i64) {
        for rest in self.cells.values_mut().filter_map(|cell| cell.rest.as_mut()) {
            if rest.of == Some(id) {
                rest.of = None;
            }
        }
    }

    /// Remembers the inventory of an availability as the newest of its plan scope.
    pub(super) fn stock(&mut self, id: i64, mutation: &Mutation) {
        if let Value::Availability { inventory } = mutation.value {
            self.stocks.retain(|stock| stock.plan != mutation.rate_plan_code);
            self.stocks.push(Stock { plan: mutation.rate_plan_code.clone(), inventory, id });
        }
    }

    /// Members that stand for what was removed from the record.
    pub(super) fn gone(&self) -> Vec<Member> {
        let removed = self.cells.iter().filter_map(|((kind, plan), cell)| Some((kind, plan, cell.gone?)));
        removed
            .map(|(kind, plan, id)| Member {
                id,
                kind: *kind,
                plan: plan.clone(),
                fields: u8::MAX,
                in_flight: false,
                priority: ota_governor_core::mutation::Priority::default(),
                place: id,
                due: None,
            })
            .collect()
    }
}

/// The group of a mutation.
pub(super) fn group_of(mutation: &Mutation) -> GroupKey {
    (
        mutation.ota.clone(),
        mutation.account.clone(),
        mutation.property_id.clone(),
        mutation.room_type_code.clone(),
        mutation.stay_date,
    )
}
