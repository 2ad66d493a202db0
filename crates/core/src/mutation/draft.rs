//! What a producer wrote, before it is checked, and the checks that make a [`Mutation`] of it.
//!
//! A [`Draft`] holds the fields of one JSON object or one row of a table as they were written. Checking
//! it reports *every* fault at once, each with field, value and rule. Nothing is repaired on the way:
//! no rounding, no trimming, no guessing. `null` counts as absent.
//!
//! ```
//! use ota_governor_core::mutation::draft::{Context, PROPERTY_ID_PATTERN, Rules};
//! use ota_governor_core::mutation::{Kind, Mutation};
//! use ota_governor_core::name::{AccountName, ChannelName};
//! use ota_governor_core::time::Timestamp;
//!
//! let pattern = PROPERTY_ID_PATTERN.parse().unwrap();
//! let rules = Rules::new(pattern, [AccountName::default()], [Kind::Rate]);
//! let channels = Context::new([(ChannelName::try_new("agoda").unwrap(), rules)]);
//!
//! let line = br#"{"ota": "agoda", "property_id": "prop_0a1b2c3d", "room_type_code": "DLX",
//!     "rate_plan_code": "BAR", "stay_date": "2026-10-01", "amount": 0, "currency": "eur", "inventory": 3}"#;
//! let now = Timestamp::from_micros(1_789_898_400_000_000);
//! let faults = Mutation::from_json(line, &channels, now, &mut rand::rng()).unwrap_err();
//! assert_eq!(
//!     faults.to_string(),
//!     r#"amount: "0" must be above zero; currency: "eur" must be three letters from A to Z"#
//! );
//! ```

mod check;
mod context;
mod field;
mod raw;

#[cfg(test)]
mod tests;

pub use context::{Context, PROPERTY_ID_PATTERN, Rules};
pub use field::{Field, unknown_rule};

use jiff::tz::TimeZone;
use rand::Rng;

use super::fault::{Fault, Faults};
use super::{Mutation, date};
use crate::name::CorrelationId;
use crate::time::Timestamp;
use field::Slots;
use raw::Raw;

/// The fields of one mutation as they were written, with the faults found in reading them.
#[derive(Debug, Default)]
pub struct Draft<'a> {
    slots: Slots<'a>,
    faults: Faults,
}

impl<'a> Draft<'a> {
    /// Reads one JSON object. Unknown and repeated fields are faults that the check will report with
    /// the others.
    ///
    /// # Errors
    /// If the text is not one JSON object in UTF-8; then nothing else can be said of it.
    pub fn from_json(json: &'a [u8]) -> Result<Self, Faults> {
        let text = std::str::from_utf8(json).map_err(|error| {
            let rule = format!("is not UTF-8 at byte {}", error.valid_up_to().saturating_add(1));
            Fault::new("json", Some(&String::from_utf8_lossy(json.get(..256).unwrap_or(json))), rule)
        })?;
        let mut draft = Self::default();
        draft.read(text).map_err(|error| {
            let message = error.to_string();
            let cause = message.split(" at line ").next().unwrap_or_default();
            let rule = format!("is not one JSON object: {cause} at byte {}", error.column());
            Fault::new("json", Some(text), rule)
        })?;
        Ok(draft)
    }

    fn read(&mut self, text: &'a str) -> Result<(), serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        serde::de::DeserializeSeed::deserialize(raw::Object(self), &mut reader)?;
        reader.end()
    }

    /// Takes the named cells of one row of a table. An empty cell is an absent field; numbers and
    /// booleans (`true`, `false`) are read from their text.
    pub fn from_fields(cells: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut draft = Self::default();
        for (name, cell) in cells {
            match Field::find(name) {
                Some(_) if cell.is_empty() => {}
                Some(field) => draft.put(field, Raw::Cell(cell)),
                None => draft.faults.push(Fault::new(name, Some(cell), unknown_rule(name))),
            }
        }
        draft
    }

    fn put(&mut self, field: Field, raw: Raw<'a>) {
        if self.slots.get(field).is_some() {
            self.faults.push(Fault::new(field.as_str(), Some(raw.shown()), "stands twice in one mutation"));
        } else {
            self.slots.fill(field, raw);
        }
    }

    /// Checks everything. `now` is wall time; `rng` names mutations that have no `correlation_id`.
    ///
    /// # Errors
    /// With every fault there is.
    pub fn check(self, context: &Context, now: Timestamp, rng: &mut impl Rng) -> Result<Mutation, Faults> {
        check::check(&self.slots, self.faults, context, now, rng)
    }
}

impl Mutation {
    /// Reads and checks one JSON object.
    ///
    /// # Errors
    /// With every fault there is.
    pub fn from_json(
        json: &[u8],
        context: &Context,
        now: Timestamp,
        rng: &mut impl Rng,
    ) -> Result<Self, Faults> {
        Draft::from_json(json)?.check(context, now, rng)
    }

    /// Reads and checks the named cells of one row of a table, as [`Draft::from_fields`] takes them.
    ///
    /// # Errors
    /// With every fault there is.
    pub fn from_fields<'a>(
        cells: impl IntoIterator<Item = (&'a str, &'a str)>,
        context: &Context,
        now: Timestamp,
        rng: &mut impl Rng,
    ) -> Result<Self, Faults> {
        Draft::from_fields(cells).check(context, now, rng)
    }
}

/// When a mutation stops being worth sending: the earlier of `expires_at` and the end of its stay date
/// at the property. The mutation's own time zone comes before `zone`, the channel's; with neither, the
/// stay date ends when it has ended everywhere on earth.
pub fn expires(mutation: &Mutation, zone: Option<&str>) -> Option<Timestamp> {
    let name = mutation.time_zone.as_deref().or(zone);
    expires_in(mutation, name.and_then(|name| date::zone(name).ok()).as_ref())
}

fn expires_in(mutation: &Mutation, zone: Option<&TimeZone>) -> Option<Timestamp> {
    let end = date::end(mutation.stay_date, zone);
    match (mutation.expires_at, end) {
        (Some(at), Some(end)) => Some(at.min(end)),
        (at, end) => at.or(end),
    }
}

/// A random (version 4) UUID as 32 hex digits.
fn random_id(rng: &mut impl Rng) -> Option<CorrelationId> {
    let mut bits = (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64());
    bits = (bits & !(0xf << 76)) | (0x4 << 76);
    bits = (bits & !(0x3 << 62)) | (0x2 << 62);
    CorrelationId::try_new(&format!("{bits:032x}")).ok()
}
