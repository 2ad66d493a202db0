//! What people ask of a memory ledger: lists, counts, replays, discards, cancels; and its upkeep.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use ota_governor_core::name::{ChannelName, CorrelationId};
use ota_governor_core::order;
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;

use super::book::Book;
use super::row::group_of;
use crate::ledger::{Counts, Filter, MutationId, PastCall, Record, Replay, Tallies, Tally};

/// Most finished rows removed by one call.
const PRUNED: usize = 2_000;

impl Book {
    pub(super) fn list(&self, filter: &Filter, after: Option<MutationId>, limit: usize) -> Vec<Record> {
        let from = after.map_or(0, |id| id.0).saturating_add(1);
        self.rows
            .range(from..)
            .map(|(_, row)| row)
            .filter(|row| row.matches(filter))
            .take(limit)
            .map(|row| Record { history: Vec::new(), ..row.record.clone() })
            .collect()
    }

    pub(super) fn tallies(&self) -> Tallies {
        let mut rows = BTreeMap::new();
        for row in self.rows.values() {
            let mutation = &row.record.mutation;
            *rows.entry((mutation.lane(), row.record.state, mutation.priority)).or_default() += 1;
        }
        let rows = rows.into_iter();
        Tallies {
            rows: rows
                .map(|((lane, state, priority), count)| Tally { lane, state, priority, count })
                .collect(),
            accepted: u64::try_from(self.accepted).unwrap_or(0),
            pruned: self.pruned,
            discarded: self.discarded,
        }
    }

    pub(super) fn counts(&self, ids: &[MutationId]) -> Vec<(ChannelName, Counts)> {
        let mut channels: BTreeMap<ChannelName, Counts> = BTreeMap::new();
        for row in ids.iter().collect::<BTreeSet<_>>().into_iter().filter_map(|id| self.rows.get(&id.0)) {
            let counts = channels.entry(row.record.mutation.ota.clone()).or_default();
            for (state, count) in State::ALL.iter().zip(&mut counts.states) {
                *count += u64::from(*state == row.record.state);
            }
            counts.requests += u64::from(row.record.requests);
            counts.throttled += u64::from(row.record.throttled);
        }
        channels.into_iter().collect()
    }

    pub(super) fn replay(&mut self, id: MutationId, now: Timestamp) -> Replay {
        let Some(row) = self.rows.get(&id.0) else { return Replay::Newer { by: None } };
        if row.record.state.is_open() {
            return Replay::Queued;
        }
        let (key, lane, dead) = (group_of(&row.record.mutation), row.record.mutation.lane(), row.member());
        let state = row.record.state;
        let group = self.groups.entry(key.clone()).or_default();
        let (all, stocks, mut others) = (group.all.clone(), group.stocks.clone(), group.gone());
        others.extend(
            all.iter()
                .filter_map(|other| self.rows.get(other))
                .filter(|other| other.record.state != State::Cancelled)
                .map(super::row::Row::member),
        );
        let newer = order::newer_than(&dead, &others);
        if newer.is_some() || state != State::DeadLettered {
            let by = newer.and_then(|newer| self.rows.get(&newer));
            return Replay::Newer { by: by.map(|row| row.record.mutation.correlation_id.clone()) };
        }
        if let Some(row) = self.rows.get_mut(&id.0) {
            row.finish(State::Queued, None, now);
            row.record.attempts = 0;
        }
        if let Some(inventory) = order::inventory_for(&dead, &stocks) {
            self.rewrite(id.0, inventory);
        }
        self.opened(id.0, &key, &lane);
        let open = self.groups.entry(key.clone()).or_default().open.clone();
        let promoted = order::promotions(&self.members(&open));
        self.promote(&promoted);
        self.regroup(&key, now);
        Replay::Queued
    }

    pub(super) fn discard(&mut self, ids: &[MutationId]) -> u64 {
        let before = self.discarded;
        for id in ids {
            if self.rows.get(&id.0).is_some_and(|row| row.record.state == State::DeadLettered) {
                self.remove(id.0);
                self.discarded += 1;
            }
        }
        self.discarded - before
    }

    /// Takes a finished mutation off the record; that it was there stays known.
    fn remove(&mut self, id: i64) {
        let Some(row) = self.rows.remove(&id) else { return };
        let mutation = &row.record.mutation;
        self.by_name.remove(&mutation.correlation_id);
        let Some(group) = self.groups.get_mut(&group_of(mutation)) else { return };
        group.all.remove(&id);
        if row.record.state != State::Cancelled {
            let cell = group.cells.entry((mutation.kind(), mutation.rate_plan_code.clone())).or_default();
            cell.gone = cell.gone.max(Some(id));
        }
    }

    pub(super) fn cancel(&mut self, filter: &Filter, now: Timestamp) -> Vec<CorrelationId> {
        let waiting = |state| matches!(state, State::Queued | State::Deferred);
        let taken: Vec<_> = self
            .rows
            .values()
            .filter(|row| waiting(row.record.state) && row.matches(filter))
            .map(|row| (row.record.id.0, row.record.mutation.clone()))
            .collect();
        let mut groups = BTreeSet::new();
        for (id, mutation) in &taken {
            self.close_row(*id, State::Cancelled, None, now);
            groups.insert(group_of(mutation));
        }
        for key in groups {
            self.regroup(&key, now);
        }
        taken.into_iter().map(|(_, mutation)| mutation.correlation_id).collect()
    }

    pub(super) fn past_calls(&self, since: Timestamp) -> Vec<PastCall> {
        let in_flight = self.rows.values().filter_map(|row| {
            Some(PastCall {
                lane: row.record.mutation.lane(),
                property: row.record.mutation.property_id.clone(),
                sent_at: row.sent_at?,
                answered_at: None,
            })
        });
        let made = self.calls.iter().filter(|call| call.sent_at >= since || call.answered_at.is_none());
        let mut calls: Vec<PastCall> = made.cloned().chain(in_flight).collect();
        calls.sort_by(|a, b| (a.sent_at, &a.lane, &a.property).cmp(&(b.sent_at, &b.lane, &b.property)));
        calls
    }

    /// Removes finished rows whose state changed before `before`, oldest change first, and the cells and
    /// calls that are older.
    pub(super) fn prune(&mut self, before: Timestamp) -> u64 {
        let mut old: Vec<(Timestamp, i64)> = self
            .rows
            .values()
            .filter(|row| !row.record.state.is_open() && row.record.changed_at < before)
            .map(|row| (row.record.changed_at, row.record.id.0))
            .collect();
        old.sort_unstable();
        old.truncate(PRUNED);
        for (_, id) in &old {
            self.remove(*id);
        }
        let count = u64::try_from(old.len()).unwrap_or(0);
        self.pruned += count;
        let day = TimeZone::UTC.to_datetime(before.to_jiff()).date();
        self.groups.retain(|key, group| {
            if key.4 < day && group.open.is_empty() {
                group.cells.clear();
                group.stocks.clear();
            }
            !(group.cells.is_empty() && group.all.is_empty())
        });
        self.calls.retain(|call| call.sent_at >= before);
        count
    }
}
