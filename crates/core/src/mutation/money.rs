//! Money: exact decimals with the text they were given in, and ISO 4217 currencies.
//!
//! A price is read digit by digit into a decimal and never passes through binary floating point;
//! too many digits are refused, never rounded.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most digits of a price, zeros at either end not counted.
const MAX_DIGITS: usize = 10;

/// Most digits written after the point; together with [`MAX_DIGITS`] this is what the decimal holds exactly.
const MAX_WRITTEN_FRACTION: usize = 18;

/// A price: a decimal above zero, kept with the digits it was given with. Equal by value: `100` = `100.00`.
///
/// ```
/// use ota_governor_core::mutation::money::Amount;
///
/// let price: Amount = "129.90".parse().unwrap();
/// assert_eq!(price.to_string(), "129.90");
/// assert_eq!(price, "129.9".parse().unwrap());
/// assert!("1e2".parse::<Amount>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(Decimal);

/// Why a text is not a price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// It is not written as a plain decimal.
    #[error(
        "must be a plain decimal such as 129.90: no sign, blank, exponent, separator or needless leading zero"
    )]
    Shape,
    /// It is zero or less.
    #[error("must be above zero")]
    NotAboveZero,
    /// It has more digits than a price may have.
    #[error("must have at most 10 digits, trailing zeros after the point not counted")]
    TooManyDigits,
    /// It is finer than the currency's minor unit.
    #[error("{}", fraction_rule(*.currency, *.minor_unit))]
    TooFine {
        /// The currency.
        currency: Currency,
        /// How many digits after the point it has.
        minor_unit: u32,
    },
}

fn fraction_rule(currency: Currency, minor_unit: u32) -> String {
    match minor_unit {
        0 => format!("must have no digits after the point in {currency}"),
        1 => format!("must have at most 1 digit after the point in {currency}"),
        more => format!("must have at most {more} digits after the point in {currency}"),
    }
}

impl Amount {
    /// Reads a plain decimal above zero with at most 10 digits. Zeros at the end of the fraction are
    /// not counted (up to 18 digits may be written there) and are kept.
    ///
    /// # Errors
    /// On any other text, exponents, signs and needless leading zeros included.
    pub fn try_new(text: &str) -> Result<Self, AmountError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((_, "")) => return Err(AmountError::Shape),
            Some(parts) => parts,
            None => (digits, ""),
        };
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || (whole.len() > 1 && whole.starts_with('0'))
            || !plain(whole)
            || !plain(fraction)
        {
            return Err(AmountError::Shape);
        }
        let significant = fraction.trim_end_matches('0');
        if negative || (whole == "0" && significant.is_empty()) {
            return Err(AmountError::NotAboveZero);
        }
        let counted = significant.len() + if whole == "0" { 0 } else { whole.len() };
        if counted > MAX_DIGITS || fraction.len() > MAX_WRITTEN_FRACTION {
            return Err(AmountError::TooManyDigits);
        }
        Decimal::from_str_exact(digits).map(Self).map_err(|_| AmountError::TooManyDigits)
    }

    /// Checks that the currency has a minor unit fine enough for this price; trailing zeros are fine.
    ///
    /// # Errors
    /// If it has not: such a price is refused, never rounded.
    pub fn check_precision(self, currency: Currency) -> Result<(), AmountError> {
        let minor_unit = currency.minor_unit();
        if self.0.normalize().scale() <= minor_unit {
            Ok(())
        } else {
            Err(AmountError::TooFine { currency, minor_unit })
        }
    }

    /// The decimal.
    pub const fn decimal(self) -> Decimal {
        self.0
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        Self::try_new(text)
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

/// From a JSON string, as it is written.
impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::try_new(&text).map_err(serde::de::Error::custom)
    }
}

/// An ISO 4217 currency code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Why a text is not a currency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurrencyError {
    /// It is not three capital letters.
    #[error("must be three letters from A to Z")]
    Shape,
    /// ISO 4217 does not know it.
    #[error("must be an ISO 4217 code")]
    Unknown,
    /// It is a metal, a fund of account, a test code or no currency at all.
    #[error("must be a currency one can pay in: this ISO 4217 code has no minor unit")]
    NoMinorUnit,
}

impl Currency {
    /// Takes an ISO 4217 code of a currency with a minor unit. Codes withdrawn lately are still taken:
    /// whether a channel does is the channel's to say.
    ///
    /// # Errors
    /// On any other text.
    pub fn try_new(text: &str) -> Result<Self, CurrencyError> {
        let code: [u8; 3] = text.as_bytes().try_into().map_err(|_| CurrencyError::Shape)?;
        if !code.iter().all(u8::is_ascii_uppercase) {
            return Err(CurrencyError::Shape);
        }
        lookup(text).map(|_| Self(code))
    }

    /// How many digits after the point its minor unit has: EUR 2, JPY 0, KWD 3.
    pub fn minor_unit(self) -> u32 {
        lookup(self.as_str()).unwrap_or(0)
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }
}

/// The minor unit of a code.
fn lookup(code: &str) -> Result<u32, CurrencyError> {
    if code == "ANG" {
        // Withdrawn in 2025 and gone from the table, like HRK and BGN that are still in it: hotels of
        // Curaçao and Sint Maarten have price lists in it.
        return Ok(2);
    }
    let known = iso_currency::Currency::from_code(code).ok_or(CurrencyError::Unknown)?;
    known.exponent().map(u32::from).ok_or(CurrencyError::NoMinorUnit)
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        Self::try_new(text)
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

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::try_new(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    fn currency(text: &str) -> Currency {
        text.parse().unwrap()
    }

    #[test]
    fn a_currency_without_a_minor_unit_gets_no_digits_forced_on_it() {
        assert_eq!(amount("705").to_string(), "705");
        assert_eq!(amount("705").check_precision(currency("JPY")), Ok(()));
        assert_eq!(amount("705.00").check_precision(currency("JPY")), Ok(()));
        assert_eq!(
            amount("705.5").check_precision(currency("JPY")).unwrap_err().to_string(),
            "must have no digits after the point in JPY"
        );
    }

    #[test]
    fn dinars_have_three_digits_and_a_fourth_is_refused_not_rounded() {
        for code in ["KWD", "JOD", "BHD", "TND", "OMR", "IQD", "LYD"] {
            assert_eq!(amount("12.345").check_precision(currency(code)), Ok(()), "{code}");
            assert_eq!(
                amount("12.3456").check_precision(currency(code)).unwrap_err().to_string(),
                format!("must have at most 3 digits after the point in {code}")
            );
        }
        assert_eq!(amount("12.345").to_string(), "12.345");
    }

    #[test]
    fn the_minor_unit_of_each_currency_is_that_of_iso_4217() {
        for (code, digits) in
            [("EUR", 2), ("USD", 2), ("JPY", 0), ("KRW", 0), ("ISK", 0), ("KWD", 3), ("CLF", 4), ("ANG", 2)]
        {
            assert_eq!(currency(code).minor_unit(), digits, "{code}");
        }
    }

    #[test]
    fn a_code_that_is_no_currency_is_refused() {
        for shape in ["", "eur", "EU", "EURO", "E1R", "ÄR", " EUR"] {
            assert_eq!(Currency::try_new(shape), Err(CurrencyError::Shape), "{shape}");
        }
        for unknown in ["AAA", "DEM", "ZZZ"] {
            assert_eq!(Currency::try_new(unknown), Err(CurrencyError::Unknown), "{unknown}");
        }
        for special in ["XXX", "XAU", "XAG", "XTS", "XDR"] {
            assert_eq!(Currency::try_new(special), Err(CurrencyError::NoMinorUnit), "{special}");
        }
    }

    #[test]
    fn only_plain_decimals_are_prices() {
        for bad in [
            "", ".", "5.", ".5", "1e2", "1E2", "+1", " 1", "1 ", "1,000", "0x10", "NaN", "inf", "1.2.3",
            "007", "00.5", "１２", "1_000", "--1", "-",
        ] {
            assert_eq!(Amount::try_new(bad), Err(AmountError::Shape), "{bad}");
        }
        for low in ["0", "0.00", "-1", "-0", "-129.90"] {
            assert_eq!(Amount::try_new(low), Err(AmountError::NotAboveZero), "{low}");
        }
        for long in ["12345678901", "123456789.01", "0.00000000001", "1.0000000000000000000"] {
            assert_eq!(Amount::try_new(long), Err(AmountError::TooManyDigits), "{long}");
        }
        for good in ["0.01", "1234567890", "12345678.90", "1234567890.00", "0.5", "100.000000"] {
            assert_eq!(amount(good).to_string(), good);
        }
    }

    #[test]
    fn prices_are_compared_by_value() {
        assert_eq!(amount("100"), amount("100.00"));
        assert_ne!(amount("100"), amount("100.01"));
    }

    proptest! {
        #[test]
        fn every_digit_of_a_price_survives(whole in "[1-9][0-9]{0,6}", fraction in "[0-9]{1,3}") {
            let text = format!("{whole}.{fraction}");
            prop_assert_eq!(amount(&text).to_string(), text);
        }

        #[test]
        fn no_text_can_make_reading_a_price_panic(text in "\\PC{0,40}|[-+0-9.eE]{0,40}") {
            if let Ok(price) = Amount::try_new(&text) {
                prop_assert_eq!(price.to_string(), text);
            }
        }
    }
}
