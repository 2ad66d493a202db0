//! The state of a memory ledger, and accepting, claiming and settling on it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ota_governor_core::idempotency;
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::CorrelationId;
use ota_governor_core::order::{self, Standing};
use ota_governor_core::state::{DeadReason, DeferReason, State};
use ota_governor_core::time::Timestamp;
use tokio::sync::watch;

use super::lanes::Lane;
use super::row::{Group, GroupKey, Row, Slot, group_of};
use crate::ledger::{
    Admission, Attempt, Disposition, Entry, Hold, HoldCause, MutationId, Outcome, PastCall, Record, Settled,
    Settlement,
};

/// Everything a memory ledger holds.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) ledger_id: String,
    pub(super) closed: bool,
    pub(super) accepted: i64,
    pub(super) pruned: u64,
    pub(super) discarded: u64,
    pub(super) rows: BTreeMap<i64, Row>,
    pub(super) by_name: HashMap<CorrelationId, i64>,
    pub(super) groups: BTreeMap<GroupKey, Group>,
    pub(super) lanes: BTreeMap<LaneKey, Lane>,
    pub(super) holds: BTreeMap<(Scope, HoldCause), Hold>,
    pub(super) calls: Vec<PastCall>,
    pub(super) mark: watch::Sender<u64>,
}

impl Book {
    pub(super) fn new(ledger_id: &str) -> Self {
        Self {
            ledger_id: ledger_id.to_owned(),
            closed: false,
            accepted: 0,
            pruned: 0,
            discarded: 0,
            rows: BTreeMap::new(),
            by_name: HashMap::new(),
            groups: BTreeMap::new(),
            lanes: BTreeMap::new(),
            holds: BTreeMap::new(),
            calls: Vec::new(),
            mark: watch::Sender::new(0),
        }
    }

    pub(super) fn find(&self, name: &CorrelationId) -> Option<&Row> {
        self.by_name.get(name).and_then(|id| self.rows.get(id))
    }

    pub(super) fn members<'a>(&self, ids: impl IntoIterator<Item = &'a i64>) -> Vec<order::Member> {
        ids.into_iter().filter_map(|id| self.rows.get(id)).map(Row::member).collect()
    }

    fn name_of(&self, id: i64) -> Option<CorrelationId> {
        self.rows.get(&id).map(|row| row.record.mutation.correlation_id.clone())
    }

    pub(super) fn accept(&mut self, entry: Entry, now: Timestamp) -> Admission {
        let Entry { mutation, recipe, expires } = entry;
        let content = idempotency::content_hash(&mutation);
        if let Some(known) = self.find(&mutation.correlation_id) {
            if known.content != content {
                return Admission::Conflict;
            }
            return Admission::Known { id: known.record.id, state: known.record.state };
        }
        let key = group_of(&mutation);
        let group = self.groups.entry(key.clone()).or_default();
        let cell = group.cells.entry((mutation.kind(), mutation.rate_plan_code.clone())).or_default();
        if let (Some(last), Some(sequence)) = (cell.sequence, mutation.sequence)
            && sequence < last
        {
            return Admission::Stale { last };
        }
        cell.sequence = mutation.sequence.or(cell.sequence);
        cell.revision += 1;
        let revision = cell.revision;
        self.accepted += 1;
        let id = self.accepted;
        group.stock(id, &mutation);
        let open = group.open.clone();
        let admitted = order::admit(&order::Member::new(id, &mutation), &self.members(&open));

        let superseded: Vec<CorrelationId> =
            admitted.superseded.iter().filter_map(|older| self.name_of(*older)).collect();
        for older in &admitted.superseded {
            self.supersede(*older, &mutation.correlation_id, now);
        }
        if let Some(inventory) = mutation.value.inventory() {
            for rate in &admitted.rewritten {
                self.rewrite(*rate, inventory);
            }
        }
        let idempotency_key = idempotency::key(recipe, &self.ledger_id, &mutation, revision);
        let lane = mutation.lane();
        let name = mutation.correlation_id.clone();
        let mut record = Record {
            id: MutationId(id),
            mutation,
            state: State::Queued,
            revision,
            idempotency_key,
            accepted_at: now,
            changed_at: now,
            due: None,
            expires,
            reason: None,
            attempts: 0,
            requests: 0,
            throttled: 0,
            last_status: None,
            last_answer: None,
            confirmation_id: None,
            superseded_by: None,
            replaced: superseded.last().cloned(),
            behind: None,
            history: Vec::new(),
        };
        record.mutation.priority = admitted.priority;
        let place = admitted.place;
        let row = Row { record, recipe, content, place, due: None, sent_at: None, slot: Slot::Out };
        self.rows.insert(id, row);
        self.by_name.insert(name, id);
        self.promote(&admitted.promoted);
        self.opened(id, &key, &lane);
        self.regroup(&key, now);
        Admission::Accepted { id: MutationId(id), revision, superseded }
    }

    /// Enters an open mutation in its group and its lane.
    pub(super) fn opened(&mut self, id: i64, key: &GroupKey, lane: &LaneKey) {
        let group = self.groups.entry(key.clone()).or_default();
        group.open.insert(id);
        group.all.insert(id);
        let lane = self.lane(lane);
        lane.open += 1;
        if lane.open == 1 {
            self.mark.send_modify(|mark| *mark += 1);
        }
    }

    pub(super) fn promote(&mut self, promoted: &[(i64, Priority)]) {
        for (id, priority) in promoted {
            self.unslot(*id);
            if let Some(row) = self.rows.get_mut(id) {
                row.record.mutation.priority = *priority;
            }
        }
    }

    /// Gives a rate another inventory; what rested for its sake alone rests for it too from now on.
    pub(super) fn rewrite(&mut self, id: i64, inventory: ota_governor_core::mutation::Inventory) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if row.rewrite(inventory, &self.ledger_id) {
            let key = group_of(&row.record.mutation);
            self.groups.entry(key).or_default().disown(id);
        }
    }

    fn supersede(&mut self, id: i64, by: &CorrelationId, now: Timestamp) {
        self.close_row(id, State::Superseded, None, now);
        if let Some(row) = self.rows.get_mut(&id) {
            row.record.superseded_by = Some(by.clone());
        }
    }

    /// Takes an open mutation out of its group and lane, into a final state.
    pub(super) fn close_row(&mut self, id: i64, state: State, reason: Option<&str>, now: Timestamp) {
        self.unslot(id);
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.finish(state, reason, now);
        let (key, lane) = (group_of(&row.record.mutation), row.record.mutation.lane());
        self.groups.entry(key).or_default().open.remove(&id);
        let lane = self.lane(&lane);
        lane.open = lane.open.saturating_sub(1);
    }

    /// Decides anew who of a group may go, and moves them in the lanes' indexes.
    pub(super) fn regroup(&mut self, key: &GroupKey, now: Timestamp) {
        let Some(group) = self.groups.get(key) else { return };
        let (open, rests) = (group.open.clone(), group.rests());
        let members = self.members(&open);
        for (id, standing) in order::arrange(&members, &rests, now) {
            let (behind, slot) = match standing {
                Standing::Ready => (None, Slot::Ready),
                Standing::At(time) => (None, Slot::At(time)),
                Standing::Behind(ahead) => (self.name_of(ahead), Slot::Out),
            };
            if let Some(row) = self.rows.get_mut(&id) {
                row.record.behind = behind;
                row.record.due = match slot {
                    Slot::At(time) => Some(time),
                    Slot::Out | Slot::Ready => row.due,
                };
            }
            self.reslot(id, slot);
        }
    }

    /// Puts a claimed one in flight, or lays it down if its time has passed.
    pub(super) fn take(&mut self, id: i64, expired: bool, now: Timestamp) {
        if expired {
            self.close_row(id, State::DeadLettered, Some(DeadReason::Expired.as_str()), now);
        } else {
            self.unslot(id);
        }
        let Some(row) = self.rows.get_mut(&id) else { return };
        if !expired {
            row.record.state = State::InFlight;
            row.record.changed_at = now;
            row.record.due = None;
            row.sent_at = Some(now);
        }
        let key = group_of(&row.record.mutation);
        self.regroup(&key, now);
    }

    pub(super) fn settle(&mut self, settlement: Settlement) -> Vec<Settled> {
        let Settlement { lane, now, outcomes, health, holds, lifted } = settlement;
        let mut settled = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let Some(state) = self.settle_one(&outcome, now) else { continue };
            settled.push(Settled { id: outcome.id, state });
        }
        if health.is_some() {
            self.lane(&lane).health = health;
        }
        for (scope, cause) in lifted {
            self.lift(&scope, Some(cause));
        }
        self.hold(holds);
        settled
    }

    /// Settles one that is in flight; one that is not stays as it is.
    fn settle_one(&mut self, outcome: &Outcome, now: Timestamp) -> Option<State> {
        let id = outcome.id.0;
        let row = self.rows.get_mut(&id)?;
        if row.record.state != State::InFlight {
            return Some(row.record.state);
        }
        let key = group_of(&row.record.mutation);
        if let Some(attempt) = &outcome.attempt {
            self.calls.push(PastCall {
                lane: row.record.mutation.lane(),
                property: row.record.mutation.property_id.clone(),
                sent_at: attempt.sent_at,
                answered_at: Some(attempt.answered_at),
            });
            note(&mut row.record, attempt);
        }
        let member = row.member();
        let group = self.groups.entry(key.clone()).or_default();
        if let Some(until) = outcome.rest_until {
            group.rest(&member, until);
        }
        let open = group.open.clone();
        let inventory = order::inventory_for(&member, &group.stocks);
        let committed = matches!(outcome.disposition, Disposition::Committed { .. });
        let heir = order::superseded_at_settle(&member, &self.members(&open)).filter(|_| !committed);
        if let Some(heir) = heir {
            let older = self.name_of(id);
            self.unslot(heir.by);
            if let Some(newer) = self.rows.get_mut(&heir.by) {
                newer.place = heir.place;
                newer.record.mutation.priority = heir.priority;
                // The value that it replaced last stays the one that is named.
                newer.record.replaced = newer.record.replaced.take().or(older);
            }
            if let Some(by) = self.name_of(heir.by) {
                self.supersede(id, &by, now);
            }
            self.promote(&heir.promoted);
        } else {
            self.dispose(id, &outcome.disposition, now);
            if !committed && let Some(inventory) = inventory {
                self.rewrite(id, inventory);
            }
        }
        self.regroup(&key, now);
        self.rows.get(&id).map(|row| row.record.state)
    }

    fn dispose(&mut self, id: i64, disposition: &Disposition, now: Timestamp) {
        match disposition {
            Disposition::Committed { confirmation_id } => {
                self.close_row(id, State::Committed, None, now);
                if let Some(row) = self.rows.get_mut(&id) {
                    row.record.confirmation_id = Some(confirmation_id.clone());
                }
            }
            Disposition::DeadLettered { reason } => {
                self.close_row(id, State::DeadLettered, Some(reason.as_str()), now);
            }
            Disposition::Deferred { reason, due } => {
                let Some(row) = self.rows.get_mut(&id) else { return };
                row.record.reason = Some(reason.as_str().to_owned());
                row.due = Some(*due);
                row.back(State::Deferred, now);
            }
            Disposition::Returned => {
                let Some(row) = self.rows.get_mut(&id) else { return };
                let state = if row.due.is_some() { State::Deferred } else { State::Queued };
                row.back(state, now);
            }
        }
    }

    /// Parks what a dead process left in flight, due now.
    pub(super) fn recover(&mut self, now: Timestamp, rest: Duration) -> u64 {
        // Those left by the process before the last were waited for at its start.
        self.calls.iter_mut().filter(|call| call.answered_at.is_none()).for_each(|call| {
            call.answered_at = Some(now);
        });
        let left: Vec<(i64, Timestamp)> = self
            .rows
            .values()
            .filter(|row| row.record.state == State::InFlight)
            .map(|row| (row.record.id.0, row.sent_at.unwrap_or(now)))
            .collect();
        for (id, sent_at) in &left {
            let attempt = Attempt {
                sent_at: *sent_at,
                answered_at: now,
                status: None,
                answer: Some("the process ended before the answer".to_owned()),
                retry_after: None,
                counted: false,
            };
            let outcome = Outcome {
                id: MutationId(*id),
                attempt: Some(attempt),
                disposition: Disposition::Deferred { reason: DeferReason::UnknownOutcome, due: now },
                rest_until: Some(*sent_at + rest),
            };
            self.settle_one(&outcome, now);
            if let Some(call) = self.calls.last_mut() {
                call.answered_at = None;
            }
        }
        u64::try_from(left.len()).unwrap_or(u64::MAX)
    }
}

/// Adds a request to a record.
fn note(record: &mut Record, attempt: &Attempt) {
    record.requests += 1;
    record.attempts += u32::from(attempt.counted);
    record.throttled += u32::from(attempt.status == Some(429));
    record.last_status = attempt.status.or(record.last_status);
    if attempt.answer.is_some() {
        record.last_answer.clone_from(&attempt.answer);
    }
    record.history.push(attempt.clone());
}
