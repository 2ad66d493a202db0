//! A mutation's value as JSON, and its digests.

use ota_governor_core::mutation::money::{Amount, Currency};
use ota_governor_core::mutation::{Inventory, Kind, Restriction, Value};
use serde::Deserialize;

use super::fault::{Outcome, damaged};

#[derive(Deserialize)]
struct Rate<'a> {
    #[serde(borrow)]
    amount: &'a str,
    #[serde(borrow)]
    currency: &'a str,
    inventory: Inventory,
}

#[derive(Deserialize)]
struct Availability {
    inventory: Inventory,
}

/// The value's fields as a JSON object.
pub(super) fn write(value: &Value) -> Outcome<String> {
    serde_json::to_string(value).map_err(|_| damaged("value"))
}

/// The value of a kind from its fields.
pub(super) fn read(kind: Kind, fields: &str) -> Outcome<Value> {
    let fault = |_| damaged("value");
    Ok(match kind {
        Kind::Rate => {
            let Rate { amount, currency, inventory } = serde_json::from_str(fields).map_err(fault)?;
            Value::Rate {
                amount: amount.parse::<Amount>().map_err(|_| damaged("amount"))?,
                currency: currency.parse::<Currency>().map_err(|_| damaged("currency"))?,
                inventory,
            }
        }
        Kind::Availability => {
            let Availability { inventory } = serde_json::from_str(fields).map_err(fault)?;
            Value::Availability { inventory }
        }
        Kind::Restriction => Value::Restriction(serde_json::from_str::<Restriction>(fields).map_err(fault)?),
    })
}
