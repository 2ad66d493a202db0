//! The askers of one lane that wait, the most urgent first, then the earlier.

use std::collections::BTreeMap;

use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;
use tokio::sync::oneshot;

use super::holds::Holds;
use crate::limiter::Grant;

/// A place in line: priority, then arrival.
pub(super) type Turn = (Priority, u64);

/// One asker that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) want: usize,
    pub(super) cost: u64,
    pub(super) properties: Vec<PropertyId>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) tell: oneshot::Sender<Grant>,
}

/// One lane of a group.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) key: LaneKey,
    /// The numbers of its limits in the group's book.
    pub(super) limits: Vec<usize>,
    /// Whether one of them is per property.
    pub(super) keyed: bool,
    pub(super) holds: Holds,
    line: BTreeMap<Turn, Waiter>,
    /// What waits in line, by priority: the sum of costs.
    costs: BTreeMap<Priority, u64>,
}

impl Lane {
    pub(super) fn new(key: LaneKey, limits: Vec<usize>, keyed: bool) -> Self {
        Self { key, limits, keyed, holds: Holds::default(), line: BTreeMap::new(), costs: BTreeMap::new() }
    }

    pub(super) fn join(&mut self, turn: Turn, waiter: Waiter) {
        let cost = self.costs.entry(turn.0).or_default();
        *cost = cost.saturating_add(waiter.cost);
        self.line.insert(turn, waiter);
    }

    pub(super) fn leave(&mut self, turn: Turn) -> Option<Waiter> {
        let waiter = self.line.remove(&turn)?;
        if let Some(cost) = self.costs.get_mut(&turn.0) {
            *cost = cost.saturating_sub(waiter.cost);
            if *cost == 0 {
                self.costs.remove(&turn.0);
            }
        }
        Some(waiter)
    }

    pub(super) fn get(&self, turn: Turn) -> Option<&Waiter> {
        self.line.get(&turn)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The place of the first, or of the next one behind `after`.
    pub(super) fn next(&self, after: Option<Turn>) -> Option<Turn> {
        match after {
            None => self.line.keys().next().copied(),
            Some((priority, arrival)) => {
                self.line.range((priority, arrival.saturating_add(1))..).next().map(|(turn, _)| *turn)
            }
        }
    }

    /// Those ahead of this place.
    pub(super) fn ahead(&self, of: Turn) -> impl Iterator<Item = &Waiter> {
        self.line.range(..of).map(|(_, waiter)| waiter)
    }

    /// The costs of those ahead of one who has just joined at this place.
    pub(super) fn cost_ahead(&self, of: Turn) -> u64 {
        let more_urgent = self.costs.range(..of.0).map(|(_, cost)| *cost).sum::<u64>();
        let equal = self.costs.get(&of.0).copied().unwrap_or(0);
        let own_and_behind = self.line.range(of..=(of.0, u64::MAX)).map(|(_, waiter)| waiter.cost).sum();
        more_urgent.saturating_add(equal.saturating_sub(own_and_behind))
    }

    /// Those whose deadline is before `until` (`None`: any deadline).
    pub(super) fn due_before(&self, until: Option<Timestamp>) -> Vec<Turn> {
        let too_late = |deadline: Timestamp| until.is_none_or(|until| deadline < until);
        self.line
            .iter()
            .filter(|(_, waiter)| waiter.deadline.is_some_and(too_late))
            .map(|(turn, _)| *turn)
            .collect()
    }
}
