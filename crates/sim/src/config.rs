//! What the simulated OTA is told to do: plain values with a builder, readable from TOML and JSON.

mod channel;
mod fault;
mod limit;
mod parse;
mod patch;
mod read;
mod retry;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

pub use channel::{Auth, Channel, Endpoint, Kind, Latency, OverLimit, Pauses, Tail, Token};
pub use fault::{Act, Fault, Outage, OutageKind, Share};
pub use limit::{Each, Limit, Rule};
pub(crate) use parse::{is_slug, patch_of};
pub use patch::{Change, EndpointPatch, Patch};
pub use retry::RetryAfter;

/// Everything a simulated OTA is told.
///
/// The default takes calls for any channel, without limits, answering after 2 to 40 ms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Where chance starts: the same seed and the same calls give the same reactions.
    pub seed: u64,
    /// The wall clock at time zero; without one, 2026-09-20T10:00:00Z in virtual time and the real
    /// time behind a server.
    #[serde(serialize_with = "instant", skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Timestamp>,
    /// How many arrivals the books keep in full; later ones are only counted.
    pub keep_arrivals: usize,
    /// Whether channels that are not listed answer 404 instead of following [`any`](Self::any).
    pub only_listed: bool,
    /// How channels behave that are not listed.
    pub any: Channel,
    /// The listed channels, by slug.
    pub channels: BTreeMap<String, Channel>,
    /// What changes in mid-run.
    pub changes: Vec<Change>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            epoch: None,
            keep_arrivals: 250_000,
            only_listed: false,
            any: Channel::default(),
            channels: BTreeMap::new(),
            changes: Vec::new(),
        }
    }
}

impl Config {
    /// Reads a TOML file's text.
    ///
    /// # Errors
    /// With every fault in it, each naming its key.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let value = toml::from_str(text).map_err(|fault| ConfigError::one("", fault.to_string().trim()))?;
        Self::from_json(&value)
    }

    /// Reads the same shape from a JSON value.
    ///
    /// # Errors
    /// With every fault in it, each naming its key.
    pub fn from_json(value: &serde_json::Value) -> Result<Self, ConfigError> {
        parse::config(value)
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the wall clock at time zero.
    #[must_use]
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Sets how channels behave that are not listed.
    #[must_use]
    pub fn any(mut self, channel: Channel) -> Self {
        self.any = channel;
        self
    }

    /// Lists a channel.
    #[must_use]
    pub fn channel(mut self, slug: impl Into<String>, channel: Channel) -> Self {
        self.channels.insert(slug.into(), channel);
        self
    }

    /// Plans a change of `channel`, `at` after the start.
    #[must_use]
    pub fn change(mut self, at: Duration, channel: impl Into<String>, patch: Patch) -> Self {
        self.changes.push(Change { at, channel: channel.into(), patch });
        self
    }

    /// The channel's configuration, listed or not.
    pub(crate) fn of(&self, slug: &str) -> Option<&Channel> {
        self.channels.get(slug).or_else(|| (!self.only_listed).then_some(&self.any))
    }
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyFault {
    /// Where: `channels.booking_com.limits[0].per`.
    pub key: String,
    /// What is wrong and what would be right.
    pub fault: String,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.fault) } else { write!(f, "{}: {}", self.key, self.fault) }
    }
}

/// A configuration that cannot be used, with everything that is wrong in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// The faults, in the order of the text.
    pub faults: Vec<KeyFault>,
}

impl ConfigError {
    pub(crate) fn one(key: &str, fault: impl Into<String>) -> Self {
        Self { faults: vec![KeyFault { key: key.to_owned(), fault: fault.into() }] }
    }
}

/// Writes a duration as people write it.
pub(crate) fn span<S: serde::Serializer>(length: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&crate::at::show_span(*length))
}

/// Writes an optional duration as people write it.
#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
pub(crate) fn some_span<S: serde::Serializer>(length: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match length {
        Some(length) => span(length, to),
        None => to.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn instant<S: serde::Serializer>(instant: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match instant {
        Some(instant) => to.collect_str(instant),
        None => to.serialize_none(),
    }
}
