//! The fields a producer may write.

use super::raw::Raw;

macro_rules! fields {
    ($($variant:ident $name:ident,)*) => {
        /// A field of a mutation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Field {
            $(#[doc = concat!("`", stringify!($name), "`.")] $variant,)*
        }

        impl Field {
            /// Every field.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)* }
            }

            /// The field of this name.
            pub fn find(name: &str) -> Option<Self> {
                match name { $(stringify!($name) => Some(Self::$variant),)* _ => None }
            }
        }

        /// What was written, one slot per field.
        #[derive(Debug, Default)]
        pub(super) struct Slots<'a> {
            $($name: Option<Raw<'a>>,)*
        }

        impl<'a> Slots<'a> {
            pub(super) const fn get(&self, field: Field) -> Option<&Raw<'a>> {
                match field { $(Field::$variant => self.$name.as_ref(),)* }
            }

            /// Fills a slot; whether it was empty.
            pub(super) fn fill(&mut self, field: Field, raw: Raw<'a>) -> bool {
                match field { $(Field::$variant => self.$name.replace(raw).is_none(),)* }
            }
        }
    };
}

fields! {
    PropertyId property_id,
    RoomTypeCode room_type_code,
    RatePlanCode rate_plan_code,
    Ota ota,
    StayDate stay_date,
    Kind kind,
    Amount amount,
    Currency currency,
    Inventory inventory,
    MinStay min_stay,
    MaxStay max_stay,
    ClosedToArrival closed_to_arrival,
    ClosedToDeparture closed_to_departure,
    StopSell stop_sell,
    CorrelationId correlation_id,
    Priority priority,
    Account account,
    TimeZone time_zone,
    ExpiresAt expires_at,
    Sequence sequence,
    Batch batch,
}

impl Field {
    /// The known name nearest to one that is not known, if any is near enough to be meant.
    pub fn nearest(name: &str) -> Option<Self> {
        if name.len() > 64 {
            return None;
        }
        let near = |field: &Self| {
            let most = field.as_str().len().max(name.len()) / 3;
            let distance = edits(&name.to_ascii_lowercase().replace(['-', ' '], "_"), field.as_str());
            (distance <= most).then_some((distance, *field))
        };
        Self::ALL.iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, field)| field)
    }
}

/// The rule that an unknown field breaks.
pub fn unknown_rule(name: &str) -> String {
    match Field::nearest(name) {
        Some(meant) => format!("is not a field of a mutation: is `{}` meant?", meant.as_str()),
        None => "is not a field of a mutation".to_owned(),
    }
}

/// How many bytes must be put in, taken out or changed to make `to` of `from`.
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, a) in from.bytes().enumerate() {
        let mut diagonal = done;
        let mut left = done + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(to.bytes()) {
            let changed = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = changed.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = done + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_is_answered_with_the_one_meant() {
        assert_eq!(Field::nearest("propertyId"), Some(Field::PropertyId));
        assert_eq!(Field::nearest("stay-date"), Some(Field::StayDate));
        assert_eq!(Field::nearest("ammount"), Some(Field::Amount));
        assert_eq!(Field::nearest("hotel"), None);
        assert_eq!(Field::nearest(""), None);
    }

    #[test]
    fn every_field_is_found_by_its_name() {
        for field in Field::ALL {
            assert_eq!(Field::find(field.as_str()), Some(*field));
        }
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)]
        {
            assert_eq!(edits(from, to), count, "{from} {to}");
        }
    }
}
