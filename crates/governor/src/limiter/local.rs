//! The limiter of one process: exact turns from one line per group of lanes that share a limit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::limit::{Budget, Each, Fit, Limit};
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;
use tokio::sync::{Notify, oneshot};

use super::{Ask, Grant, LimitStatus, Limiter, LimiterError, Outlook, Permit, PermitId, Release};
use crate::clock::Clock;
use crate::config::Config;
use crate::ledger::{Hold, PastCall};

/// Property budgets kept before idle ones are forgotten.
const PROPERTIES_KEPT: usize = 10_000;

/// Gives out permits from memory.
#[derive(Debug)]
pub struct LocalLimiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    state: Mutex<State>,
    wake: Notify,
}

/// Names a budget: what its limit is counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    of: String,
    property: Option<PropertyId>,
}

#[derive(Debug)]
struct LaneLimits {
    limits: Vec<(Limit, String)>,
}

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<LaneKey, LaneLimits>,
    budgets: HashMap<Key, Budget>,
    line: BTreeMap<(Priority, u64), Waiter>,
    taken: HashMap<u64, Taken>,
    holds: Vec<Hold>,
    arrivals: u64,
    permits: u64,
    /// When the driver will look again.
    wake_at: Timestamp,
}

#[derive(Debug)]
struct Waiter {
    ask: Ask,
    tell: oneshot::Sender<Vec<Permit>>,
}

#[derive(Debug)]
struct Taken {
    keys: Vec<Key>,
    granted: Timestamp,
    cost: u64,
}

/// Why a call cannot leave now.
enum Blocked {
    Limit { key: Key, name: String, at: Timestamp },
    Never { limit: Limit },
    Held { by: String, until: Option<Timestamp> },
}

type Grants = Vec<(oneshot::Sender<Vec<Permit>>, Vec<Permit>)>;

impl LocalLimiter {
    /// The limits of a configuration, with the calls of before the restart counted. Must be called
    /// within a runtime.
    pub fn from_config(config: &Config, clock: Clock, past: Vec<PastCall>) -> Arc<Self> {
        let mut state = State::default();
        for lane in config.lanes() {
            let Ok(limits) = config.lane_limits(&lane) else { continue };
            let mut keyed: Vec<(Limit, String)> = Vec::new();
            for limit in limits {
                let of = budget_of(config, &lane, limit);
                if keyed.iter().all(|(_, other)| *other != of) {
                    keyed.push((limit.clone(), of));
                }
            }
            state.lanes.insert(lane, LaneLimits { limits: keyed });
        }
        state.replay(past, clock.now());
        let inner = Arc::new(Inner { clock, state: Mutex::new(state), wake: Notify::new() });
        let driven = Arc::downgrade(&inner);
        tokio::spawn(async move {
            while let Some(inner) = driven.upgrade() {
                let at = inner.lock().wake_at;
                let clock = inner.clock.clone();
                tokio::select! {
                    () = clock.sleep_until(at) => inner.pump(),
                    () = inner.wake.notified() => {}
                    () = tokio::time::sleep(Duration::from_secs(60)) => {}
                }
            }
        });
        Arc::new(Self { inner })
    }
}

/// Which budget a limit draws on for this lane.
fn budget_of(config: &Config, lane: &LaneKey, limit: &Limit) -> String {
    if limit.each == Each::Egress {
        return format!("egress {} {}", config.egress, limit.name);
    }
    if config.limits.contains_key(&limit.name) {
        return format!("shared {}", limit.name);
    }
    format!("{}:{} {}", lane.channel, lane.account, limit.name)
}

impl State {
    fn replay(&mut self, mut past: Vec<PastCall>, now: Timestamp) {
        past.sort_by_key(|call| call.answered_at.unwrap_or(now));
        for call in past {
            let keys = self.keys(&call.lane, Some(&call.property));
            let ended = call.answered_at.unwrap_or(now).min(now);
            for (key, limit) in keys {
                let budget = self.budgets.entry(key).or_insert_with(|| Budget::new(&limit.rule));
                budget.take(call.sent_at, 1);
                budget.settle(call.sent_at, ended, 1);
            }
        }
    }

    /// The budgets of a call, the property's included where a limit is counted by property.
    fn keys(&self, lane: &LaneKey, property: Option<&PropertyId>) -> Vec<(Key, Limit)> {
        let Some(limits) = self.lanes.get(lane) else { return Vec::new() };
        let key = |(limit, of): &(Limit, String)| {
            let property = match limit.each {
                Each::Property => Some(property?.clone()),
                Each::Account | Each::Egress => None,
            };
            Some((Key { of: of.clone(), property }, limit.clone()))
        };
        limits.limits.iter().filter_map(key).collect()
    }

    fn hold(&self, lane: &LaneKey, property: Option<&PropertyId>, now: Timestamp) -> Option<Blocked> {
        self.holds
            .iter()
            .filter(|hold| hold.scope.covers(lane, property) && hold.until.is_none_or(|until| until > now))
            .max_by_key(|hold| hold.until.unwrap_or(Timestamp::MAX))
            .map(|hold| Blocked::Held { by: hold.detail.clone(), until: hold.until })
    }

    /// What blocks a call now, if anything: the limit that binds longest.
    fn blocked(
        &mut self,
        lane: &LaneKey,
        property: Option<&PropertyId>,
        cost: u64,
        now: Timestamp,
        busy: &HashSet<Key>,
    ) -> Option<Blocked> {
        if let Some(held) = self.hold(lane, property, now) {
            return Some(held);
        }
        let mut worst: Option<Blocked> = None;
        for (key, limit) in self.keys(lane, property) {
            let budget = self.budgets.entry(key.clone()).or_insert_with(|| Budget::new(&limit.rule));
            let at = match budget.fits(now, cost) {
                Fit::Now if busy.contains(&key) => Timestamp::MAX,
                Fit::Now => continue,
                Fit::At(at) => at,
                Fit::Never => return Some(Blocked::Never { limit }),
            };
            let longer = match &worst {
                Some(Blocked::Limit { at: other, .. }) => at > *other,
                Some(Blocked::Never { .. } | Blocked::Held { .. }) | None => true,
            };
            if longer {
                worst = Some(Blocked::Limit { key, name: limit.name.to_string(), at });
            }
        }
        worst
    }

    fn take(&mut self, lane: &LaneKey, property: Option<&PropertyId>, cost: u64, now: Timestamp) -> u64 {
        let keys = self.keys(lane, property);
        for (key, limit) in &keys {
            self.budgets.entry(key.clone()).or_insert_with(|| Budget::new(&limit.rule)).take(now, cost);
        }
        self.permits += 1;
        let keys = keys.into_iter().map(|(key, _)| key).collect();
        self.taken.insert(self.permits, Taken { keys, granted: now, cost });
        self.permits
    }

    /// Gives every waiter what fits now, in order. A waiter that must wait keeps the limit that binds it
    /// from those behind it, and no other.
    fn pump(&mut self, now: Timestamp, release: &Arc<dyn Release>) -> Grants {
        let mut grants = Grants::new();
        let mut busy = HashSet::new();
        let mut wake = Timestamp::MAX;
        let order: Vec<(Priority, u64)> = self.line.keys().copied().collect();
        for place in order {
            let Some(waiter) = self.line.get(&place) else { continue };
            let ask = waiter.ask.clone();
            let candidates: Vec<Option<PropertyId>> = if ask.properties.is_empty() {
                vec![None]
            } else {
                ask.properties.iter().cloned().map(Some).collect()
            };
            let mut permits = Vec::new();
            for property in candidates {
                let property = property.as_ref();
                let mut blocked = None;
                while permits.len() < ask.want.max(1) {
                    blocked = self.blocked(&ask.lane, property, ask.cost, now, &busy);
                    if blocked.is_some() {
                        break;
                    }
                    let number = self.take(&ask.lane, property, ask.cost, now);
                    let id = PermitId { group: 0, number };
                    permits.push(Permit::new(id, property.cloned(), now, Arc::clone(release)));
                }
                if !permits.is_empty() {
                    break;
                }
                match blocked {
                    Some(Blocked::Limit { key, at, .. }) => {
                        wake = wake.min(at);
                        let of_property = key.property.is_some();
                        busy.insert(key);
                        if !of_property {
                            break;
                        }
                    }
                    Some(Blocked::Held { until, .. }) => wake = wake.min(until.unwrap_or(Timestamp::MAX)),
                    Some(Blocked::Never { .. }) | None => {}
                }
            }
            if !permits.is_empty()
                && let Some(waiter) = self.line.remove(&place)
            {
                grants.push((waiter.tell, permits));
            }
        }
        self.wake_at = wake;
        grants
    }

    /// When the last of `ahead` + 1 calls could leave, were each answered at once.
    fn turn(&mut self, ask: &Ask, ahead: usize, now: Timestamp) -> Result<(Timestamp, String), Blocked> {
        let property = ask.properties.first();
        let mut at = now;
        if let Some(Blocked::Held { by, until }) = self.hold(&ask.lane, property, now) {
            let Some(until) = until else { return Err(Blocked::Held { by, until }) };
            at = until;
        }
        let mut by = String::new();
        let mut budgets: Vec<(String, Budget)> = Vec::new();
        for (key, limit) in self.keys(&ask.lane, property) {
            let budget = self.budgets.get(&key).cloned().unwrap_or_else(|| Budget::new(&limit.rule));
            budgets.push((limit.name.to_string(), budget));
        }
        for round in 0..=ahead.min(10_000) {
            for (name, budget) in &mut budgets {
                if let Fit::At(then) = budget.fits(at, ask.cost)
                    && then > at
                {
                    at = then;
                    by.clone_from(name);
                }
            }
            if at == Timestamp::MAX || round == ahead {
                break;
            }
            for (_, budget) in &mut budgets {
                budget.take(at, ask.cost);
                budget.settle(at, at, ask.cost);
            }
        }
        Ok((at, by))
    }

    fn release(&mut self, number: u64, sent: bool, now: Timestamp) {
        let Some(taken) = self.taken.remove(&number) else { return };
        for key in &taken.keys {
            let Some(budget) = self.budgets.get_mut(key) else { continue };
            if sent {
                budget.settle(taken.granted, now, taken.cost);
            } else {
                budget.give_back(taken.cost);
            }
        }
        if self.budgets.len() > PROPERTIES_KEPT {
            // Only what is full again may be forgotten: a live budget would hand its allowance out twice.
            self.budgets.retain(|key, budget| key.property.is_none() || !budget.is_idle(now));
        }
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pump(self: &Arc<Self>) {
        let release: Arc<dyn Release> = Arc::<Self>::clone(self);
        let (grants, moved) = {
            let mut state = self.lock();
            let before = state.wake_at;
            let grants = state.pump(self.clock.now(), &release);
            (grants, state.wake_at < before)
        };
        if moved {
            self.wake.notify_one();
        }
        for (tell, permits) in grants {
            // An asker that left meanwhile costs nothing.
            if let Err(permits) = tell.send(permits) {
                permits.into_iter().for_each(Permit::unused);
            }
        }
    }
}

impl Release for Inner {
    fn release(&self, permit: PermitId, sent: bool) {
        let now = self.clock.now();
        let mut state = self.lock();
        state.release(permit.number, sent, now);
        // The driver looks at once: what this answer frees may be somebody's turn.
        if !state.line.is_empty() {
            state.wake_at = now;
            self.wake.notify_one();
        }
    }
}

/// Takes the asker out of the line when it goes, with whatever was granted to it meanwhile.
struct InLine {
    inner: Arc<Inner>,
    place: (Priority, u64),
    told: oneshot::Receiver<Vec<Permit>>,
}

impl Drop for InLine {
    fn drop(&mut self) {
        let left = self.inner.lock().line.remove(&self.place);
        drop(left);
        self.told.close();
        if let Ok(permits) = self.told.try_recv() {
            permits.into_iter().for_each(Permit::unused);
        }
    }
}

#[async_trait]
impl Limiter for LocalLimiter {
    async fn acquire(&self, ask: Ask) -> Result<Grant, LimiterError> {
        let inner = &self.inner;
        let now = inner.clock.now();
        let (tell, told) = oneshot::channel();
        let mut in_line = {
            let mut state = inner.lock();
            if !state.lanes.contains_key(&ask.lane) {
                return Err(LimiterError::UnknownLane { lane: ask.lane });
            }
            if let Some(Blocked::Never { limit }) =
                state.blocked(&ask.lane, ask.properties.first(), ask.cost, now, &HashSet::new())
            {
                return Ok(Grant::NeverFits { limit: limit.name });
            }
            if let Some(max_wait) = ask.max_wait {
                let ahead = state
                    .line
                    .values()
                    .filter(|waiter| waiter.ask.lane == ask.lane && waiter.ask.priority <= ask.priority)
                    .map(|waiter| waiter.ask.want.max(1))
                    .sum();
                match state.turn(&ask, ahead, now) {
                    Ok((at, by)) if at.since(now) > max_wait => {
                        return Ok(Grant::Refused { wait: Some(at.since(now)), by });
                    }
                    Ok(_) => {}
                    Err(Blocked::Held { by, .. }) => return Ok(Grant::Refused { wait: None, by }),
                    Err(Blocked::Never { limit }) => return Ok(Grant::NeverFits { limit: limit.name }),
                    Err(Blocked::Limit { name, .. }) => return Ok(Grant::Refused { wait: None, by: name }),
                }
            }
            state.arrivals += 1;
            let place = (ask.priority, state.arrivals);
            state.line.insert(place, Waiter { ask, tell });
            InLine { inner: Arc::clone(inner), place, told }
        };
        inner.pump();
        match (&mut in_line.told).await {
            Ok(permits) => Ok(Grant::Granted(permits)),
            Err(_) => Ok(Grant::Refused { wait: None, by: "the limiter was stopped".to_owned() }),
        }
    }

    fn set_holds(&self, holds: Vec<Hold>) {
        self.inner.lock().holds = holds;
        self.inner.pump();
    }

    async fn outlook(&self, lane: &LaneKey, property: Option<&PropertyId>) -> Result<Option<Outlook>, LimiterError> {
        let now = self.inner.clock.now();
        let mut state = self.inner.lock();
        if !state.lanes.contains_key(lane) {
            return Err(LimiterError::UnknownLane { lane: lane.clone() });
        }
        Ok(state.blocked(lane, property, 1, now, &HashSet::new()).map(|blocked| match blocked {
            Blocked::Limit { name, at, .. } => Outlook { by: name, until: Some(at) },
            Blocked::Never { limit } => Outlook { by: limit.name.to_string(), until: None },
            Blocked::Held { by, until } => Outlook { by, until },
        }))
    }

    async fn status(&self) -> Result<Vec<LimitStatus>, LimiterError> {
        let now = self.inner.clock.now();
        let mut state = self.inner.lock();
        let mut rows: BTreeMap<Key, (Limit, Vec<LaneKey>)> = BTreeMap::new();
        for (lane, limits) in &state.lanes {
            for (limit, of) in &limits.limits {
                let budgets = state.budgets.keys().filter(|key| key.of == *of).cloned();
                let fixed = (limit.each != Each::Property).then(|| Key { of: of.clone(), property: None });
                for key in budgets.chain(fixed).collect::<HashSet<_>>() {
                    rows.entry(key).or_insert_with(|| (limit.clone(), Vec::new())).1.push(lane.clone());
                }
            }
        }
        let status = rows.into_iter().map(|(key, (limit, mut lanes))| {
            lanes.sort();
            let budget = state.budgets.entry(key.clone()).or_insert_with(|| Budget::new(&limit.rule));
            let next_at = match budget.fits(now, 1) {
                Fit::At(at) if at < Timestamp::MAX => Some(at),
                Fit::At(_) | Fit::Now | Fit::Never => None,
            };
            LimitStatus {
                rule: limit.rule.describe(),
                limit: limit.name,
                lanes,
                property: key.property,
                left: budget.left(now),
                used: budget.used(now),
                max: budget.max(),
                next_at,
            }
        });
        Ok(status.collect())
    }
}
