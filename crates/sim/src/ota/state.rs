//! Everything an OTA remembers, and its changes in mid-run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use crate::at::At;
use crate::books::{Arrival, Books, CellKey, ChannelBooks, InventoryKey, Store, Tally};
use crate::clock::Wall;
use crate::config::{Config, ConfigError, Kind, Outage, OutageKind, Patch, is_slug, patch_of};
use crate::limit::{Hold, Scope};
use crate::reaction::Ticket;

use super::answer::Asked;
use super::channel::Chan;

/// 2026-09-20T10:00:00Z, a Sunday.
const EPOCH: i64 = 1_789_898_400;

/// Most channels that come into being by being called.
const MOST_CHANNELS: usize = 1_000;

#[derive(Debug)]
pub(super) struct State {
    pub(super) config: Config,
    /// The channels listed at the start, not those that a change at run time named.
    listed: Vec<String>,
    pub(super) wall: Wall,
    pub(super) rng: StdRng,
    now: At,
    pub(super) last_ticket: u64,
    pub(super) channels: BTreeMap<String, Chan>,
    pub(super) flights: HashMap<u64, Flight>,
    /// Planned changes made so far, in the order of their time.
    changes_made: usize,
    /// Outages given at run time, with their channel.
    outages: Vec<(Option<String>, Outage)>,
    pub(super) total: Tally,
    pub(super) unrouted: u64,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) arrivals_dropped: u64,
    pub(super) store: Store,
    pub(super) cells_in_flight: HashMap<Arc<CellKey>, u64>,
    pub(super) rooms_in_flight: HashMap<InventoryKey, u64>,
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) channel: String,
    pub(super) endpoint: Arc<str>,
    pub(super) property: Option<Arc<str>>,
    pub(super) cell: Option<Arc<CellKey>>,
    pub(super) holds: Vec<Hold>,
    /// When its answer is due.
    pub(super) leaves: At,
    /// The pause its answer asks for.
    pub(super) asks: Option<Asked>,
    /// Whether it was applied and its answer, if it leaves, says so.
    pub(super) tells: bool,
}

impl State {
    pub(super) fn new(mut config: Config) -> Self {
        config.changes.sort_by_key(|change| change.at);
        let epoch = config.epoch.or_else(|| Timestamp::from_second(EPOCH).ok()).unwrap_or_default();
        let mut state = Self {
            wall: Wall::new(epoch),
            rng: StdRng::seed_from_u64(config.seed),
            listed: config.channels.keys().cloned().collect(),
            config,
            now: At::ZERO,
            last_ticket: 0,
            channels: BTreeMap::new(),
            flights: HashMap::new(),
            changes_made: 0,
            outages: Vec::new(),
            total: Tally::default(),
            unrouted: 0,
            arrivals: Vec::new(),
            arrivals_dropped: 0,
            store: Store::default(),
            cells_in_flight: HashMap::new(),
            rooms_in_flight: HashMap::new(),
        };
        state.open_listed(At::ZERO);
        state
    }

    /// Listed channels are there from the start, so that their limits' budgets are.
    fn open_listed(&mut self, now: At) {
        for (slug, channel) in &self.config.channels {
            self.channels.insert(slug.clone(), Chan::new(slug, channel.clone(), now));
        }
    }

    /// Puts `wall` behind the present instant.
    pub(super) fn set_wall(&mut self, wall: Timestamp) {
        if self.config.epoch.is_none() {
            self.wall = Wall::new(wall).before(self.now);
        }
    }

    pub(super) fn reset(&mut self, now: At) {
        let now = self.advance(now);
        let mut fresh = Self::new(self.config.clone());
        fresh.wall = self.wall;
        fresh.listed = std::mem::take(&mut self.listed);
        fresh.now = now;
        fresh.changes_made = self.changes_made;
        // Tickets of before must not end calls of after.
        fresh.last_ticket = self.last_ticket;
        fresh.channels.clear();
        fresh.open_listed(now);
        *self = fresh;
    }

    /// Brings time to `now`, making the changes that were planned until then.
    pub(super) fn advance(&mut self, now: At) -> At {
        while let Some(change) = self.config.changes.get(self.changes_made).cloned() {
            let at = At::from(change.at);
            if at > now {
                break;
            }
            self.changes_made += 1;
            self.now = self.now.max(at);
            // Checked when the configuration was read; one built by hand for no channel changes nothing.
            let _ = self.set_patch(self.now, &change.channel, &change.patch);
        }
        self.now = self.now.max(now);
        self.now
    }

    /// The channel of a slug, opened if its first call comes.
    pub(super) fn open(&mut self, slug: &str) -> Option<&mut Chan> {
        if !self.channels.contains_key(slug) {
            if !is_slug(slug) || self.channels.len() >= MOST_CHANNELS {
                return None;
            }
            // A budget that was never used has been full since the start.
            let channel = Chan::new(slug, self.config.of(slug)?.clone(), At::ZERO);
            self.channels.insert(slug.to_owned(), channel);
        }
        self.channels.get_mut(slug)
    }

    fn existing(&mut self, slug: &str) -> Result<&mut Chan, ConfigError> {
        self.open(slug).ok_or_else(|| ConfigError::one("channel", format!("there is no channel {slug:?}")))
    }

    pub(super) fn patch(&mut self, now: At, slug: &str, patch: &Patch) -> Result<(), ConfigError> {
        let now = self.advance(now);
        self.set_patch(now, slug, patch)
    }

    pub(super) fn patch_json(&mut self, now: At, slug: &str, table: &Value) -> Result<(), ConfigError> {
        let now = self.advance(now);
        let patch = patch_of(&self.existing(slug)?.config, "", table)?;
        self.set_patch(now, slug, &patch)
    }

    fn set_patch(&mut self, now: At, slug: &str, patch: &Patch) -> Result<(), ConfigError> {
        let wall = self.wall;
        let channel = self.existing(slug)?;
        channel.patch(patch, now);
        let config = channel.config.clone();
        let Self { channels, flights, .. } = self;
        if let Some(channel) = channels.get_mut(slug) {
            for flight in flights.values_mut().filter(|flight| flight.channel == slug) {
                let property = flight.property.as_deref().unwrap_or_default();
                let scope = Scope { endpoint: &flight.endpoint, property };
                channel.gates.adopt(now, scope, wall, &mut flight.holds);
            }
        }
        self.config.channels.insert(slug.to_owned(), config);
        Ok(())
    }

    pub(super) fn outage(&mut self, now: At, channel: Option<&str>, kind: OutageKind, lasts: Duration) {
        let now = self.advance(now);
        let at = now.since(At::ZERO);
        self.outages.push((channel.map(str::to_owned), Outage { at, lasts, kind }));
    }

    pub(super) fn rotate_token(
        &mut self,
        now: At,
        slug: &str,
        token: Option<&str>,
    ) -> Result<Option<String>, ConfigError> {
        let now = self.advance(now);
        let channel = self.existing(slug)?;
        let accepted = channel.auth.rotate(&mut channel.config.auth, now, token);
        let auth = channel.config.auth.clone();
        if let Some(listed) = self.config.channels.get_mut(slug) {
            listed.auth = auth;
        }
        Ok(accepted)
    }

    /// The outage of a channel at `now`: one given at run time first.
    pub(super) fn outage_of(&self, slug: &str, now: At) -> Option<OutageKind> {
        let given =
            self.outages.iter().filter(|(channel, _)| channel.as_deref().is_none_or(|name| name == slug));
        let planned = self.config.of(slug).map(|channel| channel.outages.iter()).into_iter().flatten();
        let all = given.map(|(_, outage)| outage).chain(planned);
        all.filter(|outage| holds(outage, now)).map(|outage| outage.kind).next()
    }

    /// Whether any channel can be reached, and the next instant at which that may change.
    pub(super) fn listening(&self, now: At) -> (bool, Option<At>) {
        let now = self.now.max(now);
        let planned = self.config.channels.values().flat_map(|channel| channel.outages.iter());
        let all = self.outages.iter().map(|(_, outage)| outage).chain(planned);
        let edges = all.filter(|outage| outage.kind == OutageKind::Refuse).flat_map(|outage| {
            let at = At::from(outage.at);
            [at, at + outage.lasts]
        });
        let changes = self.config.changes.get(self.changes_made..).unwrap_or_default();
        let edges = edges.chain(changes.iter().map(|change| At::from(change.at)));
        let refuses = |slug: &String| self.outage_of(slug, now) == Some(OutageKind::Refuse);
        let everywhere = self.outages.iter().any(|(channel, outage)| {
            channel.is_none() && outage.kind == OutageKind::Refuse && holds(outage, now)
        });
        let listed = !self.listed.is_empty() && self.listed.iter().all(refuses);
        (!everywhere && !listed, edges.filter(|edge| *edge > now).min())
    }

    pub(super) fn now(&self) -> At {
        self.now
    }

    /// Ends a call in flight; `abandoned` if its caller went away before the answer was whole.
    pub(super) fn finish(&mut self, now: At, Ticket(ticket): Ticket, abandoned: bool) {
        let now = self.advance(now);
        let Some(flight) = self.flights.remove(&ticket) else { return };
        if let Some(cell) = &flight.cell {
            lower(&mut self.cells_in_flight, cell);
            // Restrictions were not counted here.
            if cell.kind != Kind::Restriction {
                lower(&mut self.rooms_in_flight, &InventoryKey::from(cell.as_ref()));
            }
        }
        let Some(channel) = self.channels.get_mut(&flight.channel) else { return };
        channel.gates.release(&flight.holds);
        let gone = abandoned || now < flight.leaves && flight.leaves != At::MAX;
        channel.count(&mut self.total, &flight.endpoint, |tally| {
            tally.in_flight = tally.in_flight.saturating_sub(1);
            tally.gone += u64::from(gone);
            tally.lost_answers += u64::from(gone && flight.tells);
        });
        if let Some(asked) = flight.asks
            && !gone
        {
            channel.pause(now, &flight.endpoint, flight.property.as_deref(), asked);
        }
    }

    pub(super) fn books(&mut self, now: At) -> Books {
        let at = self.advance(now);
        let book = |channel: &Chan| ChannelBooks {
            total: channel.total.clone(),
            endpoints: channel.endpoints.clone(),
            limits: channel.gates.books(),
        };
        Books {
            at,
            total: self.total.clone(),
            channels: self.channels.iter().map(|(slug, channel)| (slug.clone(), book(channel))).collect(),
            unrouted: self.unrouted,
            arrivals_kept: u64::try_from(self.arrivals.len()).unwrap_or(u64::MAX),
            arrivals_dropped: self.arrivals_dropped,
        }
    }
}

fn holds(outage: &Outage, now: At) -> bool {
    let at = At::from(outage.at);
    at <= now && now < at + outage.lasts
}

fn lower<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u64>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}
