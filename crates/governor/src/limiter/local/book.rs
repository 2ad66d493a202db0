//! The budgets of a group, those per property made on demand.

use std::collections::{BTreeMap, HashMap};

use ota_governor_core::lane::LaneKey;
use ota_governor_core::limit::{Budget, Each, Limit};
use ota_governor_core::name::{LimitName, PropertyId};
use ota_governor_core::time::Timestamp;

use crate::limiter::LimitStatus;
use crate::limiter::lanes::{BudgetKey, LaneLimits};

/// So many properties' budgets are kept before the first look for idle ones.
const FIRST_SWEEP: usize = 1_024;

/// One limit with its budget, or its budgets by property.
#[derive(Debug)]
pub(super) struct Entry {
    limit: Limit,
    lanes: Vec<LaneKey>,
    whole: Budget,
    by_property: HashMap<Option<PropertyId>, Budget>,
    sweep_at: usize,
}

impl Entry {
    fn new(limit: Limit) -> Self {
        let whole = Budget::new(&limit.rule);
        Self { limit, lanes: Vec::new(), whole, by_property: HashMap::new(), sweep_at: FIRST_SWEEP }
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.limit.each == Each::Property
    }

    pub(super) fn name(&self) -> &LimitName {
        &self.limit.name
    }

    pub(super) fn capacity(&self) -> u64 {
        self.whole.capacity()
    }

    /// The budget as it stands. One that was never used is full: the untouched template tells so.
    pub(super) fn look(&mut self, property: Option<&PropertyId>) -> &mut Budget {
        if !self.is_keyed() {
            return &mut self.whole;
        }
        self.by_property.get_mut(&property.cloned()).unwrap_or(&mut self.whole)
    }

    /// The budget to take from or to settle.
    pub(super) fn keep(&mut self, property: Option<&PropertyId>, now: Timestamp) -> &mut Budget {
        if !self.is_keyed() {
            return &mut self.whole;
        }
        if self.by_property.len() >= self.sweep_at {
            // Only what is full and idle may go: to forget a live one would hand its burst out again.
            self.by_property.retain(|_, budget| !budget.is_idle(now));
            self.sweep_at = self.by_property.len().saturating_mul(2).max(FIRST_SWEEP);
        }
        self.by_property.entry(property.cloned()).or_insert_with(|| Budget::new(&self.limit.rule))
    }

    fn status(&mut self, now: Timestamp) -> Vec<LimitStatus> {
        let row = |limit: &Limit, lanes: &[LaneKey], property: Option<&PropertyId>, budget: &mut Budget| {
            let left = budget.left(now);
            LimitStatus {
                limit: limit.name.clone(),
                lanes: lanes.to_vec(),
                property: property.cloned(),
                rule: limit.rule.describe(),
                left,
                used: budget.used(now),
                max: budget.max(),
                next_at: (left == 0).then(|| budget.next_at(now, 1)).filter(|at| *at > now),
            }
        };
        if !self.is_keyed() {
            return vec![row(&self.limit, &self.lanes, None, &mut self.whole)];
        }
        let mut rows: Vec<LimitStatus> = self
            .by_property
            .iter_mut()
            .filter_map(|(property, budget)| {
                (!budget.is_idle(now)).then(|| row(&self.limit, &self.lanes, property.as_ref(), budget))
            })
            .collect();
        rows.sort_by(|a, b| a.property.cmp(&b.property));
        rows
    }
}

/// Every budget of a group.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: Vec<Entry>,
}

impl Book {
    /// The book of these lanes, and per lane the numbers of its entries.
    pub(super) fn new(lanes: &[LaneLimits]) -> (Self, Vec<Vec<usize>>) {
        let mut book = Self::default();
        let mut numbers: BTreeMap<&BudgetKey, usize> = BTreeMap::new();
        let mut of_lanes = Vec::new();
        for lane in lanes {
            let mut of_lane = Vec::new();
            for (limit, key) in &lane.limits {
                let number = *numbers.entry(key).or_insert_with(|| {
                    book.entries.push(Entry::new(limit.clone()));
                    book.entries.len().saturating_sub(1)
                });
                if !of_lane.contains(&number) {
                    of_lane.push(number);
                    if let Some(entry) = book.entries.get_mut(number) {
                        entry.lanes.push(lane.lane.clone());
                    }
                }
            }
            of_lanes.push(of_lane);
        }
        (book, of_lanes)
    }

    /// The entries of these numbers.
    pub(super) fn entries<'a>(
        &'a mut self,
        numbers: &'a [usize],
    ) -> impl Iterator<Item = (usize, &'a mut Entry)> {
        // Numbers are few and ascending lookups cheap; a lane never lists one twice.
        self.entries.iter_mut().enumerate().filter(|(number, _)| numbers.contains(number))
    }

    pub(super) fn entry(&mut self, number: usize) -> Option<&mut Entry> {
        self.entries.get_mut(number)
    }

    pub(super) fn take(
        &mut self,
        numbers: &[usize],
        property: Option<&PropertyId>,
        now: Timestamp,
        cost: u64,
    ) {
        for number in numbers {
            if let Some(entry) = self.entries.get_mut(*number) {
                entry.keep(property, now).take(now, cost);
            }
        }
    }

    /// Tells budgets without calls so far that a former life's first call known was sent at `first`.
    pub(super) fn resume(
        &mut self,
        numbers: &[usize],
        property: Option<&PropertyId>,
        first: Timestamp,
        now: Timestamp,
    ) {
        for number in numbers {
            if let Some(entry) = self.entries.get_mut(*number) {
                entry.keep(property, first).resume(first, now);
            }
        }
    }

    pub(super) fn settle(
        &mut self,
        numbers: &[usize],
        property: Option<&PropertyId>,
        now: Timestamp,
        cost: u64,
    ) {
        for number in numbers {
            if let Some(entry) = self.entries.get_mut(*number) {
                entry.keep(property, now).settle(now, cost);
            }
        }
    }

    pub(super) fn give_back(
        &mut self,
        numbers: &[usize],
        property: Option<&PropertyId>,
        granted_at: Timestamp,
        cost: u64,
    ) {
        for number in numbers {
            if let Some(entry) = self.entries.get_mut(*number) {
                entry.keep(property, granted_at).give_back(granted_at, cost);
            }
        }
    }

    pub(super) fn status(&mut self, now: Timestamp) -> Vec<LimitStatus> {
        self.entries.iter_mut().flat_map(|entry| entry.status(now)).collect()
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.entries.iter().map(|entry| entry.by_property.len()).sum()
    }
}
