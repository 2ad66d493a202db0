//! One channel at work.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::at::At;
use crate::books::Tally;
use crate::config::{Act, Channel, Fault, Kind, Patch, Pauses, RetryAfter};
use crate::limit::Gates;

use super::answer::Asked;
use super::auth::AuthState;
use super::commit::Known;

#[derive(Debug)]
pub(super) struct Chan {
    pub(super) slug: Arc<str>,
    pub(super) config: Channel,
    /// Endpoint by path.
    paths: HashMap<String, (Arc<str>, Kind)>,
    pub(super) gates: Gates,
    pub(super) auth: AuthState,
    /// Of each fault: calls that met its conditions, and how many it struck.
    strikes: Vec<(u64, u64)>,
    turn: usize,
    /// The quiet asked for last, by endpoint and property: from when, until when.
    pauses: HashMap<(Arc<str>, Arc<str>), (At, At)>,
    pub(super) known: Known,
    pub(super) total: Tally,
    pub(super) endpoints: BTreeMap<String, Tally>,
}

/// How a call lies to a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPause {
    No,
    /// So soon after that it was on its way.
    Grace,
    Yes,
}

impl Chan {
    pub(super) fn new(slug: &str, config: Channel, now: At) -> Self {
        let mut channel = Self {
            slug: slug.into(),
            config,
            paths: HashMap::new(),
            gates: Gates::default(),
            auth: AuthState::default(),
            strikes: Vec::new(),
            turn: 0,
            pauses: HashMap::new(),
            known: Known::default(),
            total: Tally::default(),
            endpoints: BTreeMap::new(),
        };
        channel.set(now);
        channel
    }

    fn set(&mut self, now: At) {
        let slug = &self.slug;
        let path = |(name, endpoint): (&String, &crate::config::Endpoint)| {
            (endpoint.path.replace("{ota}", slug), (name.as_str().into(), endpoint.kind))
        };
        self.paths = self.config.endpoints.iter().map(path).collect();
        self.strikes.resize(self.config.faults.len(), (0, 0));
        self.gates.set(&self.config, now);
    }

    pub(super) fn patch(&mut self, patch: &Patch, now: At) {
        patch.apply(&mut self.config);
        if patch.faults.is_some() {
            self.strikes.clear();
        }
        if patch.auth.is_some() {
            self.auth = AuthState::default();
        }
        self.set(now);
    }

    pub(super) fn endpoint(&self, path: &str) -> Option<(Arc<str>, Kind)> {
        self.paths.get(path).cloned()
    }

    /// Counts in the endpoint, the channel and the whole.
    pub(super) fn count(&mut self, whole: &mut Tally, endpoint: &str, count: impl Fn(&mut Tally)) {
        count(whole);
        count(&mut self.total);
        if let Some(tally) = self.endpoints.get_mut(endpoint) {
            count(tally);
        } else {
            count(self.endpoints.entry(endpoint.to_owned()).or_default());
        }
    }

    /// How long the next answer takes.
    pub(super) fn latency(&self, rng: &mut StdRng) -> std::time::Duration {
        let latency = &self.config.latency;
        match &latency.tail {
            Some(tail) if rng.random_range(0..1_000_000) < tail.share.ppm() => {
                rng.random_range(tail.min..=tail.max.max(tail.min))
            }
            _ => rng.random_range(latency.min..=latency.max.max(latency.min)),
        }
    }

    /// The first fault that strikes a call, of those that refuse the connection or of the others.
    pub(super) fn strike(
        &mut self,
        rng: &mut StdRng,
        now: At,
        endpoint: &str,
        property: Option<&str>,
        refusing: bool,
    ) -> Option<Act> {
        let faults = self.config.faults.iter().zip(&mut self.strikes);
        for (fault, strikes) in faults.filter(|(fault, _)| (fault.act == Act::Refuse) == refusing) {
            if meets(fault, now, endpoint, property) && strikes_now(fault, strikes, rng) {
                return Some(fault.act.clone());
            }
        }
        None
    }

    /// The next form of `Retry-After`.
    pub(super) fn next_form(&mut self) -> RetryAfter {
        let forms = &self.config.retry_after;
        let form = forms.get(self.turn.checked_rem(forms.len()).unwrap_or(0)).cloned();
        self.turn = self.turn.wrapping_add(1);
        form.unwrap_or(RetryAfter::Absent)
    }

    fn pause_key(&self, endpoint: &Arc<str>, property: Option<&str>) -> (Arc<str>, Arc<str>) {
        match self.config.pauses {
            Pauses::Channel => ("".into(), "".into()),
            Pauses::Endpoint => (Arc::clone(endpoint), "".into()),
            Pauses::Property => (Arc::clone(endpoint), property.unwrap_or_default().into()),
        }
    }

    /// An answer that asks for quiet has left.
    pub(super) fn pause(&mut self, now: At, endpoint: &Arc<str>, property: Option<&str>, asked: Asked) {
        let until = asked.until(now).min(now + self.config.pause_horizon);
        let key = self.pause_key(endpoint, property);
        let (from, old) = self.pauses.get(&key).copied().unwrap_or_default();
        // One pause that goes on in another began with the first.
        let from = if old > now { from } else { now };
        self.pauses.insert(key, (from, until.max(old)));
    }

    pub(super) fn in_pause(&self, now: At, endpoint: &Arc<str>, property: Option<&str>) -> InPause {
        if self.pauses.is_empty() {
            return InPause::No;
        }
        match self.pauses.get(&self.pause_key(endpoint, property)) {
            Some((_, until)) if now >= *until => InPause::No,
            Some((from, _)) if now < *from + self.config.pause_grace => InPause::Grace,
            Some(_) => InPause::Yes,
            None => InPause::No,
        }
    }
}

fn meets(fault: &Fault, now: At, endpoint: &str, property: Option<&str>) -> bool {
    let at = At::from(fault.at);
    now >= at
        && fault.lasts.is_none_or(|lasts| now < at + lasts)
        && fault.endpoint.as_deref().is_none_or(|name| name == endpoint)
        && (fault.properties.is_empty()
            || fault.properties.iter().any(|name| Some(name.as_str()) == property))
}

/// Counts a call that meets the conditions, and decides.
fn strikes_now(fault: &Fault, (met, struck): &mut (u64, u64), rng: &mut StdRng) -> bool {
    *met += 1;
    let strikes = fault.times.is_none_or(|times| *struck < times)
        && (fault.nth.is_empty() || fault.nth.contains(met))
        && fault.every.is_none_or(|every| met.checked_rem(every) == Some(0))
        && (fault.share.ppm() == 1_000_000 || rng.random_range(0..1_000_000) < fault.share.ppm());
    *struck += u64::from(strikes);
    strikes
}
