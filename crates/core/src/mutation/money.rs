//! Money: exact decimals with the text they were given in, and ISO 4217 currencies.

use std::fmt;

use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

/// A price: a decimal above zero, kept with the digits it was given with. Equal by value: `100` = `100.00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(Decimal);

/// An ISO 4217 currency code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Amount {
    /// The decimal.
    pub const fn decimal(self) -> Decimal {
        self.0
    }
}

/// The digits as given, without an exponent.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON string: a price never passes through binary floating point.
impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Currency {
    /// The code.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
impl std::str::FromStr for Amount {
    type Err = rust_decimal::Error;
    fn from_str(t: &str) -> Result<Self, Self::Err> {
        Decimal::from_str_exact(t).map(Self)
    }
}
impl std::str::FromStr for Currency {
    type Err = ();
    fn from_str(t: &str) -> Result<Self, ()> {
        <[u8; 3]>::try_from(t.as_bytes()).map(Self).map_err(|_| ())
    }
}
