//! Configuration files: read whole, refused whole, written as they are read.

use ota_sim::{Config, Each, Kind, RetryAfter, Rule};

use super::calls::secs;

/// The keys that are at fault.
fn keys(text: &str) -> Vec<String> {
    Config::from_toml(text).unwrap_err().faults.into_iter().map(|fault| fault.key).collect()
}

#[test]
fn the_example_is_valid_and_says_what_it_seems_to_say() {
    let config = Config::from_toml(include_str!("../../examples/sim.toml")).unwrap();
    let booking = &config.channels["booking_com"];
    assert_eq!(booking.endpoints["rates"].limits[0].rule, Rule::SlidingWindow { max: 90, per: secs(60) });
    assert_eq!(booking.retry_after.last(), Some(&RetryAfter::Raw("soon".to_owned())));
    let expedia = &config.channels["expedia"];
    assert_eq!((expedia.limits[1].each, expedia.limits[2].hidden), (Each::Property, true));
    assert_eq!((expedia.faults.len(), expedia.auth.tokens.len(), config.changes[0].at), (3, 2, secs(90)));
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    for text in ["", include_str!("../../examples/sim.toml"), "epoch = 2026-09-20T10:00:00Z", EVERYTHING] {
        let config = Config::from_toml(text).unwrap();
        let written = serde_json::to_value(&config).unwrap();
        assert_eq!(Config::from_json(&written).unwrap(), config, "{written}");
    }
}

const EVERYTHING: &str = r#"
only_listed = true
[any]
strict = false
confirmation = false
idempotent = false
pauses = "channel"
pause_grace = "10ms"
pause_horizon = "1h"
over_limit = { slow = "1s" }
retry_after = [5, "absent", "seconds", "imf_fixdate", "rfc850", "asctime", "decimal", "past", "", "-3", "+3",
    { raw = "Sun, 31 Feb 2026 99:00:00 GMT" }, { form = "asctime", wait = "2m" }, { form = "decimal", wait = "1500ms" }]
[any.endpoints.reservations]
path = "/{ota}/v2/reservations"
kind = "other"
[any.endpoints.rates]
path = "/{ota}/ari"
[[any.faults]]
act = "redirect"
location = "/login"
[[any.faults]]
act = "drip"
interval = "5ms"
nth = 3
[[any.faults]]
act = "huge"
bytes = 10
every = 4
[[any.faults]]
act = "commit_then_status"
status = 502
at = "5s"
for = "1s"
times = 2
[[any.faults]]
act = "slow"
by = "3s"
endpoint = "reservations"
[[any.faults]]
act = "200"
body = '{"ok":false}'
"#;

#[test]
fn every_fault_is_reported_with_its_key() {
    let found = keys(
        r#"
        sed = 1
        keep_arrivals = -1
        [channels.booking_com]
        strict = "yes"
        pauses = "all"
        retry_after = ["seconds", "later"]
        latency = { min = "2s", max = "1s" }
        limits = [
            { kind = "sliding_window", max = 0 },
            { kind = "fixed_window", max = 1, per = "2d", time_zone = "Mars/Olympus" },
            { kind = "leaky" },
            { kind = "token_bucket", rate = 1, per = "1", burst = 1, max = 3 },
        ]
        faults = [{ act = "700" }, { act = "cut", share = 1.5 }, { act = "cut", endpoint = "nowhere" }]
        outages = [{ at = "1s", kind = "nap" }]
        [channels.Booking]
        [[changes]]
        channel = "booking_com"
        [channels.agoda.endpoints.rates]
        path = "no-slash"
        "#,
    );
    for key in [
        "sed",
        "keep_arrivals",
        "channels.booking_com.strict",
        "channels.booking_com.pauses",
        "channels.booking_com.retry_after[1]",
        "channels.booking_com.latency.max",
        "channels.booking_com.limits[0].max",
        "channels.booking_com.limits[0].per",
        "channels.booking_com.limits[1].per",
        "channels.booking_com.limits[1].time_zone",
        "channels.booking_com.limits[2].kind",
        "channels.booking_com.limits[3].per",
        "channels.booking_com.limits[3].max",
        "channels.booking_com.faults[0].act",
        "channels.booking_com.faults[1].share",
        "channels.booking_com.faults[2].endpoint",
        "channels.booking_com.outages[0].for",
        "channels.booking_com.outages[0].kind",
        "channels.Booking",
        "changes[0].at",
        "channels.agoda.endpoints.rates.path",
    ] {
        assert!(found.iter().any(|found| found == key), "{key} not in {found:#?}");
    }
}

#[test]
fn a_change_of_a_channel_that_cannot_be_is_a_fault() {
    let text = "only_listed = true\n[[changes]]\nat = \"1s\"\nchannel = \"agoda\"\nstrict = false";
    assert_eq!(keys(text), ["changes[0].channel"]);
    assert_eq!(
        keys("[channels.a.endpoints.x]\npath = \"/{ota}/rates/sync\""),
        ["channels.a.endpoints.x.path"]
    );
    assert_eq!(Config::from_toml("[channels").unwrap_err().faults.len(), 1);
}

#[test]
fn a_new_endpoint_takes_anything_unless_it_says_otherwise() {
    let config = Config::from_toml("[channels.a.endpoints.reservations]").unwrap();
    let endpoint = &config.channels["a"].endpoints["reservations"];
    assert_eq!((endpoint.kind, endpoint.path.as_str()), (Kind::Other, "/{ota}/reservations/sync"));
    assert_eq!(config.channels["a"].endpoints.len(), 4);
}

#[test]
fn a_planned_change_comes_on_time() {
    use super::calls::{rate, status};
    let text = r#"
        [any.latency]
        min = "0s"
        max = "0s"
        [[changes]]
        at = "30s"
        channel = "booking_com"
        limits = [{ kind = "sliding_window", max = 1, per = "1m" }]
    "#;
    let ota = ota_sim::Ota::new(Config::from_toml(text).unwrap());
    let at = ota_sim::At::from_secs;
    let seen: Vec<_> =
        [(29, 1), (29, 2), (30, 3), (30, 4)].map(|(s, n)| status(&ota, at(s), &rate(n))).into();
    assert_eq!(seen, [200, 200, 200, 429]);
    assert_eq!(ota.config().channels["booking_com"].limits.len(), 1);
}
