//! The strict receiver: form, tokens, idempotency, and what is true afterwards.

use std::time::Duration;

use ota_sim::{At, Auth, CellKey, Config, Kind, Limit, Ota, Token};
use serde_json::{Value, json};

use super::calls::{Push, availability, make, prompt, rate, restriction, secs, status};

fn ota() -> Ota {
    Ota::new(Config::default().any(prompt()))
}

/// The status and the text for a rate whose body was changed.
fn changed(change: impl Fn(&mut serde_json::Map<String, Value>)) -> (u16, String) {
    let ota = ota();
    let push = rate(1);
    let mut body = push.body();
    change(body.as_object_mut().unwrap());
    let reaction = ota.receive(At::ZERO, &push.with(&body));
    let answer = reaction.then.answer().unwrap();
    (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
}

#[test]
fn well_formed_calls_of_every_kind_are_taken() {
    let ota = ota();
    let mut everywhere = availability(3, 4);
    everywhere.plan = None;
    for push in
        [rate(1), availability(2, 4), everywhere, restriction(4, json!({ "min_stay": 2, "stop_sell": true }))]
    {
        let reaction = make(&ota, At::ZERO, &push);
        assert_eq!(reaction.then.status(), Some(200), "{push:?}");
        assert!(reaction.then.answer().unwrap().header("x-ota-confirmation-id").is_some());
    }
    assert_eq!(ota.books(At::ZERO).total.malformed, 0);
}

#[test]
fn a_body_that_breaks_a_rule_is_refused_by_the_name_of_the_key() {
    let cases: [(&str, Value); 12] = [
        ("amount", json!(120.5)),
        ("amount", json!("1e3")),
        ("amount", json!("-5")),
        ("amount", json!("0.00")),
        ("amount", json!("5.")),
        ("currency", json!("eur")),
        ("inventory", json!(1000)),
        ("inventory", json!("5")),
        ("inventory", json!(2.5)),
        ("ota", json!("expedia")),
        ("stay_date", json!("2026-02-30")),
        ("room_type_code", json!("X")),
    ];
    for (key, value) in cases {
        let (status, text) = changed(|body| {
            body.insert(key.to_owned(), value.clone());
        });
        assert_eq!(status, 422, "{key} {value}");
        assert!(text.contains(key), "{text}");
    }
}

#[test]
fn a_missing_key_and_one_too_many_are_refused() {
    for key in
        ["property_id", "room_type_code", "rate_plan_code", "ota", "stay_date", "correlation_id", "amount"]
    {
        let (status, text) = changed(|body| {
            body.remove(key);
        });
        assert!(status == 422 && text.contains(&format!("{key}: is missing")), "{text}");
    }
    let (status, text) = changed(|body| {
        body.insert("priority".to_owned(), json!(1));
    });
    assert!(status == 422 && text.contains("priority"), "{text}");
}

#[test]
fn a_key_given_twice_is_refused() {
    let push = rate(1);
    let body = push.body().to_string().replacen('{', "{\"amount\":\"1\",", 1);
    let ota = ota();
    let reaction = ota.receive(At::ZERO, &push.call().body(body));
    assert_eq!(reaction.then.status(), Some(422));
}

#[test]
fn headers_and_method_are_checked() {
    let ota = ota();
    let push = rate(1);
    let without = |name: &str| {
        let mut call = push.call();
        call.headers.remove(name);
        call
    };
    for name in ["content-type", "x-idempotency-key", "x-correlation-id"] {
        assert_eq!(ota.receive(At::ZERO, &without(name)).then.status(), Some(422), "{name}");
    }
    let mut call = push.call();
    call.method = "PUT".parse().unwrap();
    assert_eq!(ota.receive(At::ZERO, &call).then.status(), Some(422));
    let mut short = rate(2);
    short.key = "abc".to_owned();
    assert_eq!(status(&ota, At::ZERO, &short), 422);
    let books = ota.books(At::ZERO);
    assert_eq!((books.total.malformed, books.total.malformed_texts.len(), books.total.committed), (5, 5, 0));
}

#[test]
fn a_restriction_must_set_something() {
    assert_eq!(status(&ota(), At::ZERO, &restriction(1, json!({}))), 422);
    assert_eq!(status(&ota(), At::ZERO, &restriction(1, json!({ "stop_sell": "yes" }))), 422);
}

#[test]
fn an_unknown_path_is_404_and_counts_nowhere_else() {
    let ota = ota();
    let lost = Push { endpoint: "prices", ..rate(1) };
    assert_eq!(status(&ota, At::ZERO, &lost), 404);
    let books = ota.books(At::ZERO);
    assert_eq!((books.unrouted, books.total.received), (1, 0));
    let listed = Ota::new(Config { only_listed: true, ..Config::default() });
    assert_eq!(status(&listed, At::ZERO, &rate(1)), 404);
}

#[test]
fn the_same_key_gives_the_first_success_again_without_applying() {
    let ota = ota();
    let confirmation = |push: &Push| {
        let reaction = make(&ota, At::ZERO, push);
        let answer = reaction.then.answer().unwrap();
        (
            answer.header("x-ota-confirmation-id").map(str::to_owned),
            answer.header("x-idempotent-replay").is_some(),
        )
    };
    let first = confirmation(&rate(1));
    let again = confirmation(&rate(1));
    assert_eq!((&first.0, false, true), (&again.0, first.1, again.1));
    let books = ota.books(At::ZERO);
    assert_eq!((books.total.committed, books.total.replays), (1, 1));
    assert_eq!(ota.cells()[0].applied.len(), 1);
}

#[test]
fn the_same_key_with_other_content_is_a_conflict() {
    let ota = ota();
    make(&ota, At::ZERO, &rate(1));
    let mut other = rate(1);
    other.fields["inventory"] = json!(6);
    assert_eq!(status(&ota, At::ZERO, &other), 422);
    assert_eq!(ota.books(At::ZERO).total.key_conflicts, 1);
    assert_eq!(ota.cells()[0].value["inventory"], json!(5));
}

#[test]
fn a_key_belongs_to_its_endpoint_and_property() {
    let ota = ota();
    make(&ota, At::ZERO, &rate(1));
    assert!(
        make(&ota, At::ZERO, &availability(1, 3))
            .then
            .answer()
            .unwrap()
            .header("x-idempotent-replay")
            .is_none()
    );
    make(&ota, At::ZERO, &rate(1).property("prop_00000002"));
    let books = ota.books(At::ZERO);
    assert_eq!((books.total.committed, books.total.replays, books.total.key_conflicts), (3, 0, 0));
}

#[test]
fn only_the_listed_token_is_taken_and_the_next_one_after_it_expires() {
    let auth = Auth::tokens([Token::new("secret").expires_at(secs(60)), Token::new("fresh").after_calls(2)]);
    let ota = Ota::new(Config::default().channel("booking_com", prompt().auth(auth)));
    let fresh = |n| Push { token: "fresh", ..rate(n) };
    assert_eq!(status(&ota, At::ZERO, &fresh(1)), 401, "not yet");
    assert_eq!(status(&ota, At::from_secs(59), &rate(2)), 200);
    assert_eq!(status(&ota, At::from_secs(60), &rate(3)), 401, "expired");
    assert_eq!(status(&ota, At::from_secs(60), &fresh(4)), 200);
    assert_eq!(status(&ota, At::from_secs(60), &fresh(5)), 200);
    assert_eq!(status(&ota, At::from_secs(60), &fresh(6)), 401, "used up, and none left");
    assert_eq!(ota.books(At::from_secs(60)).total.unauthorized, 3);
}

#[test]
fn a_rotation_refuses_the_old_token_also_where_any_is_taken() {
    let ota = ota();
    let other = |n| Push { token: "other", ..rate(n) };
    assert_eq!(status(&ota, At::ZERO, &rate(1)), 200);
    assert_eq!(ota.rotate_token(At::ZERO, "booking_com", None).unwrap(), None);
    assert_eq!((status(&ota, At::ZERO, &rate(2)), status(&ota, At::ZERO, &other(3))), (401, 200));
    assert_eq!(ota.rotate_token(At::ZERO, "booking_com", Some("secret")).unwrap().as_deref(), Some("secret"));
    assert_eq!((status(&ota, At::ZERO, &rate(4)), status(&ota, At::ZERO, &other(5))), (200, 401));
    let none = Push { token: "", ..rate(6) };
    assert_eq!(status(&ota, At::ZERO, &none), 401);
}

#[test]
fn another_header_may_carry_the_token() {
    let auth = Auth { header: "x-api-key".to_owned(), prefix: String::new(), tokens: vec![Token::new("k")] };
    let ota = Ota::new(Config::default().channel("booking_com", prompt().auth(auth)));
    assert_eq!(status(&ota, At::ZERO, &rate(1)), 401);
    assert_eq!(ota.receive(At::ZERO, &rate(2).call().header("x-api-key", "k")).then.status(), Some(200));
}

#[test]
fn what_is_turned_away_counts_in_the_limits_too() {
    let auth = Auth::tokens([Token::new("other")]);
    let channel = prompt().auth(auth).limit(Limit::sliding_window(1, secs(60)));
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    assert_eq!((status(&ota, At::ZERO, &rate(1)), status(&ota, At::ZERO, &rate(2))), (401, 429));
}

#[test]
fn cells_hold_their_last_value_and_the_order_in_which_they_were_set() {
    let ota = ota();
    for (n, amount) in [(1, "100"), (2, "120"), (3, "100")] {
        let mut push = rate(n);
        push.fields["amount"] = json!(amount);
        make(&ota, At::from_secs(n), &push);
    }
    let cell = ota.cells().remove(0);
    assert_eq!((cell.value["amount"].clone(), cell.at), (json!("100"), At::from_secs(3)));
    assert_eq!(cell.applied.iter().map(AsRef::as_ref).collect::<Vec<_>>(), ["id-1", "id-2", "id-3"]);
    assert_eq!(ota.cell(&cell.cell), Some(cell));
}

#[test]
fn restrictions_gather() {
    let ota = ota();
    make(&ota, At::ZERO, &restriction(1, json!({ "min_stay": 2, "stop_sell": true })));
    make(&ota, At::ZERO, &restriction(2, json!({ "stop_sell": false })));
    let value = Value::Object(ota.cells().remove(0).value);
    assert_eq!(value, json!({ "min_stay": 2, "stop_sell": false }));
}

#[test]
fn rooms_left_are_what_was_said_last_for_the_plan_or_for_all_of_them() {
    let ota = ota();
    let cell = |plan: &str| CellKey {
        channel: "booking_com".to_owned(),
        property_id: "prop_00000001".to_owned(),
        room_type_code: "DLX".to_owned(),
        rate_plan_code: Some(plan.to_owned()),
        stay_date: "2026-12-24".to_owned(),
        kind: Kind::Rate,
    };
    make(&ota, At::ZERO, &rate(1));
    assert_eq!((ota.rooms(&cell("BAR")), ota.rooms(&cell("NRF"))), (Some(5), None));
    let mut all = availability(2, 9);
    all.plan = None;
    make(&ota, At::ZERO, &all);
    assert_eq!((ota.rooms(&cell("BAR")), ota.rooms(&cell("NRF"))), (Some(9), Some(9)));
    make(&ota, At::ZERO, &availability(3, 2));
    assert_eq!((ota.rooms(&cell("BAR")), ota.rooms(&cell("NRF"))), (Some(2), Some(9)));
    assert_eq!(ota.inventory().len(), 2);
}

#[test]
fn the_same_seed_gives_the_same_reactions() {
    let run = |seed| {
        let ota = Ota::new(Config::default().seed(seed));
        (0..20).map(|n| make(&ota, At::from_secs(n), &rate(n)).delay).collect::<Vec<_>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    assert!(
        run(7).iter().all(|delay| (Duration::from_millis(2)..=Duration::from_millis(40)).contains(delay))
    );
}
