use std::collections::BTreeSet;

use jiff::civil::date;

use super::*;
use crate::mutation::{Inventory, Priority, Restriction};
use crate::name::{
    AccountName, BatchName, ChannelName, CorrelationId, PropertyId, RatePlanCode, RoomTypeCode,
};
use crate::time::Timestamp;

fn rate(amount: &str, inventory: u16) -> Mutation {
    Mutation {
        correlation_id: CorrelationId::try_new("c1").unwrap(),
        ota: ChannelName::try_new("booking_com").unwrap(),
        account: AccountName::default(),
        property_id: PropertyId::try_new("prop_0000002a").unwrap(),
        room_type_code: RoomTypeCode::try_new("DBL").unwrap(),
        rate_plan_code: Some(RatePlanCode::try_new("BAR").unwrap()),
        stay_date: date(2026, 9, 20),
        value: Value::Rate {
            amount: amount.parse().unwrap(),
            currency: "EUR".parse().unwrap(),
            inventory: Inventory::try_new(inventory).unwrap(),
        },
        priority: Priority::default(),
        time_zone: None,
        expires_at: None,
        sequence: None,
        batch: None,
    }
}

fn of(value: Value) -> Mutation {
    Mutation { value, ..rate("1", 1) }
}

#[test]
fn the_content_recipe_is_the_documented_one_to_the_letter() {
    let text = "prop_0000002a|booking_com|BAR|DBL|2026-09-20|129.90|EUR";
    let expected = hex(&Sha256::digest(text.as_bytes()));
    assert_eq!(key(Recipe::Content, "ledger", &rate("129.90", 4), 7), expected);
    assert_eq!(key(Recipe::Content, "other", &rate("129.90", 9), 8), expected, "nothing else counts");
    assert_ne!(key(Recipe::Content, "ledger", &rate("129.9", 4), 7), expected, "as given");
}

#[test]
fn a_key_is_64_hex_digits_and_does_not_change_between_versions() {
    let made = key(Recipe::Revision, "ledger", &rate("129.90", 4), 7);
    assert_eq!(made.len(), 64);
    assert!(made.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()));
    assert_eq!(made, key(Recipe::Revision, "ledger", &rate("129.90", 4), 7));
}

#[test]
fn no_two_kinds_or_values_share_a_key() {
    let inventory = Inventory::try_new(1).unwrap();
    let none = Restriction::default();
    let values = [
        rate("1", 1),
        of(Value::Availability { inventory }),
        of(Value::Restriction(Restriction { min_stay: Some(1), ..none })),
        of(Value::Restriction(Restriction { max_stay: Some(1), ..none })),
        of(Value::Restriction(Restriction { min_stay: Some(1), max_stay: Some(1), ..none })),
        of(Value::Restriction(Restriction { stop_sell: Some(true), ..none })),
        of(Value::Restriction(Restriction { stop_sell: Some(false), ..none })),
        of(Value::Restriction(Restriction { closed_to_arrival: Some(true), ..none })),
        of(Value::Restriction(Restriction { closed_to_departure: Some(true), ..none })),
        Mutation { rate_plan_code: None, ..of(Value::Availability { inventory }) },
    ];
    for recipe in [Recipe::Content, Recipe::Revision] {
        let keys: BTreeSet<String> =
            values.iter().map(|mutation| key(recipe, "ledger", mutation, 1)).collect();
        assert_eq!(keys.len(), values.len(), "{recipe:?}");
    }
}

#[test]
fn a_price_that_comes_back_and_a_changed_stock_get_keys_of_their_own() {
    let made =
        |ledger: &str, mutation: &Mutation, revision| key(Recipe::Revision, ledger, mutation, revision);
    let keys = BTreeSet::from([
        made("ledger", &rate("100", 4), 1),
        made("ledger", &rate("120", 4), 2),
        made("ledger", &rate("100", 4), 3),
        made("ledger", &rate("100", 5), 1),
        made("another ledger", &rate("100", 4), 1),
    ]);
    assert_eq!(keys.len(), 5);
}

#[test]
fn urgency_inherited_later_changes_no_key() {
    let urgent = Mutation { priority: Priority::MOST_URGENT, ..rate("100", 4) };
    assert_eq!(
        key(Recipe::Revision, "ledger", &urgent, 1),
        key(Recipe::Revision, "ledger", &rate("100", 4), 1)
    );
}

#[test]
fn the_same_content_is_told_by_value_and_every_field_counts() {
    assert_eq!(content_hash(&rate("100", 4)), content_hash(&rate("100.00", 4)));
    let base = rate("100", 4);
    let others = [
        base.clone(),
        rate("100.01", 4),
        rate("100", 5),
        of(Value::Availability { inventory: Inventory::try_new(4).unwrap() }),
        Mutation { ota: ChannelName::try_new("expedia").unwrap(), ..base.clone() },
        Mutation { account: AccountName::try_new("second").unwrap(), ..base.clone() },
        Mutation { property_id: PropertyId::try_new("prop_0000002b").unwrap(), ..base.clone() },
        Mutation { room_type_code: RoomTypeCode::try_new("SGL").unwrap(), ..base.clone() },
        Mutation { rate_plan_code: Some(RatePlanCode::try_new("NRF").unwrap()), ..base.clone() },
        Mutation { rate_plan_code: None, ..base.clone() },
        Mutation { stay_date: date(2026, 9, 21), ..base.clone() },
        Mutation { priority: Priority::MOST_URGENT, ..base.clone() },
        Mutation { time_zone: Some("Europe/Berlin".to_owned()), ..base.clone() },
        Mutation { expires_at: Some(Timestamp::from_micros(1)), ..base.clone() },
        Mutation { sequence: Some(1), ..base.clone() },
        Mutation { batch: Some(BatchName::try_new("1").unwrap()), ..base.clone() },
    ];
    let hashes: BTreeSet<[u8; 32]> = others.iter().map(content_hash).collect();
    assert_eq!(hashes.len(), others.len());
    let renamed = Mutation { correlation_id: CorrelationId::try_new("c2").unwrap(), ..base.clone() };
    assert_eq!(content_hash(&renamed), content_hash(&base));
}
