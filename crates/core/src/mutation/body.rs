//! Mutations on the wire, and values in and out of a store.

use jiff::civil::Date;
use serde::{Deserialize, Serialize, Serializer};

use super::money::{Amount, Currency};
use super::{Inventory, Kind, Mutation, Restriction, Value};
use crate::name::{ChannelName, CorrelationId, PropertyId, RatePlanCode, RoomTypeCode};

#[derive(Serialize)]
struct Body<'m> {
    property_id: &'m PropertyId,
    room_type_code: &'m RoomTypeCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_plan_code: Option<&'m RatePlanCode>,
    ota: &'m ChannelName,
    #[serde(serialize_with = "iso_date")]
    stay_date: Date,
    correlation_id: &'m CorrelationId,
    #[serde(flatten)]
    value: &'m Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn iso_date<S: Serializer>(date: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(date)
}

impl Mutation {
    /// The JSON body of its call: who and when, and the kind's fields. The amount is a string, with the
    /// digits it was given with.
    pub fn body(&self) -> Vec<u8> {
        let body = Body {
            property_id: &self.property_id,
            room_type_code: &self.room_type_code,
            rate_plan_code: self.rate_plan_code.as_ref(),
            ota: &self.ota,
            stay_date: self.stay_date,
            correlation_id: &self.correlation_id,
            value: &self.value,
        };
        serde_json::to_vec(&body).unwrap_or_else(|_| unreachable!("texts and numbers always are JSON"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRate {
    amount: Amount,
    currency: Currency,
    inventory: Inventory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAvailability {
    inventory: Inventory,
}

/// A text in a store that is not the value of its kind.
#[derive(Debug, thiserror::Error)]
#[error("the stored value of a mutation of kind {kind} cannot be read")]
pub struct StoredValueError {
    kind: Kind,
    #[source]
    source: serde_json::Error,
}

impl Value {
    /// Reads back what serializing a value of this kind wrote.
    ///
    /// # Errors
    /// If the text is anything else.
    pub fn from_json(kind: Kind, json: &str) -> Result<Self, StoredValueError> {
        let value = match kind {
            Kind::Rate => serde_json::from_str::<StoredRate>(json).map(|stored| Self::Rate {
                amount: stored.amount,
                currency: stored.currency,
                inventory: stored.inventory,
            }),
            Kind::Availability => serde_json::from_str::<StoredAvailability>(json)
                .map(|stored| Self::Availability { inventory: stored.inventory }),
            Kind::Restriction => serde_json::from_str::<Restriction>(json).map(Self::Restriction),
        };
        value.map_err(|source| StoredValueError { kind, source })
    }

    /// The JSON that [`from_json`](Self::from_json) reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| unreachable!("texts and numbers always are JSON"))
    }

    /// The same with another stock; unchanged if it carries none.
    #[must_use]
    pub fn with_inventory(self, inventory: Inventory) -> Self {
        match self {
            Self::Rate { amount, currency, .. } => Self::Rate { amount, currency, inventory },
            Self::Availability { .. } => Self::Availability { inventory },
            Self::Restriction(rules) => Self::Restriction(rules),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock(rooms: u16) -> Inventory {
        Inventory::try_new(rooms).unwrap()
    }

    fn values() -> [Value; 3] {
        let rules = Restriction { min_stay: Some(2), stop_sell: Some(false), ..Restriction::default() };
        [
            Value::Rate {
                amount: "129.90".parse().unwrap(),
                currency: "EUR".parse().unwrap(),
                inventory: stock(3),
            },
            Value::Availability { inventory: stock(0) },
            Value::Restriction(rules),
        ]
    }

    #[test]
    fn a_stored_value_reads_back_digit_by_digit() {
        let [rate, availability, restriction] = values();
        assert_eq!(rate.to_json(), r#"{"amount":"129.90","currency":"EUR","inventory":3}"#);
        assert_eq!(availability.to_json(), r#"{"inventory":0}"#);
        assert_eq!(restriction.to_json(), r#"{"min_stay":2,"stop_sell":false}"#);
        for value in values() {
            let back = Value::from_json(value.kind(), &value.to_json()).unwrap();
            assert_eq!(back, value);
            assert_eq!(back.to_json(), value.to_json());
        }
    }

    #[test]
    fn a_stored_value_of_another_kind_is_refused() {
        let [rate, availability, _] = values();
        assert!(Value::from_json(Kind::Availability, &rate.to_json()).is_err());
        assert!(Value::from_json(Kind::Rate, &availability.to_json()).is_err());
        assert!(Value::from_json(Kind::Rate, r#"{"amount":129.9,"currency":"EUR","inventory":3}"#).is_err());
        assert!(Value::from_json(Kind::Availability, r#"{"inventory":1000}"#).is_err());
    }

    #[test]
    fn a_new_stock_changes_the_stock_alone() {
        let [rate, availability, restriction] = values();
        assert_eq!(
            rate.with_inventory(stock(7)).to_json(),
            r#"{"amount":"129.90","currency":"EUR","inventory":7}"#
        );
        assert_eq!(availability.with_inventory(stock(7)).inventory(), Some(stock(7)));
        assert_eq!(restriction.clone().with_inventory(stock(7)), restriction);
    }
}
