//! What checks need to know of the configured channels.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use regex::Regex;

use crate::mutation::date::{ZoneError, zone};
use crate::mutation::{Kind, Mutation};
use crate::name::{AccountName, ChannelName};
use crate::time::Timestamp;

/// What a property id looks like where the channel configures nothing else.
pub const PROPERTY_ID_PATTERN: &str = "^prop_[0-9a-f]{8}$";

/// What one channel asks of its mutations.
#[derive(Debug, Clone)]
pub struct Rules {
    property_id_pattern: Regex,
    time_zone: Option<TimeZone>,
    accounts: BTreeSet<AccountName>,
    kinds: Vec<Kind>,
}

impl Rules {
    /// The rules of a channel: what its property ids look like, the accounts it has and the kinds whose
    /// endpoints are available.
    pub fn new(
        property_id_pattern: Regex,
        accounts: impl IntoIterator<Item = AccountName>,
        kinds: impl IntoIterator<Item = Kind>,
    ) -> Self {
        Self {
            property_id_pattern,
            time_zone: None,
            accounts: accounts.into_iter().collect(),
            kinds: kinds.into_iter().collect(),
        }
    }

    /// The same with the IANA time zone of its properties, where a mutation names none.
    ///
    /// # Errors
    /// If there is no zone of that name.
    pub fn in_time_zone(self, name: &str) -> Result<Self, ZoneError> {
        Ok(Self { time_zone: Some(zone(name)?), ..self })
    }

    /// What its property ids look like.
    pub const fn property_id_pattern(&self) -> &Regex {
        &self.property_id_pattern
    }

    /// The time zone of its properties.
    pub const fn time_zone(&self) -> Option<&TimeZone> {
        self.time_zone.as_ref()
    }

    /// The accounts it has.
    pub const fn accounts(&self) -> &BTreeSet<AccountName> {
        &self.accounts
    }

    /// Whether the endpoint of a kind has a limit and so may be called.
    pub fn is_available(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }
}

/// The configured channels, as far as checks need them.
#[derive(Debug, Clone, Default)]
pub struct Context {
    channels: BTreeMap<ChannelName, Rules>,
}

impl Context {
    /// The channels given.
    pub fn new(channels: impl IntoIterator<Item = (ChannelName, Rules)>) -> Self {
        Self { channels: channels.into_iter().collect() }
    }

    /// A channel by its slug.
    pub fn channel(&self, slug: &str) -> Option<(&ChannelName, &Rules)> {
        self.channels.get_key_value(slug)
    }

    /// The slugs of all channels, in order.
    pub fn names(&self) -> impl Iterator<Item = &ChannelName> {
        self.channels.keys()
    }

    /// When a mutation stops being worth sending, by its own time zone or its channel's.
    pub fn expires(&self, mutation: &Mutation) -> Option<Timestamp> {
        if mutation.time_zone.is_some() {
            return super::expires(mutation, None);
        }
        let rules = self.channels.get(&mutation.ota);
        super::expires_in(mutation, rules.and_then(Rules::time_zone))
    }
}
