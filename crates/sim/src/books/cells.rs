//! The channel's own store: what is true per cell, and how many rooms are left.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::at::At;
use crate::config::Kind;

/// What a call sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CellKey {
    /// The channel.
    pub channel: String,
    /// The property.
    pub property_id: String,
    /// The room type.
    pub room_type_code: String,
    /// The rate plan; without one every plan.
    pub rate_plan_code: Option<String>,
    /// The stay date.
    pub stay_date: String,
    /// Rate, availability or restriction.
    pub kind: Kind,
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellBook {
    /// Which.
    #[serde(flatten)]
    pub cell: Arc<CellKey>,
    /// The fields in force; those of restrictions gather.
    pub value: Map<String, Value>,
    /// When it was last applied.
    pub at: At,
    /// The correlation ids applied, in their order.
    pub applied: Vec<Box<str>>,
}

/// The rooms left for one plan, or for every plan not named otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InventoryBook {
    /// The channel.
    pub channel: String,
    /// The property.
    pub property_id: String,
    /// The room type.
    pub room_type_code: String,
    /// The stay date.
    pub stay_date: String,
    /// The rate plan; without one every plan that has no row of its own.
    pub rate_plan_code: Option<String>,
    /// Rooms left.
    pub inventory: u64,
    /// Who said so last.
    pub correlation_id: Box<str>,
}

/// Property, room and date of a channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InventoryKey {
    pub(crate) channel: String,
    pub(crate) property: String,
    pub(crate) room: String,
    pub(crate) date: String,
}

impl From<&CellKey> for InventoryKey {
    fn from(cell: &CellKey) -> Self {
        Self {
            channel: cell.channel.clone(),
            property: cell.property_id.clone(),
            room: cell.room_type_code.clone(),
            date: cell.stay_date.clone(),
        }
    }
}

#[derive(Clone, Debug)]
struct Rooms {
    inventory: u64,
    correlation_id: Box<str>,
}

/// All cells.
#[derive(Debug, Default)]
pub(crate) struct Store {
    cells: HashMap<Arc<CellKey>, CellBook>,
    inventory: HashMap<InventoryKey, BTreeMap<Option<String>, Rooms>>,
}

impl Store {
    /// Applies a call's fields.
    pub(crate) fn apply(
        &mut self,
        now: At,
        cell: &Arc<CellKey>,
        fields: &Map<String, Value>,
        correlation_id: &str,
    ) {
        let book = self.cells.entry(Arc::clone(cell)).or_insert_with(|| CellBook {
            cell: Arc::clone(cell),
            value: Map::new(),
            at: now,
            applied: Vec::new(),
        });
        book.at = now;
        book.value.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
        book.applied.push(correlation_id.into());
        if let Some(inventory) = fields.get("inventory").and_then(Value::as_u64) {
            let plans = self.inventory.entry(InventoryKey::from(cell.as_ref())).or_default();
            if cell.rate_plan_code.is_none() {
                // It covers every plan: what was said of single ones before is no longer true.
                plans.clear();
            }
            plans.insert(
                cell.rate_plan_code.clone(),
                Rooms { inventory, correlation_id: correlation_id.into() },
            );
        }
    }

    pub(crate) fn cell(&self, key: &CellKey) -> Option<&CellBook> {
        self.cells.get(key)
    }

    pub(crate) fn cells(&self) -> Vec<CellBook> {
        let mut books: Vec<_> = self.cells.values().cloned().collect();
        books.sort_by(|a, b| a.cell.cmp(&b.cell));
        books
    }

    /// The rooms left for a plan: what was said of it since every plan was last set, else that.
    pub(crate) fn rooms(&self, key: &InventoryKey, plan: Option<&str>) -> Option<u64> {
        let plans = self.inventory.get(key)?;
        let rooms = plans.get(&plan.map(str::to_owned)).or_else(|| plans.get(&None));
        rooms.map(|rooms| rooms.inventory)
    }

    pub(crate) fn inventory(&self) -> Vec<InventoryBook> {
        let mut keys: Vec<_> = self.inventory.iter().collect();
        keys.sort_by(|a, b| a.0.cmp(b.0));
        let book = |key: &InventoryKey, plan: &Option<String>, rooms: &Rooms| InventoryBook {
            channel: key.channel.clone(),
            property_id: key.property.clone(),
            room_type_code: key.room.clone(),
            stay_date: key.date.clone(),
            rate_plan_code: plan.clone(),
            inventory: rooms.inventory,
            correlation_id: rooms.correlation_id.clone(),
        };
        keys.into_iter()
            .flat_map(|(key, plans)| plans.iter().map(move |(plan, rooms)| book(key, plan, rooms)))
            .collect()
    }
}
