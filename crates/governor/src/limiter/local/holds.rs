//! The holds on one lane.

use std::collections::HashMap;

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;

use crate::ledger::Hold;

/// A hold in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// Until when; `None`: until it is lifted.
    pub(super) until: Option<Timestamp>,
    /// In words.
    pub(super) by: String,
}

impl Held {
    fn new(hold: &Hold) -> Self {
        Self { until: hold.until, by: format!("hold on {}: {}", hold.scope, hold.detail) }
    }

    fn in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// The holds that cover a lane, or single properties of it.
#[derive(Debug, Default)]
pub(super) struct Holds {
    lane: Vec<Held>,
    by_property: HashMap<PropertyId, Vec<Held>>,
}

impl Holds {
    pub(super) fn new(lane: &LaneKey, holds: &[Hold]) -> Self {
        let mut mine = Self::default();
        for hold in holds {
            if hold.scope.covers(lane, None) {
                mine.lane.push(Held::new(hold));
            } else if let Scope::Property { lane: of, property } = &hold.scope
                && of == lane
            {
                mine.by_property.entry(property.clone()).or_default().push(Held::new(hold));
            }
        }
        mine
    }

    /// The hold on the whole lane that lasts longest.
    pub(super) fn on_lane(&self, now: Timestamp) -> Option<&Held> {
        longest(&self.lane, now)
    }

    /// The hold on one property that lasts longest.
    pub(super) fn on_property(&self, property: Option<&PropertyId>, now: Timestamp) -> Option<&Held> {
        longest(self.by_property.get(property?)?, now)
    }
}

fn longest(holds: &[Held], now: Timestamp) -> Option<&Held> {
    holds.iter().filter(|held| held.in_force(now)).max_by_key(|held| (held.until.is_none(), held.until))
}
