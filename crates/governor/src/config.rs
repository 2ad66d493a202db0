//! What is configured, checked and resolved: the lanes' and limits' view of `governor.toml`.

pub mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use ota_governor_core::idempotency::Recipe;
use ota_governor_core::limit::Limit;
use ota_governor_core::name::{AccountName, ChannelName, EndpointName, LimitName};
use ota_governor_core::retry::RetryPolicy;
use regex::Regex;
use secrecy::SecretString;

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
}

/// One channel.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Where its API is, without a trailing slash.
    pub base_url: String,
    /// Where each account's token comes from; `default` always among them.
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
#[derive(Debug, Clone)]
pub enum TokenSource {
    /// An environment variable, read for every call.
    Env(String),
    /// A file, read for every call.
    File(std::path::PathBuf),
    /// A command, run at start and after a 401; its token is held in memory only.
    Command(Vec<String>),
    /// A token given by a program that embeds the governor.
    Fixed(SecretString),
}
