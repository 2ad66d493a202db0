//! Idempotency keys, and the hash that tells whether two mutations say the same.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::mutation::money::Amount;
use crate::mutation::{Mutation, Value};
use crate::name::{BatchName, RatePlanCode};

/// How a channel's idempotency keys are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recipe {
    /// Over the ledger's id, the whole content and the cell's revision.
    #[default]
    Revision,
    /// The recipe of channels that hash the price's content alone.
    Content,
}

/// The idempotency key of a mutation: 64 hex digits, the same for every attempt that says the same.
///
/// [`Recipe::Content`] hashes `property_id|ota|rate_plan_code|room_type_code|stay_date|amount|currency`,
/// the amount with the digits it was given with. A kind without an amount puts its own name there and
/// its value in place of the currency (`availability|4`, `restriction|min_stay=2,stop_sell=true`), and
/// a missing plan is empty: no two kinds share a key, as no amount is a word.
///
/// [`Recipe::Revision`] hashes the ledger's id, the cell, the correlation id, the value (the amount by
/// its digits, as they are sent) and the revision, each with its length, so that no two contents run
/// into the same bytes. A store that rewrites a rate's inventory makes the key anew: a channel that
/// remembers the former key would otherwise drop the new inventory.
pub fn key(recipe: Recipe, ledger_id: &str, mutation: &Mutation, revision: u64) -> String {
    let digest = match recipe {
        Recipe::Revision => {
            let mut hash = Fields::new("key");
            hash.text(ledger_id);
            hash.text(mutation.correlation_id.as_str());
            hash.cell(mutation);
            hash.value(&mutation.value, Amount::to_string);
            hash.text(&revision.to_string());
            hash.finish()
        }
        Recipe::Content => {
            let (amount, currency) = match &mutation.value {
                Value::Rate { amount, currency, .. } => (amount.to_string(), currency.to_string()),
                Value::Availability { inventory } => {
                    (mutation.kind().to_string(), inventory.get().to_string())
                }
                Value::Restriction(_) => (mutation.kind().to_string(), set_fields(&mutation.value)),
            };
            let plan = mutation.rate_plan_code.as_ref().map_or("", RatePlanCode::as_str);
            let text = format!(
                "{}|{}|{plan}|{}|{}|{amount}|{currency}",
                mutation.property_id, mutation.ota, mutation.room_type_code, mutation.stay_date,
            );
            Sha256::digest(text.as_bytes()).into()
        }
    };
    hex(&digest)
}

/// The hash of everything a producer said about a mutation, but for its correlation id.
///
/// Two mutations of one correlation id are the same if their hashes are equal. Amounts count by value
/// (`100` is `100.00`); the account, the priority, `time_zone`, `expires_at`, `sequence` and `batch`
/// count too, as a producer who changes one of them under a used id would wrongly believe it in force.
/// Taken at acceptance, before any priority is inherited or inventory rewritten.
pub fn content_hash(mutation: &Mutation) -> [u8; 32] {
    let mut hash = Fields::new("content");
    hash.cell(mutation);
    hash.value(&mutation.value, |amount| amount.decimal().normalize().to_string());
    hash.text(&mutation.priority.to_string());
    hash.option(mutation.time_zone.as_deref());
    hash.option(mutation.expires_at.map(|at| at.as_micros().to_string()).as_deref());
    hash.option(mutation.sequence.map(|sequence| sequence.to_string()).as_deref());
    hash.option(mutation.batch.as_ref().map(BatchName::as_str));
    hash.finish()
}

/// Texts hashed so that their borders count.
struct Fields(Sha256);

impl Fields {
    fn new(purpose: &str) -> Self {
        let mut fields = Self(Sha256::new());
        fields.text(purpose);
        fields
    }

    fn text(&mut self, text: &str) {
        self.0.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    fn option(&mut self, text: Option<&str>) {
        self.text(if text.is_some() { "some" } else { "none" });
        self.text(text.unwrap_or_default());
    }

    fn cell(&mut self, mutation: &Mutation) {
        self.text(mutation.ota.as_str());
        self.text(mutation.account.as_str());
        self.text(mutation.kind().as_str());
        self.text(mutation.property_id.as_str());
        self.text(mutation.room_type_code.as_str());
        self.option(mutation.rate_plan_code.as_ref().map(RatePlanCode::as_str));
        self.text(&mutation.stay_date.to_string());
    }

    fn value(&mut self, value: &Value, digits: impl Fn(&Amount) -> String) {
        match value {
            Value::Rate { amount, currency, inventory } => {
                self.text(&digits(amount));
                self.text(currency.as_str());
                self.text(&inventory.get().to_string());
            }
            Value::Availability { inventory } => self.text(&inventory.get().to_string()),
            Value::Restriction(_) => self.text(&set_fields(value)),
        }
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The fields that a restriction sets, in a fixed order; empty for the other kinds.
fn set_fields(value: &Value) -> String {
    let Value::Restriction(restriction) = value else { return String::new() };
    let fields = [
        ("min_stay", restriction.min_stay.map(|nights| nights.to_string())),
        ("max_stay", restriction.max_stay.map(|nights| nights.to_string())),
        ("closed_to_arrival", restriction.closed_to_arrival.map(|closed| closed.to_string())),
        ("closed_to_departure", restriction.closed_to_departure.map(|closed| closed.to_string())),
        ("stop_sell", restriction.stop_sell.map(|stopped| stopped.to_string())),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
    set.collect::<Vec<_>>().join(",")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
