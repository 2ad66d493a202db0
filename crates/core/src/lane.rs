//! A lane: the queue of one (channel, account, endpoint), and the scopes a hold may have.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::{AccountName, ChannelName, EndpointName, NameError, PropertyId};

/// The key of a lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneKey {
    /// The channel.
    pub channel: ChannelName,
    /// The credential in use there.
    pub account: AccountName,
    /// The class of calls.
    pub endpoint: EndpointName,
}

/// `channel:account/endpoint`, as the commands read and write it.
impl fmt::Display for LaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.channel, self.account, self.endpoint)
    }
}

/// What a hold holds: a whole channel, an account of it, a lane, or one property of a lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum Scope {
    /// Every lane of a channel.
    Channel {
        /// The channel.
        channel: ChannelName,
    },
    /// Every lane of one account.
    Account {
        /// The channel.
        channel: ChannelName,
        /// The account.
        account: AccountName,
    },
    /// One endpoint of a channel, under every account.
    Endpoint {
        /// The channel.
        channel: ChannelName,
        /// The endpoint.
        endpoint: EndpointName,
    },
    /// One lane.
    Lane {
        /// The lane.
        lane: LaneKey,
    },
    /// One property of one lane.
    Property {
        /// The lane.
        lane: LaneKey,
        /// The property.
        property: PropertyId,
    },
}

impl Scope {
    /// Whether the scope covers calls of this lane (of this property, for a property's scope).
    pub fn covers(&self, key: &LaneKey, of: Option<&PropertyId>) -> bool {
        match self {
            Self::Channel { channel } => *channel == key.channel,
            Self::Account { channel, account } => *channel == key.channel && *account == key.account,
            Self::Endpoint { channel, endpoint } => *channel == key.channel && *endpoint == key.endpoint,
            Self::Lane { lane } => lane == key,
            Self::Property { lane, property } => lane == key && Some(property) == of,
        }
    }
}

/// `CHANNEL[:ACCOUNT][/ENDPOINT]`, a property's scope with ` property ID` behind.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel { channel } => write!(f, "{channel}"),
            Self::Account { channel, account } => write!(f, "{channel}:{account}"),
            Self::Endpoint { channel, endpoint } => write!(f, "{channel}/{endpoint}"),
            Self::Lane { lane } => write!(f, "{lane}"),
            Self::Property { lane, property } => write!(f, "{lane} property {property}"),
        }
    }
}

impl FromStr for Scope {
    type Err = NameError;

    /// Reads `CHANNEL[:ACCOUNT][/ENDPOINT]`.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let (head, endpoint) = match text.split_once('/') {
            Some((head, endpoint)) => (head, Some(EndpointName::try_new(endpoint)?)),
            None => (text, None),
        };
        let (channel, account) = match head.split_once(':') {
            Some((channel, account)) => (channel, Some(AccountName::try_new(account)?)),
            None => (head, None),
        };
        let channel = ChannelName::try_new(channel)?;
        Ok(match (account, endpoint) {
            (None, None) => Self::Channel { channel },
            (Some(account), None) => Self::Account { channel, account },
            (None, Some(endpoint)) => Self::Endpoint { channel, endpoint },
            (Some(account), Some(endpoint)) => Self::Lane { lane: LaneKey { channel, account, endpoint } },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_reads_back_as_it_is_written() {
        for text in ["booking_com", "booking_com:hotel-7", "booking_com/rates", "booking_com:default/rates"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        assert!("Booking".parse::<Scope>().is_err());
    }
}
