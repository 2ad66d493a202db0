//! Lanes in a memory ledger: the indexes that claims read, the marks, the holds.

use std::collections::{BTreeMap, BTreeSet};

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;
use tokio::sync::watch;

use super::book::Book;
use super::row::Slot;
use crate::ledger::{Claim, Claimed, Expired, Head, Hold, HoldCause, Job};

/// Most ready ones counted.
const READY: usize = 1_000;
/// Most properties listed.
const PROPERTIES: usize = 64;
/// Most expired ones that one claim clears away; the next goes on.
const EXPIRED: usize = 1_000;

/// Urgency: priority, then place, then id, so that no two are equal.
type Urgency = (Priority, i64, i64);

/// A lane's indexes and marks.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) open: u64,
    pub(super) keyed: bool,
    pub(super) health: Option<String>,
    pub(super) mark: watch::Sender<u64>,
    ready: BTreeSet<Urgency>,
    ready_of: BTreeMap<PropertyId, BTreeSet<Urgency>>,
    parked: BTreeSet<(Timestamp, i64)>,
}

impl Lane {
    fn moved(&self) {
        self.mark.send_modify(|mark| *mark += 1);
    }

    fn properties(&self) -> Vec<PropertyId> {
        let mut firsts: Vec<(Urgency, &PropertyId)> = self
            .ready_of
            .iter()
            .filter_map(|(property, waiting)| Some((*waiting.first()?, property)))
            .collect();
        firsts.sort_unstable();
        firsts.into_iter().take(PROPERTIES).map(|(_, property)| property.clone()).collect()
    }
}

impl Book {
    pub(super) fn lane(&mut self, key: &LaneKey) -> &mut Lane {
        self.lanes.entry(key.clone()).or_default()
    }

    /// Takes a mutation out of its lane's indexes.
    pub(super) fn unslot(&mut self, id: i64) {
        self.reslot(id, Slot::Out);
    }

    /// Moves a mutation to where it stands in its lane.
    pub(super) fn reslot(&mut self, id: i64, to: Slot) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if row.slot == to {
            return;
        }
        let mutation = &row.record.mutation;
        let urgency = (mutation.priority, row.place, id);
        let lane = self.lanes.entry(mutation.lane()).or_default();
        match row.slot {
            Slot::Out => {}
            Slot::Ready => {
                lane.ready.remove(&urgency);
                if let Some(waiting) = lane.ready_of.get_mut(&mutation.property_id) {
                    waiting.remove(&urgency);
                    if waiting.is_empty() {
                        lane.ready_of.remove(&mutation.property_id);
                    }
                }
            }
            Slot::At(time) => {
                lane.parked.remove(&(time, id));
            }
        }
        match to {
            Slot::Out => {}
            Slot::Ready => {
                lane.ready.insert(urgency);
                lane.ready_of.entry(mutation.property_id.clone()).or_default().insert(urgency);
                lane.moved();
            }
            Slot::At(time) => {
                lane.parked.insert((time, id));
                lane.moved();
            }
        }
        row.slot = to;
    }

    /// Makes ready what is due by now.
    fn ripen(&mut self, key: &LaneKey, now: Timestamp) {
        loop {
            let first = self.lane(key).parked.first().copied();
            let Some((_, id)) = first.filter(|(time, _)| *time <= now) else { return };
            self.reslot(id, Slot::Ready);
        }
    }

    pub(super) fn head(&mut self, key: &LaneKey, now: Timestamp) -> Head {
        self.ripen(key, now);
        let lane = self.lane(key);
        Head {
            priority: lane.ready.first().map(|(priority, _, _)| *priority),
            ready: lane.ready.len().min(READY),
            due: lane.parked.first().map(|(time, _)| *time),
            properties: if lane.keyed { lane.properties() } else { Vec::new() },
        }
    }

    pub(super) fn claim(&mut self, claim: &Claim) -> Claimed {
        self.ripen(&claim.lane, claim.now);
        let mut claimed = Claimed::default();
        for (pick, property) in claim.picks.iter().enumerate() {
            while let Some(id) = self.most_urgent(&claim.lane, property.as_ref()) {
                let Some(row) = self.rows.get(&id) else { break };
                let record = row.record.clone();
                let expired = record.expires.is_some_and(|at| at <= claim.now);
                if expired && claimed.expired.len() >= EXPIRED {
                    break;
                }
                self.take(id, expired, claim.now);
                if expired {
                    let (id, mutation, replaced) = (record.id, record.mutation, record.replaced);
                    claimed.expired.push(Expired { id, mutation, replaced });
                    continue;
                }
                claimed.jobs.push(Job {
                    id: record.id,
                    mutation: record.mutation,
                    idempotency_key: record.idempotency_key,
                    attempts: record.attempts,
                    accepted_at: record.accepted_at,
                    pick,
                });
                break;
            }
        }
        claimed.jobs.sort_by_key(|job| job.mutation.priority);
        claimed.head = self.head(&claim.lane, claim.now);
        claimed
    }

    fn most_urgent(&mut self, key: &LaneKey, property: Option<&PropertyId>) -> Option<i64> {
        let lane = self.lane(key);
        let waiting = match property {
            Some(property) => lane.ready_of.get(property)?,
            None => &lane.ready,
        };
        waiting.first().map(|(_, _, id)| *id)
    }

    /// Marks exactly these lanes as keyed by property.
    pub(super) fn key_by_property(&mut self, keys: &[LaneKey]) {
        for key in keys {
            self.lane(key);
        }
        for (key, lane) in &mut self.lanes {
            lane.keyed = keys.contains(key);
        }
    }

    pub(super) fn hold(&mut self, holds: Vec<Hold>) {
        for hold in holds {
            let scope = hold.scope.clone();
            self.holds.insert((hold.scope.clone(), hold.cause), hold);
            self.hold_moved(&scope);
        }
    }

    pub(super) fn lift(&mut self, scope: &Scope, cause: Option<HoldCause>) -> Vec<Hold> {
        let lifted: Vec<Hold> = self
            .holds
            .values()
            .filter(|hold| hold.scope == *scope && cause.is_none_or(|cause| hold.cause == cause))
            .cloned()
            .collect();
        for hold in &lifted {
            self.holds.remove(&(hold.scope.clone(), hold.cause));
        }
        if !lifted.is_empty() {
            self.hold_moved(scope);
        }
        lifted
    }

    fn hold_moved(&mut self, scope: &Scope) {
        for (key, lane) in &self.lanes {
            let property = match scope {
                Scope::Property { property, .. } => Some(property),
                Scope::Channel { .. }
                | Scope::Account { .. }
                | Scope::Endpoint { .. }
                | Scope::Lane { .. } => None,
            };
            if scope.covers(key, property) {
                lane.moved();
            }
        }
        self.mark.send_modify(|mark| *mark += 1);
    }
}
