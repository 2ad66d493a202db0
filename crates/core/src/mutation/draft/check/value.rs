//! The checks of the value: the fields that belong to a kind, and those that do not.

use super::{Check, Field, Raw};
use crate::mutation::money::{Amount, Currency};
use crate::mutation::{Inventory, Kind, Restriction, Value};

const RATE: [Field; 3] = [Field::Amount, Field::Currency, Field::Inventory];

const RESTRICTION: [Field; 5] =
    [Field::MinStay, Field::MaxStay, Field::ClosedToArrival, Field::ClosedToDeparture, Field::StopSell];

const NOT_AVAILABILITY: [Field; 7] = [
    Field::Amount,
    Field::Currency,
    Field::MinStay,
    Field::MaxStay,
    Field::ClosedToArrival,
    Field::ClosedToDeparture,
    Field::StopSell,
];

impl Check<'_> {
    fn amount(&mut self) -> Option<Amount> {
        let raw = self.get(Field::Amount)?;
        let text = if let Raw::Number(digits) = raw { Some(*digits) } else { raw.as_text() };
        let Some(text) = text else {
            self.fault(
                Field::Amount,
                format_args!("must be a decimal, as text or number, not {}", raw.shape()),
            );
            return None;
        };
        Amount::try_new(text).map_err(|rule| self.fault(Field::Amount, rule)).ok()
    }

    fn money(&mut self) -> (Option<Amount>, Option<Currency>) {
        let amount = self.amount();
        let currency = self.parsed(Field::Currency, Currency::try_new);
        if let (Some(amount), Some(currency)) = (amount, currency)
            && let Err(rule) = amount.check_precision(currency)
        {
            self.fault(Field::Amount, rule);
        }
        (amount, currency)
    }

    fn restriction(&mut self) -> Restriction {
        let restriction = Restriction {
            min_stay: self.small(Field::MinStay, 1, 999),
            max_stay: self.small(Field::MaxStay, 1, 999),
            closed_to_arrival: self.flag(Field::ClosedToArrival),
            closed_to_departure: self.flag(Field::ClosedToDeparture),
            stop_sell: self.flag(Field::StopSell),
        };
        if let (Some(least), Some(most)) = (restriction.min_stay, restriction.max_stay)
            && most < least
        {
            self.fault(Field::MaxStay, format_args!("must be at least min_stay, which is {least}"));
        }
        restriction
    }

    /// The value, from all its fields; those of other kinds are faults.
    pub(super) fn value(&mut self, kind: Option<Kind>) -> Option<Value> {
        // All of them are checked whatever the kind, so that one run shows what is wrong.
        let (amount, currency) = self.money();
        let inventory = self.small(Field::Inventory, 0, 999).and_then(Inventory::try_new);
        let restriction = self.restriction();
        let kind = kind?;
        let (own, foreign): (&[Field], &[Field]) = match kind {
            Kind::Rate => (&RATE, &RESTRICTION),
            Kind::Availability => (&[Field::Inventory], &NOT_AVAILABILITY),
            Kind::Restriction => (&[], &RATE),
        };
        for field in own {
            self.require(*field, &format!("is missing: kind `{kind}` sets it"));
        }
        for field in foreign {
            if self.get(*field).is_some() {
                self.fault(*field, format_args!("does not belong to kind `{kind}`"));
            }
        }
        match kind {
            Kind::Rate => Some(Value::Rate { amount: amount?, currency: currency?, inventory: inventory? }),
            Kind::Availability => Some(Value::Availability { inventory: inventory? }),
            Kind::Restriction => {
                if RESTRICTION.iter().all(|field| self.get(*field).is_none()) {
                    let rule = "needs at least one of min_stay, max_stay, closed_to_arrival, \
                                closed_to_departure, stop_sell";
                    self.fault(Field::Kind, rule);
                }
                Some(Value::Restriction(restriction))
            }
        }
    }
}
