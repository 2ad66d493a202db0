//! The marks that move when something changed, so that nobody polls.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ota_governor_core::lane::{LaneKey, Scope};
use tokio::sync::watch;

/// One mark per lane that somebody watches, and one for the set of lanes.
#[derive(Debug)]
pub(super) struct Marks {
    lanes: Mutex<HashMap<LaneKey, watch::Sender<u64>>>,
    set: watch::Sender<u64>,
}

impl Marks {
    pub(super) fn new() -> Self {
        Self { lanes: Mutex::default(), set: watch::Sender::new(0) }
    }

    pub(super) fn lane(&self, lane: &LaneKey) -> watch::Receiver<u64> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.entry(lane.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    pub(super) fn set(&self) -> watch::Receiver<u64> {
        self.set.subscribe()
    }

    pub(super) fn move_lane(&self, lane: &LaneKey) {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mark) = lanes.get(lane) {
            step(mark);
        }
    }

    /// Moves the marks of the lanes that a hold on this scope concerns.
    pub(super) fn move_scope(&self, scope: &Scope) {
        let property = match scope {
            Scope::Property { property, .. } => Some(property),
            Scope::Channel { .. } | Scope::Account { .. } | Scope::Endpoint { .. } | Scope::Lane { .. } => {
                None
            }
        };
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().filter(|(lane, _)| scope.covers(lane, property)).for_each(|(_, mark)| step(mark));
    }

    pub(super) fn move_set(&self) {
        step(&self.set);
    }

    pub(super) fn move_all(&self) {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.values().for_each(step);
        drop(lanes);
        self.move_set();
    }
}

fn step(mark: &watch::Sender<u64>) {
    mark.send_modify(|n| *n = n.wrapping_add(1));
}
