//! A mutation: one absolute value to be true at a channel, already checked.
//!
//! A [`Mutation`] cannot be built wrong from outside: what producers write becomes one only through
//! [`Draft`](draft::Draft), which reports every fault at once.

mod body;
pub mod date;
pub mod draft;
pub mod fault;
pub mod money;

pub use body::StoredValueError;

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::lane::LaneKey;
use crate::name::{
    AccountName, BatchName, ChannelName, CorrelationId, EndpointName, PropertyId, RatePlanCode, RoomTypeCode,
};
use crate::time::Timestamp;
use money::{Amount, Currency};

/// What a mutation sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Amount, currency and inventory of a rate plan.
    Rate,
    /// Inventory of a room type, or of one rate plan of it.
    Availability,
    /// Rules of stay of a rate plan.
    Restriction,
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::Rate, Self::Availability, Self::Restriction];

    /// The word producers and the ledger use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Availability => "availability",
            Self::Restriction => "restriction",
        }
    }

    /// The name of the endpoint that takes this kind.
    pub const fn endpoint(self) -> &'static str {
        match self {
            Self::Rate => "rates",
            Self::Availability => "availability",
            Self::Restriction => "restrictions",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of `rate`, `availability`, `restriction`")]
pub struct KindError;

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        Self::ALL.iter().find(|kind| kind.as_str() == text).copied().ok_or(KindError)
    }
}

/// How urgent a mutation is: 0 to 1000, lower goes first, default 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Priority(u16);

impl Priority {
    /// The most urgent.
    pub const MOST_URGENT: Self = Self(0);

    /// Takes 0 to 1000.
    pub const fn try_new(value: u16) -> Option<Self> {
        if value <= 1000 { Some(Self(value)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(100)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many rooms may still be sold: 0 to 999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Inventory(u16);

impl Inventory {
    /// Takes 0 to 999.
    pub const fn try_new(value: u16) -> Option<Self> {
        if value <= 999 { Some(Self(value)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for Inventory {
    type Error = &'static str;
    fn try_from(value: u16) -> Result<Self, Self::Error> {
        Self::try_new(value).ok_or("must be an integer from 0 to 999")
    }
}

impl From<Inventory> for u16 {
    fn from(value: Inventory) -> Self {
        value.0
    }
}

/// The rules of stay that a restriction sets; at least one is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restriction {
    /// Fewest nights of a stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_stay: Option<u16>,
    /// Most nights of a stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_stay: Option<u16>,
    /// No arrival on this date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_to_arrival: Option<bool>,
    /// No departure on this date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_to_departure: Option<bool>,
    /// Not sold on this date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sell: Option<bool>,
}

impl Restriction {
    /// Which fields are set, one bit each.
    pub const fn fields(&self) -> u8 {
        let mut bits = 0;
        if self.min_stay.is_some() {
            bits |= 1;
        }
        if self.max_stay.is_some() {
            bits |= 2;
        }
        if self.closed_to_arrival.is_some() {
            bits |= 4;
        }
        if self.closed_to_departure.is_some() {
            bits |= 8;
        }
        if self.stop_sell.is_some() {
            bits |= 16;
        }
        bits
    }
}

/// The value of a mutation. In JSON it is an object of exactly the kind's fields; the kind stands beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A price with its stock.
    Rate {
        /// The price.
        amount: Amount,
        /// Its ISO 4217 currency.
        currency: Currency,
        /// Rooms left to sell.
        inventory: Inventory,
    },
    /// The stock alone.
    Availability {
        /// Rooms left to sell.
        inventory: Inventory,
    },
    /// Rules of stay.
    Restriction(Restriction),
}

impl Value {
    /// The kind of this value.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Rate { .. } => Kind::Rate,
            Self::Availability { .. } => Kind::Availability,
            Self::Restriction(_) => Kind::Restriction,
        }
    }

    /// The stock this value carries, if any.
    pub const fn inventory(&self) -> Option<Inventory> {
        match self {
            Self::Rate { inventory, .. } | Self::Availability { inventory } => Some(*inventory),
            Self::Restriction(_) => None,
        }
    }
}

/// One absolute value to be true at a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// The producer's unique name of it.
    pub correlation_id: CorrelationId,
    /// The channel.
    pub ota: ChannelName,
    /// The credential in use there.
    pub account: AccountName,
    /// The property.
    pub property_id: PropertyId,
    /// The room type.
    pub room_type_code: RoomTypeCode,
    /// The rate plan; absent only for an availability that covers every plan of the room and date.
    pub rate_plan_code: Option<RatePlanCode>,
    /// The night that is sold.
    pub stay_date: Date,
    /// The value.
    pub value: Value,
    /// How urgent it is.
    pub priority: Priority,
    /// IANA name of the property's time zone, if the producer gave one.
    pub time_zone: Option<String>,
    /// When it stops being worth sending.
    pub expires_at: Option<Timestamp>,
    /// The producer's own version of the cell.
    pub sequence: Option<u64>,
    /// The batch it belongs to.
    pub batch: Option<BatchName>,
}

impl Mutation {
    /// The kind of its value.
    pub const fn kind(&self) -> Kind {
        self.value.kind()
    }

    /// The lane it travels on.
    pub fn lane(&self) -> LaneKey {
        let endpoint = EndpointName::try_new(self.kind().endpoint());
        LaneKey {
            channel: self.ota.clone(),
            account: self.account.clone(),
            endpoint: endpoint.unwrap_or_else(|_| unreachable!("the endpoints of kinds are names")),
        }
    }
}
