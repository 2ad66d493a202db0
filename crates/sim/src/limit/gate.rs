//! The limits of one channel, their budgets and what the books say of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::at::{At, micros};
use crate::books::{LimitBooks, Trailing, Window, Worst};
use crate::clock::Wall;
use crate::config::{Channel, Each, Limit, Rule};

use super::meter::Meter;

/// What a call is counted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) property: &'a str,
}

/// A call's place in one limit, given back when it ends.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    gate: u64,
    property: Arc<str>,
    /// Whether the meter counted it.
    counted: bool,
    admitted: bool,
}

/// Why a call is over a limit.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The longest of the waits that bind.
    pub(crate) wait: Duration,
    /// The limit with that wait, if callers may know it.
    pub(crate) limit: Option<String>,
}

/// All limits of a channel.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    open: Vec<Gate>,
    closed: Vec<LimitBooks>,
    next_id: u64,
}

impl Gates {
    /// Brings the limits in line with the configuration: what kept its name and kind keeps its count.
    pub(crate) fn set(&mut self, channel: &Channel, now: At) {
        let mut old = std::mem::take(&mut self.open);
        let of_endpoints = channel.endpoints.iter().flat_map(|(name, endpoint)| {
            endpoint.limits.iter().enumerate().map(move |(at, l)| (Some(name), at, l))
        });
        for (endpoint, at, limit) in
            channel.limits.iter().enumerate().map(|(at, l)| (None, at, l)).chain(of_endpoints)
        {
            let place = || endpoint.map_or(format!("limits[{at}]"), |name| format!("{name}.limits[{at}]"));
            let name = limit.name.clone().unwrap_or_else(place);
            let same =
                |gate: &Gate| gate.name == name && gate.endpoint.as_ref() == endpoint && gate.takes(limit);
            let mut gate = if let Some(position) = old.iter().position(same) {
                old.remove(position)
            } else {
                self.next_id += 1;
                Gate::new(self.next_id, name, endpoint.cloned(), limit.clone(), now)
            };
            if gate.limit != *limit {
                self.closed.push(gate.books(Some(now)));
                gate.change(limit.clone(), now);
            }
            self.open.push(gate);
        }
        self.closed.extend(old.iter().map(|gate| gate.books(Some(now))));
    }

    /// Whether all limits admit one call more; else the one that takes longest to.
    pub(crate) fn check(&mut self, now: At, scope: Scope<'_>, wall: Wall) -> Option<Refusal> {
        let mut refusal: Option<Refusal> = None;
        for gate in self.open.iter_mut().filter(|gate| gate.applies(scope)) {
            let wait = gate.wait(now, scope, wall);
            if wait.is_zero() {
                continue;
            }
            gate.refused += 1;
            if refusal.as_ref().is_none_or(|longest| longest.wait < wait) {
                refusal = Some(Refusal { wait, limit: (!gate.limit.hidden).then(|| gate.name.clone()) });
            }
        }
        refusal
    }

    /// Counts a call in every limit that applies.
    pub(crate) fn count(&mut self, now: At, scope: Scope<'_>, wall: Wall, admitted: bool) -> Vec<Hold> {
        let gates = self.open.iter_mut().filter(|gate| gate.applies(scope));
        gates.filter_map(|gate| gate.count(now, scope, wall, admitted)).collect()
    }

    /// Counts a call that is in flight already in the concurrency limits that have come since.
    pub(crate) fn adopt(&mut self, now: At, scope: Scope<'_>, wall: Wall, holds: &mut Vec<Hold>) {
        for gate in self.open.iter_mut().filter(|gate| gate.applies(scope)) {
            let held = holds.iter().any(|hold| hold.gate == gate.id);
            if !held && matches!(gate.limit.rule, Rule::Concurrency { .. }) {
                let rule = gate.limit.rule.clone();
                let property: Arc<str> = gate.key(scope).into();
                let budget = gate.budget(now, scope, wall);
                budget.meter.take(&rule, now);
                budget.seen.held = (budget.seen.held.0 + 1, budget.seen.held.1 + 1);
                holds.push(Hold { gate: gate.id, property, counted: true, admitted: true });
            }
        }
    }

    /// The call has ended.
    pub(crate) fn release(&mut self, holds: &[Hold]) {
        for hold in holds {
            if let Some(gate) = self.open.iter_mut().find(|gate| gate.id == hold.gate) {
                gate.release(hold);
            }
        }
    }

    /// What the books say of every limit there was.
    pub(crate) fn books(&self) -> Vec<LimitBooks> {
        self.closed.iter().cloned().chain(self.open.iter().map(|gate| gate.books(None))).collect()
    }
}

/// One limit.
#[derive(Debug)]
pub(crate) struct Gate {
    id: u64,
    name: String,
    endpoint: Option<String>,
    limit: Limit,
    since: At,
    budgets: HashMap<Arc<str>, Budget>,
    admitted: u64,
    refused: u64,
    worst: Window,
    worst_clock: Window,
}

/// What is counted under one key.
#[derive(Debug)]
struct Budget {
    meter: Meter,
    seen: Seen,
}

/// The same calls counted anew for the books, so that an error in the meter cannot hide itself.
#[derive(Debug)]
struct Seen {
    admitted: Trailing,
    arrivals: Trailing,
    /// The clock window and its calls, admitted and all.
    clock: (u64, u64),
    in_clock: (u64, u64),
    /// In flight, admitted and all.
    held: (u64, u64),
}

impl Seen {
    fn new(limit: &Limit) -> Self {
        let length = limit.per().map_or(0, micros);
        let trailing = Trailing::new(length);
        Self { admitted: trailing.clone(), arrivals: trailing, clock: (0, 0), in_clock: (0, 0), held: (0, 0) }
    }
}

impl Gate {
    fn new(id: u64, name: String, endpoint: Option<String>, limit: Limit, now: At) -> Self {
        Self {
            id,
            name,
            endpoint,
            limit,
            since: now,
            budgets: HashMap::new(),
            admitted: 0,
            refused: 0,
            worst: Window::default(),
            worst_clock: Window::default(),
        }
    }

    /// Whether this gate can go on as `limit`.
    fn takes(&self, limit: &Limit) -> bool {
        std::mem::discriminant(&self.limit.rule) == std::mem::discriminant(&limit.rule)
            && self.limit.each == limit.each
    }

    /// Goes on under another definition: budgets keep what they counted, the books begin anew, since what
    /// was allowed before is no fault after.
    fn change(&mut self, limit: Limit, now: At) {
        for budget in self.budgets.values_mut() {
            let held = budget.seen.held;
            budget.seen = Seen { held, ..Seen::new(&limit) };
            if let Meter::Fixed { end, .. } = &mut budget.meter
                && self.limit.per() != limit.per()
            {
                // The old window is no longer one: the next call lays the new one.
                *end = 0;
            }
            if !budget.meter.fits(&limit.rule) {
                budget.meter = Meter::full(&limit.rule, now);
            }
        }
        self.limit = limit;
        (self.since, self.admitted, self.refused) = (now, 0, 0);
        (self.worst, self.worst_clock) = (Window::default(), Window::default());
    }

    fn applies(&self, scope: Scope<'_>) -> bool {
        self.endpoint.as_deref().is_none_or(|name| name == scope.endpoint)
    }

    fn key<'a>(&self, scope: Scope<'a>) -> &'a str {
        match self.limit.each {
            Each::Account => "",
            Each::Property => scope.property,
        }
    }

    fn budget(&mut self, now: At, scope: Scope<'_>, wall: Wall) -> &mut Budget {
        let key = self.key(scope);
        let (limit, since) = (&self.limit, self.since);
        // A bucket that was never used has been full since the limit began.
        let fresh = || Budget { meter: Meter::full(&limit.rule, since), seen: Seen::new(limit) };
        let budget = self.budgets.entry(key.into()).or_insert_with(fresh);
        let rule = &limit.rule;
        budget.meter.advance(rule, now, wall);
        budget
    }

    fn wait(&mut self, now: At, scope: Scope<'_>, wall: Wall) -> Duration {
        let rule = self.limit.rule.clone();
        self.budget(now, scope, wall).meter.wait(&rule, now)
    }

    fn count(&mut self, now: At, scope: Scope<'_>, wall: Wall, admitted: bool) -> Option<Hold> {
        let limit = self.limit.clone();
        let counted = admitted || limit.count_refused;
        let property: Arc<str> = self.key(scope).into();
        let budget = self.budget(now, scope, wall);
        if counted {
            budget.meter.take(&limit.rule, now);
        }
        let (window, clock) = budget.seen.count(now, &limit.rule, wall, admitted);
        self.admitted += u64::from(admitted);
        self.worst.raise(&window, &property);
        self.worst_clock.raise(&clock, &property);
        let holds = matches!(limit.rule, Rule::Concurrency { .. });
        holds.then_some(Hold { gate: self.id, property, counted, admitted })
    }

    fn release(&mut self, hold: &Hold) {
        if let Some(budget) = self.budgets.get_mut(&hold.property) {
            if hold.counted {
                budget.meter.release();
            }
            let (admitted, all) = budget.seen.held;
            budget.seen.held = (admitted.saturating_sub(u64::from(hold.admitted)), all.saturating_sub(1));
        }
    }

    fn books(&self, until: Option<At>) -> LimitBooks {
        let fixed = matches!(self.limit.rule, Rule::FixedWindow { .. });
        let judged = if fixed { &self.worst_clock } else { &self.worst };
        LimitBooks {
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            limit: self.limit.clone(),
            max: self.limit.max(),
            since: self.since,
            until,
            admitted: self.admitted,
            refused: self.refused,
            over: judged.arrivals.calls > self.limit.max(),
            worst_window: self.worst.clone(),
            worst_clock_window: fixed.then(|| self.worst_clock.clone()),
        }
    }
}

impl Seen {
    /// Counts a call and gives the fullest windows so far: trailing (or in flight), and of the clock.
    fn count(&mut self, now: At, rule: &Rule, wall: Wall, admitted: bool) -> (Window, Window) {
        let one = u64::from(admitted);
        let worst = |calls| Worst { calls, until: now };
        let mut clock = Window::default();
        match rule {
            Rule::Concurrency { .. } => {
                self.held = (self.held.0 + one, self.held.1 + 1);
                let window =
                    Window { admitted: worst(self.held.0), arrivals: worst(self.held.1), property: None };
                return (window, clock);
            }
            Rule::FixedWindow { per, time_zone, .. } => {
                if now.as_micros() < self.clock.0 || now.as_micros() >= self.clock.1 {
                    self.clock = wall.window(now.as_micros(), *per, time_zone);
                    self.in_clock = (0, 0);
                }
                self.in_clock = (self.in_clock.0 + one, self.in_clock.1 + 1);
                clock.admitted = worst(self.in_clock.0);
                clock.arrivals = worst(self.in_clock.1);
            }
            Rule::SlidingWindow { .. } | Rule::TokenBucket { .. } => {}
        }
        if admitted {
            self.admitted.push(now);
        }
        self.arrivals.push(now);
        let window = Window {
            admitted: self.admitted.worst().clone(),
            arrivals: self.arrivals.worst().clone(),
            property: None,
        };
        (window, clock)
    }
}
