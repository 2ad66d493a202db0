//! What is configured, checked and resolved: the lanes' and limits' view of `governor.toml`.

mod channel;
pub mod fault;
pub mod file;
mod limits;
mod section;
#[cfg(test)]
mod tests;
mod token;
mod tree;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ota_governor_core::idempotency::Recipe;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::limit::Limit;
use ota_governor_core::name::{AccountName, ChannelName, EndpointName, LimitName};
use ota_governor_core::retry::RetryPolicy;
use regex::Regex;
use secrecy::SecretString;

pub use fault::{ConfigFault, ConfigFaults, Origin};
pub use token::TokenOrigins;

/// Everything configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// The ledger's URL: `sqlite:PATH`, `memory:`.
    pub ledger_url: String,
    /// How long finished mutations are kept.
    pub retention: Duration,
    /// The name of where calls leave.
    pub egress: String,
    /// Limits that several share, by name.
    pub limits: BTreeMap<LimitName, Limit>,
    /// The channels.
    pub channels: BTreeMap<ChannelName, Channel>,
    /// Where a daemon listens.
    pub listen: Option<SocketAddr>,
    /// Where each account's token source is configured.
    pub token_origins: TokenOrigins,
}

/// No channels, and every default.
impl Default for Config {
    fn default() -> Self {
        Self {
            ledger_url: "sqlite:governor.db".to_owned(),
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            egress: file::host_name(),
            limits: BTreeMap::new(),
            channels: BTreeMap::new(),
            listen: None,
            token_origins: TokenOrigins::new(),
        }
    }
}

/// Where the ledger is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerPlace {
    /// In memory: gone with the process.
    Memory,
    /// In this file.
    Sqlite(PathBuf),
}

/// Why a lane cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLane {
    /// The channel is not configured.
    #[error("there is no channel {channel} in the configuration")]
    UnknownChannel {
        /// The channel.
        channel: ChannelName,
    },
    /// The channel has no such account.
    #[error("the channel {} has no account {}: it would stand under [channels.{}.accounts.{}]",
        lane.channel, lane.account, lane.channel, lane.account)]
    UnknownAccount {
        /// The lane.
        lane: LaneKey,
    },
    /// Neither the endpoint nor its channel has a limit.
    #[error("the endpoint {} of {} has no limit: add [[channels.{}.endpoints.{}.limits]] or [[channels.{}.limits]]",
        lane.endpoint, lane.channel, lane.channel, lane.endpoint, lane.channel)]
    NoLimit {
        /// The lane.
        lane: LaneKey,
    },
}

impl Config {
    /// Where the ledger is; a URL that is none was refused when it was read.
    pub fn ledger_place(&self) -> LedgerPlace {
        file::ledger_place(&self.ledger_url).unwrap_or(LedgerPlace::Memory)
    }

    /// How far back a call that was sent can still count against any limit: it counts from its answer on.
    pub fn longest_window(&self) -> Duration {
        let timeouts = self.channels.values().flat_map(|channel| {
            channel.endpoints.values().filter_map(|endpoint| endpoint.timeout).chain([channel.timeout])
        });
        let timeout = timeouts.max().unwrap_or_default();
        let limits = self.channels.values().flat_map(|channel| {
            channel.limits.iter().chain(channel.endpoints.values().flat_map(|endpoint| &endpoint.limits))
        });
        limits.map(|limit| limit.rule.memory()).max().unwrap_or_default().saturating_add(timeout)
    }

    /// Every lane that has a limit, in order.
    pub fn lanes(&self) -> Vec<LaneKey> {
        let mut lanes = Vec::new();
        for (channel, configured) in &self.channels {
            for account in configured.accounts.keys() {
                for endpoint in configured.endpoints.keys() {
                    let (channel, account, endpoint) = (channel.clone(), account.clone(), endpoint.clone());
                    lanes.push(LaneKey { channel, account, endpoint });
                }
            }
        }
        lanes.retain(|lane| self.lane_limits(lane).is_ok());
        lanes
    }

    /// The limits that a lane's calls must all fit: its channel's, then its endpoint's; at least one.
    /// A shared limit that both list is there once.
    ///
    /// # Errors
    /// If the lane is not to be used, with what is missing.
    pub fn lane_limits(&self, lane: &LaneKey) -> Result<Vec<&Limit>, NoLane> {
        let Some(channel) = self.channels.get(&lane.channel) else {
            return Err(NoLane::UnknownChannel { channel: lane.channel.clone() });
        };
        if !channel.accounts.contains_key(&lane.account) {
            return Err(NoLane::UnknownAccount { lane: lane.clone() });
        }
        let own = channel.endpoints.get(&lane.endpoint).map(|endpoint| endpoint.limits.iter());
        let mut limits: Vec<&Limit> = Vec::new();
        // An endpoint that is not configured does not exist, whatever limits its channel has.
        let of_channel = channel.limits.iter().filter(|_| own.is_some());
        for limit in of_channel.chain(own.clone().into_iter().flatten()) {
            if !limits.iter().any(|taken| taken.name == limit.name) {
                limits.push(limit);
            }
        }
        if limits.is_empty() { Err(NoLane::NoLimit { lane: lane.clone() }) } else { Ok(limits) }
    }

    /// The channel and endpoint of a lane, if configured.
    pub fn endpoint(&self, lane: &LaneKey) -> Option<(&Channel, &Endpoint)> {
        let channel = self.channels.get(&lane.channel)?;
        Some((channel, channel.endpoints.get(&lane.endpoint)?))
    }
}

/// One channel.
#[derive(Clone)]
pub struct Channel {
    /// Where its API is, without a trailing slash.
    pub base_url: String,
    /// Where each account's token comes from; usually one called `default`.
    pub accounts: BTreeMap<AccountName, TokenSource>,
    /// The header that carries the token.
    pub auth_header: String,
    /// What stands before the token in it.
    pub auth_prefix: String,
    /// Extra headers of every call.
    pub headers: Vec<(String, String)>,
    /// How long a call may take.
    pub timeout: Duration,
    /// Most calls in flight per lane.
    pub max_in_flight: usize,
    /// IANA name of the zone of its properties, where the mutation names none.
    pub time_zone: Option<String>,
    /// What a property id looks like here.
    pub property_id_pattern: Regex,
    /// How idempotency keys are made.
    pub idempotency: Recipe,
    /// How much of an answer is read.
    pub max_answer_bytes: usize,
    /// Limits of the whole channel, the named ones it uses included.
    pub limits: Vec<Limit>,
    /// The endpoints.
    pub endpoints: BTreeMap<EndpointName, Endpoint>,
}

/// Values of headers stay out: they may be secret.
impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Channel")
            .field("base_url", &self.base_url)
            .field("accounts", &self.accounts)
            .field("auth_header", &self.auth_header)
            .field("headers", &headers)
            .field("timeout", &self.timeout)
            .field("max_in_flight", &self.max_in_flight)
            .field("time_zone", &self.time_zone)
            .field("property_id_pattern", &self.property_id_pattern.as_str())
            .field("idempotency", &self.idempotency)
            .field("max_answer_bytes", &self.max_answer_bytes)
            .field("limits", &self.limits)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

/// One endpoint of a channel. Available only if it or its channel has a limit.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The path of its calls.
    pub path: String,
    /// What a 429 pauses.
    pub pauses: Pauses,
    /// How long a call may take, if not the channel's.
    pub timeout: Option<Duration>,
    /// When to try again.
    pub retry: RetryPolicy,
    /// Its own limits, the named ones it uses included.
    pub limits: Vec<Limit>,
}

/// What a 429 pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pauses {
    /// The lane.
    #[default]
    Lane,
    /// The property, on this lane.
    Property,
    /// Every lane of the account.
    Account,
}

/// Where a token comes from.
#[derive(Clone)]
pub enum TokenSource {
    /// An environment variable, read for every call.
    Env(String),
    /// A file, read for every call.
    File(PathBuf),
    /// A command, run at start and after a 401; its token is held in memory only.
    Command(Vec<String>),
    /// A token given by a program that embeds the governor.
    Fixed(SecretString),
}

/// Arguments of a command stay out: they may be secret.
impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(variable) => write!(f, "env {variable}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Command(words) => write!(f, "command {}", words.first().map_or("", String::as_str)),
            Self::Fixed(_) => f.write_str("fixed"),
        }
    }
}
