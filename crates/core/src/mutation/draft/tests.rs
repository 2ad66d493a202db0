use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use regex::Regex;
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::mutation::{Kind, Value, date};
use crate::name::{AccountName, ChannelName};

/// A Sunday, 10:00 UTC.
const NOW: Timestamp = Timestamp::from_micros(1_789_898_400_000_000);

fn rules(kinds: &[Kind]) -> Rules {
    let accounts = ["default", "hotel-7"].map(|name| AccountName::try_new(name).unwrap());
    Rules::new(Regex::new(context::PROPERTY_ID_PATTERN).unwrap(), accounts, kinds.iter().copied())
}

fn context() -> Context {
    let name = |slug| ChannelName::try_new(slug).unwrap();
    let own_ids = Rules::new(Regex::new("^[0-9]+$").unwrap(), [AccountName::default()], [Kind::Rate]);
    Context::new([
        (name("booking_com"), rules(Kind::ALL)),
        (name("expedia"), rules(&[Kind::Rate])),
        (name("honolulu"), rules(Kind::ALL).in_time_zone("Pacific/Honolulu").unwrap()),
        (name("agoda"), own_ids),
    ])
}

fn rate() -> Map<String, Json> {
    let Json::Object(fields) = json!({
        "property_id": "prop_0a1b2c3d", "room_type_code": "DLX", "rate_plan_code": "BAR", "ota": "booking_com",
        "stay_date": "2026-10-01", "amount": "129.90", "currency": "EUR", "inventory": 3,
    }) else {
        unreachable!()
    };
    fields
}

/// A rate with some fields changed; `null` takes a field away.
fn with(changes: &Json) -> String {
    let mut fields = rate();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    Json::Object(fields).to_string()
}

fn read_at(json: &str, now: Timestamp) -> Result<Mutation, Faults> {
    Mutation::from_json(json.as_bytes(), &context(), now, &mut StdRng::seed_from_u64(7))
}

fn read(json: &str) -> Result<Mutation, Faults> {
    read_at(json, NOW)
}

fn accepted(changes: &Json) -> Mutation {
    read(&with(changes)).unwrap()
}

fn faults(changes: &Json) -> String {
    read(&with(changes)).unwrap_err().to_string()
}

const RESTRICTION: &str = r#"{"kind":"restriction","property_id":"prop_0a1b2c3d","room_type_code":"DLX",
    "rate_plan_code":"BAR","ota":"booking_com","stay_date":"2026-10-01","#;

fn restriction(fields: &str) -> Result<Mutation, Faults> {
    read(&format!("{RESTRICTION}{fields}}}"))
}

#[test]
fn a_rate_is_the_default_kind_and_keeps_its_digits() {
    let mutation = accepted(&json!({}));
    assert_eq!(mutation.kind(), Kind::Rate);
    assert_eq!(mutation.priority.get(), 100);
    assert_eq!(mutation.account.as_str(), "default");
    assert_eq!(mutation.value.to_json(), r#"{"amount":"129.90","currency":"EUR","inventory":3}"#);
}

#[test]
fn the_body_holds_exactly_the_fields_of_the_contract() {
    let body = |mutation: Mutation| String::from_utf8(mutation.body()).unwrap();
    let optional = json!({"correlation_id": "c-1", "priority": 1, "batch": "b", "sequence": 4, "account": "hotel-7",
        "time_zone": "Europe/Berlin", "expires_at": "2026-09-30T00:00:00Z"});
    assert_eq!(
        body(accepted(&optional)),
        r#"{"property_id":"prop_0a1b2c3d","room_type_code":"DLX","rate_plan_code":"BAR","ota":"booking_com","stay_date":"2026-10-01","correlation_id":"c-1","amount":"129.90","currency":"EUR","inventory":3}"#
    );
    let stock = json!({"kind": "availability", "amount": null, "currency": null, "rate_plan_code": null,
        "correlation_id": "c-2"});
    assert_eq!(
        body(accepted(&stock)),
        r#"{"property_id":"prop_0a1b2c3d","room_type_code":"DLX","ota":"booking_com","stay_date":"2026-10-01","correlation_id":"c-2","inventory":3}"#
    );
    assert_eq!(
        body(restriction(r#""correlation_id":"c-3","min_stay":2,"stop_sell":false"#).unwrap()),
        r#"{"property_id":"prop_0a1b2c3d","room_type_code":"DLX","rate_plan_code":"BAR","ota":"booking_com","stay_date":"2026-10-01","correlation_id":"c-3","min_stay":2,"stop_sell":false}"#
    );
}

#[test]
fn every_fault_is_told_at_once() {
    let all = json!({
        "property_id": "prop_1", "room_type_code": "D", "rate_plan_code": "x".repeat(25), "ota": "booking",
        "stay_date": "2026-9-19", "amount": 0, "currency": "eur", "inventory": 1000, "correlation_id": "",
        "priority": 1001, "account": "a/b", "time_zone": "Mars/Olympus", "expires_at": "2026-09-21",
        "sequence": -1, "batch": "a\nb", "colour": "red",
    });
    let told = read(&with(&all)).unwrap_err();
    let fields: std::collections::BTreeSet<_> = told.iter().map(|fault| fault.field.as_str()).collect();
    // The property's pattern is the channel's, which is not known here.
    let mut missing: Vec<_> = all.as_object().unwrap().keys().map(String::as_str).collect();
    missing.retain(|name| !fields.contains(name));
    assert_eq!(missing, ["property_id"], "{told}");
}

#[test]
fn each_rule_is_told_with_field_value_and_rule() {
    let printable = "must be 1 to 64 printable characters";
    for (changes, told) in [
        (json!({"property_id": "prop_0A1B2C3D"}), r#"property_id: "prop_0A1B2C3D" must match ^prop_[0-9a-f]{8}$"#.to_owned()),
        (json!({"property_id": null}), "property_id: is missing".to_owned()),
        (json!({"property_id": 5}), r#"property_id: "5" must be text, not a number"#.to_owned()),
        (json!({"room_type_code": "D"}), r#"room_type_code: "D" must be 2 to 16 printable characters"#.to_owned()),
        (json!({"rate_plan_code": "B"}), r#"rate_plan_code: "B" must be 2 to 24 printable characters"#.to_owned()),
        (json!({"rate_plan_code": null}), "rate_plan_code: is missing: only `availability` may cover every rate plan".to_owned()),
        (json!({"ota": "booking"}), r#"ota: "booking" is not a configured channel: there is `agoda`, `booking_com`, `expedia`, `honolulu`"#.to_owned()),
        (json!({"ota": null}), "ota: is missing".to_owned()),
        (json!({"account": "hotel-8"}), r#"account: "hotel-8" is not a configured account of the channel: there is `default`, `hotel-7`"#.to_owned()),
        (json!({"stay_date": null}), "stay_date: is missing".to_owned()),
        (json!({"stay_date": "2026-02-30"}), r#"stay_date: "2026-02-30" must be a calendar date such as 2026-09-19"#.to_owned()),
        (json!({"amount": null}), "amount: is missing: kind `rate` sets it".to_owned()),
        (json!({"amount": [1]}), r#"amount: "[1]" must be a decimal, as text or number, not an array"#.to_owned()),
        (json!({"amount": "0.00"}), r#"amount: "0.00" must be above zero"#.to_owned()),
        (json!({"amount": "12345678901"}), r#"amount: "12345678901" must have at most 10 digits, trailing zeros after the point not counted"#.to_owned()),
        (json!({"amount": "9.999"}), r#"amount: "9.999" must have at most 2 digits after the point in EUR"#.to_owned()),
        (json!({"currency": "EURO"}), r#"currency: "EURO" must be three letters from A to Z"#.to_owned()),
        (json!({"currency": "QQQ"}), r#"currency: "QQQ" must be an ISO 4217 code"#.to_owned()),
        (json!({"currency": "XAU"}), r#"currency: "XAU" must be a currency one can pay in: this ISO 4217 code has no minor unit"#.to_owned()),
        (json!({"inventory": 1000}), r#"inventory: "1000" must be an integer from 0 to 999"#.to_owned()),
        (json!({"inventory": "3"}), r#"inventory: "3" must be an integer from 0 to 999, not text"#.to_owned()),
        (json!({"correlation_id": "x".repeat(65)}), format!("correlation_id: \"{}…\" {printable}", "x".repeat(64))),
        (json!({"correlation_id": "a\u{7}"}), format!(r#"correlation_id: "a\u{{7}}" {printable}"#)),
        (json!({"kind": "rates"}), r#"kind: "rates" must be one of `rate`, `availability`, `restriction`"#.to_owned()),
        (json!({"priority": 1001}), r#"priority: "1001" must be an integer from 0 to 1000"#.to_owned()),
        (json!({"time_zone": "CEST"}), r#"time_zone: "CEST" must be an IANA time zone such as Europe/Berlin"#.to_owned()),
        (json!({"expires_at": "2026-09-21T10:00:00"}), r#"expires_at: "2026-09-21T10:00:00" must be an RFC 3339 time with an offset, such as 2026-09-19T18:00:00+02:00"#.to_owned()),
        (json!({"expires_at": "2026-09-20T12:00:00+02:00"}), r#"expires_at: "2026-09-20T12:00:00+02:00" is past: it is 2026-09-20T10:00:00Z"#.to_owned()),
        (json!({"sequence": "4"}), r#"sequence: "4" must be an integer from 0 to 9223372036854775807, not text"#.to_owned()),
        (json!({"batch": "b".repeat(129)}), format!("batch: \"{}…\" must be 1 to 128 printable characters", "b".repeat(64))),
        (json!({"propertyId": "x"}), r#"propertyId: "x" is not a field of a mutation: is `property_id` meant?"#.to_owned()),
        (json!({"hotel": "x"}), r#"hotel: "x" is not a field of a mutation"#.to_owned()),
    ] {
        assert_eq!(faults(&changes), told, "{changes}");
    }
}

#[test]
fn lengths_are_counted_in_characters_not_bytes() {
    assert_eq!(accepted(&json!({"room_type_code": "ä".repeat(16)})).room_type_code.as_str(), "ä".repeat(16));
    assert!(read(&with(&json!({"room_type_code": "ä".repeat(17)}))).is_err());
    assert!(read(&with(&json!({"room_type_code": "ä"}))).is_err());
}

#[test]
fn an_endpoint_without_a_limit_takes_nothing_and_the_missing_limit_is_named() {
    let stock = json!({"ota": "expedia", "kind": "availability", "amount": null, "currency": null});
    assert_eq!(
        faults(&stock),
        "kind: \"availability\" cannot be sent: endpoint `availability` of channel `expedia` has no limit configured: \
         add [[channels.expedia.endpoints.availability.limits]]"
    );
}

#[test]
fn a_channel_may_have_property_ids_of_its_own() {
    assert!(read(&with(&json!({"ota": "agoda", "property_id": "4711"}))).is_ok());
    assert_eq!(faults(&json!({"ota": "agoda"})), r#"property_id: "prop_0a1b2c3d" must match ^[0-9]+$"#);
}

#[test]
fn a_number_is_read_digit_by_digit_and_never_as_a_binary_fraction() {
    for (number, kept) in [("129.90", "129.90"), ("0.1", "0.1"), ("1234567.89", "1234567.89"), ("100", "100")]
    {
        let line = with(&json!({"amount": null})).replacen('{', &format!("{{\"amount\":{number},"), 1);
        let Value::Rate { amount, .. } = read(&line).unwrap().value else { unreachable!() };
        assert_eq!(amount.to_string(), kept);
    }
    for number in ["1e2", "1E+2", "1.5e1", "-1", "12345678901", "129.9000000000000001"] {
        let line = with(&json!({"amount": null})).replacen('{', &format!("{{\"amount\":{number},"), 1);
        assert!(read(&line).is_err(), "{number}");
    }
}

#[test]
fn an_integer_is_written_as_one() {
    for inventory in ["3.0", "3e0", "-0", "-3", "0.5", "99999999999999999999999", "true", "[3]", "\"3\""] {
        let line =
            with(&json!({"inventory": null})).replacen('{', &format!("{{\"inventory\":{inventory},"), 1);
        let told = read(&line).unwrap_err();
        assert_eq!(told.iter().next().unwrap().value.as_deref(), Some(inventory.trim_matches('"')));
    }
    assert!(read(&with(&json!({"inventory": 0, "priority": 0, "sequence": i64::MAX}))).is_ok());
    assert!(read(&with(&json!({"inventory": 999, "priority": 1000}))).is_ok());
}

#[test]
fn money_is_checked_against_the_minor_unit_of_its_currency_at_the_door() {
    for (amount, currency, fits) in [
        ("705", "JPY", true),
        ("705.00", "JPY", true),
        ("705.5", "JPY", false),
        ("12.345", "KWD", true),
        ("12.3456", "KWD", false),
        ("12.34000", "EUR", true),
    ] {
        let line = with(&json!({"amount": amount, "currency": currency}));
        assert_eq!(read(&line).is_ok(), fits, "{amount} {currency}");
    }
}

#[test]
fn a_stay_date_that_is_still_today_at_the_property_is_accepted() {
    let night = date::parse_instant("2026-09-20T05:00:00Z").unwrap();
    let on = |changes: Json| read_at(&with(&changes), night);
    assert!(on(json!({"ota": "honolulu", "stay_date": "2026-09-19"})).is_ok());
    assert!(on(json!({"time_zone": "Pacific/Honolulu", "stay_date": "2026-09-19"})).is_ok());
    // The mutation's own zone comes before the channel's.
    assert_eq!(
        on(json!({"ota": "honolulu", "time_zone": "Europe/Berlin", "stay_date": "2026-09-19"}))
            .unwrap_err()
            .to_string(),
        r#"stay_date: "2026-09-19" is past: today is 2026-09-20 in Europe/Berlin"#
    );
    // With no zone known, only what is past everywhere on earth.
    assert!(on(json!({"stay_date": "2026-09-19"})).is_ok());
    assert_eq!(
        on(json!({"stay_date": "2026-09-18"})).unwrap_err().to_string(),
        r#"stay_date: "2026-09-18" is past everywhere on earth: give 2026-09-19 or later"#
    );
}

#[test]
fn a_mutation_expires_with_its_stay_date_or_before() {
    let at = |text| Some(date::parse_instant(text).unwrap());
    let plain = accepted(&json!({}));
    assert_eq!(expires(&plain, None), at("2026-10-02T12:00:00Z"));
    assert_eq!(expires(&plain, Some("Europe/Berlin")), at("2026-10-01T22:00:00Z"));
    let berlin = accepted(&json!({"time_zone": "Europe/Berlin", "ota": "honolulu"}));
    assert_eq!(expires(&berlin, Some("Pacific/Honolulu")), at("2026-10-01T22:00:00Z"));
    assert_eq!(context().expires(&berlin), at("2026-10-01T22:00:00Z"));
    assert_eq!(context().expires(&accepted(&json!({"ota": "honolulu"}))), at("2026-10-02T10:00:00Z"));
    let early = accepted(&json!({"expires_at": "2026-09-21T00:00:00+02:00"}));
    assert_eq!(expires(&early, None), at("2026-09-20T22:00:00Z"));
    let late = accepted(&json!({"expires_at": "2027-01-01T00:00:00Z"}));
    assert_eq!(expires(&late, None), at("2026-10-02T12:00:00Z"));
}

#[test]
fn fields_of_another_kind_are_refused_by_name() {
    assert_eq!(faults(&json!({"min_stay": 2})), r#"min_stay: "2" does not belong to kind `rate`"#);
    assert_eq!(
        faults(&json!({"kind": "availability", "currency": null})),
        r#"amount: "129.90" does not belong to kind `availability`"#
    );
    assert_eq!(
        restriction(r#""stop_sell":true,"inventory":3"#).unwrap_err().to_string(),
        r#"inventory: "3" does not belong to kind `restriction`"#
    );
}

#[test]
fn a_restriction_sets_at_least_one_rule_and_its_rules_agree() {
    let told = |fields| restriction(fields).unwrap_err().to_string();
    assert!(restriction(r#""closed_to_arrival":true,"closed_to_departure":false"#).is_ok());
    assert!(restriction(r#""min_stay":3,"max_stay":3"#).is_ok());
    assert!(told(r#""min_stay":null"#).starts_with("kind: \"restriction\" needs at least one of min_stay"));
    assert_eq!(
        told(r#""min_stay":3,"max_stay":2"#),
        r#"max_stay: "2" must be at least min_stay, which is 3"#
    );
    assert_eq!(told(r#""min_stay":0"#), r#"min_stay: "0" must be an integer from 1 to 999"#);
    assert_eq!(told(r#""stop_sell":"true""#), r#"stop_sell: "true" must be true or false, not text"#);
    assert_eq!(told(r#""stop_sell":1"#), r#"stop_sell: "1" must be true or false, not a number"#);
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    let line = with(&json!({})).replacen('{', r#"{"amount":"1.00","#, 1);
    assert_eq!(read(&line).unwrap_err().to_string(), r#"amount: "129.90" stands twice in one mutation"#);
    let line = with(&json!({})).replacen('{', r#"{"sequence":null,"sequence":4,"#, 1);
    assert!(read(&line).is_err());
}

#[test]
fn null_counts_as_absent() {
    let line = with(&json!({})).replacen('{', r#"{"batch":null,"min_stay":null,"correlation_id":null,"#, 1);
    assert_eq!(read(&line).unwrap().batch, None);
    let line = with(&json!({"amount": null})).replacen('{', r#"{"amount":null,"#, 1);
    assert_eq!(read(&line).unwrap_err().to_string(), "amount: is missing: kind `rate` sets it");
}

#[test]
fn a_mutation_without_an_id_gets_a_random_uuid() {
    let context = context();
    let mut rng = StdRng::seed_from_u64(1);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let made = Mutation::from_json(with(&json!({})).as_bytes(), &context, NOW, &mut rng).unwrap();
        let id = made.correlation_id.to_string();
        assert_eq!(id.len(), 32);
        assert!(id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
        assert_eq!(&id[12..13], "4", "{id}");
        assert!(matches!(&id[16..17], "8" | "9" | "a" | "b"), "{id}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 100);
}

#[test]
fn what_is_not_one_object_is_refused_as_such() {
    for (json, told) in [
        ("", "json: \"\" is not one JSON object: EOF while parsing a value at byte 0"),
        ("[1]", "json: \"[1]\" is not one JSON object: invalid type: sequence, expected an object at byte 0"),
        ("{} {}", "json: \"{} {}\" is not one JSON object: trailing characters at byte 4"),
        (r#"{"ota":}"#, "json: \"{\"ota\":}\" is not one JSON object: expected value at byte 8"),
    ] {
        assert_eq!(read(json).unwrap_err().to_string(), told);
    }
    let told = Mutation::from_json(b"{\"ota\":\"\xff\"}", &context(), NOW, &mut StdRng::seed_from_u64(1))
        .unwrap_err();
    assert_eq!(told.to_string(), "json: \"{\"ota\":\"\u{fffd}\"}\" is not UTF-8 at byte 9");
}

#[test]
fn escapes_are_read_and_broken_ones_refused() {
    let line = with(&json!({"batch": "n\u{e4}chtlich"})).replace('ä', r"\u00e4");
    assert_eq!(read(&line).unwrap().batch.unwrap().as_str(), "nächtlich");
    let line = with(&json!({})).replacen('{', r#"{"batch":"\ud800","#, 1);
    assert_eq!(
        read(&line).unwrap_err().to_string(),
        r#"batch: "\\ud800" must be text, not text with a broken escape"#
    );
}

#[test]
fn a_row_of_cells_meets_the_same_rules() {
    let row = |changes: &[(&'static str, &'static str)]| {
        let mut cells = vec![
            ("property_id", "prop_0a1b2c3d"),
            ("room_type_code", "DLX"),
            ("rate_plan_code", "BAR"),
            ("ota", "booking_com"),
            ("stay_date", "2026-10-01"),
        ];
        cells.extend(changes);
        Mutation::from_fields(cells, &context(), NOW, &mut StdRng::seed_from_u64(1))
    };
    let told = |changes| row(changes).unwrap_err().to_string();
    let rate = row(&[("amount", "129.90"), ("currency", "EUR"), ("inventory", "3"), ("batch", "")]).unwrap();
    assert_eq!(rate.value.to_json(), r#"{"amount":"129.90","currency":"EUR","inventory":3}"#);
    assert_eq!(rate.batch, None);
    let rules = row(&[("kind", "restriction"), ("stop_sell", "TRUE"), ("min_stay", "2")]).unwrap();
    assert_eq!(rules.value.to_json(), r#"{"min_stay":2,"stop_sell":true}"#);
    assert_eq!(
        told(&[("kind", "restriction"), ("stop_sell", "yes")]),
        r#"stop_sell: "yes" must be true or false"#
    );
    assert_eq!(
        told(&[("amount", "1e2"), ("currency", "EUR"), ("inventory", "+3")]),
        "amount: \"1e2\" must be a plain decimal such as 129.90: no sign, blank, exponent, separator or needless \
         leading zero; inventory: \"+3\" must be an integer from 0 to 999"
    );
    assert_eq!(
        told(&[("amount", "1"), ("currency", "EUR"), ("inventory", "3"), ("curency", "EUR")]),
        r#"curency: "EUR" is not a field of a mutation: is `currency` meant?"#
    );
}

proptest! {
    #[test]
    fn any_price_survives_from_line_to_wire(whole in "[1-9][0-9]{0,7}", fraction in "[0-9]{2}", quoted: bool) {
        let text = format!("{whole}.{fraction}");
        let written = if quoted { format!("\"{text}\"") } else { text.clone() };
        let line = with(&json!({"amount": null})).replacen('{', &format!("{{\"amount\":{written},"), 1);
        let body: Json = serde_json::from_slice(&read(&line).unwrap().body()).unwrap();
        prop_assert_eq!(&body["amount"], &Json::String(text));
    }

    #[test]
    fn no_line_can_make_reading_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Mutation::from_json(&bytes, &context(), NOW, &mut StdRng::seed_from_u64(1));
    }

    #[test]
    fn no_value_can_make_checking_it_panic(name in 0..Field::ALL.len(), text in "\\PC{0,40}|[-0-9T:+.Z]{0,40}") {
        let changes = json!({Field::ALL[name].as_str(): text});
        let _ = read(&with(&changes));
    }
}
