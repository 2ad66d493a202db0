//! What `governor.toml` may say, and what is said about what it may not.

use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use ota_governor_core::idempotency::Recipe;
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::limit::Rule;
use ota_governor_core::mutation::Kind;

use super::*;

const CHANNEL: &str = r#"
[channels.booking_com]
base_url = "https://channel-manager.example/"
token = { env = "BOOKING_COM_TOKEN" }
[[channels.booking_com.endpoints.rates.limits]]
kind = "sliding_window"
max = 90
per = "1m"
"#;

fn faults(text: &str) -> Vec<String> {
    let faults = Config::parse(text).unwrap_err();
    faults.faults.iter().map(ToString::to_string).collect()
}

fn with_env(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigFaults> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(Some(file.path()), env)
}

fn lane(text: &str) -> LaneKey {
    let Scope::Lane { lane } = text.parse::<Scope>().unwrap() else { panic!("{text} is not a lane") };
    lane
}

#[test]
fn a_channel_has_defaults_for_all_but_its_url_its_token_and_its_limits() {
    let config = Config::parse(CHANNEL).unwrap();
    let (channel, endpoint) = config.endpoint(&lane("booking_com:default/rates")).unwrap();
    assert_eq!(channel.base_url, "https://channel-manager.example");
    assert_eq!(channel.timeout, Duration::from_secs(15));
    assert_eq!((channel.max_in_flight, channel.max_answer_bytes), (16, 65536));
    assert_eq!((channel.auth_header.as_str(), channel.auth_prefix.as_str()), ("Authorization", "Bearer "));
    assert_eq!(channel.idempotency, Recipe::Revision);
    assert!(channel.property_id_pattern.is_match("prop_0123abcd"));
    assert_eq!(endpoint.path, "/booking_com/rates/sync");
    assert_eq!(endpoint.retry, ota_governor_core::retry::RetryPolicy::default());
    assert_eq!(config.retention, Duration::from_secs(30 * 86_400));
    assert_eq!(config.ledger_place(), LedgerPlace::Sqlite("governor.db".into()));
    let limit = config.lane_limits(&lane("booking_com:default/rates")).unwrap()[0];
    assert_eq!(limit.name.as_str(), "booking_com/rates.limits[0]");
    let (max, burst) = (NonZeroU64::new(90).unwrap(), NonZeroU64::new(3).unwrap());
    assert_eq!(limit.rule, Rule::SlidingWindow { max, per: Duration::from_secs(60), burst });
}

#[test]
fn an_endpoint_without_any_limit_is_no_lane_and_the_missing_limit_is_named() {
    let config = Config::parse(CHANNEL).unwrap();
    let lanes: Vec<String> = config.lanes().iter().map(ToString::to_string).collect();
    assert_eq!(lanes, ["booking_com:default/rates"]);
    let refused = config.lane_limits(&lane("booking_com:default/availability")).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the endpoint availability of booking_com has no limit: \
         add [[channels.booking_com.endpoints.availability.limits]] or [[channels.booking_com.limits]]"
    );
    assert!(config.lane_limits(&lane("booking_com:other/rates")).is_err());
    assert!(config.lane_limits(&lane("agoda:default/rates")).is_err());
}

#[test]
fn a_limit_of_the_channel_makes_a_lane_of_every_kind_and_comes_before_the_endpoints_own() {
    let text = format!(
        "{CHANNEL}
[[channels.booking_com.limits]]
kind = \"concurrency\"
max = 4
[limits.house]
kind = \"token_bucket\"
rate = 1
per = \"1s\"
each = \"egress\"
[channels.booking_com.endpoints.availability]
use = [\"house\"]"
    );
    let config = Config::parse(&text).unwrap();
    assert_eq!(config.lanes().len(), Kind::ALL.len());
    let names = |text: &str| {
        let limits = config.lane_limits(&lane(text)).unwrap();
        limits.iter().map(|limit| limit.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("booking_com:default/rates"), ["booking_com.limits[0]", "booking_com/rates.limits[0]"]);
    assert_eq!(names("booking_com:default/availability"), ["booking_com.limits[0]", "house"]);
}

#[test]
fn every_fault_is_reported_at_once_with_file_line_key_and_what_was_meant() {
    let text = r#"
[ledgr]
[ledger]
url = "postgres://user:hunter2@db/x"
retention = "12"
[limiter]
backend = "redis"
[server]
listen = "8087"
[channels.booking_com]
base_url = "ftp://x"
tiemout = "5s"
token = "hunter2"
max_attempts = 3
time_zone = "Mars/Olympus"
property_id_pattern = "("
idempotency = "contents"
max_in_flight = 0
headers = { "X-Idempotency-Key" = "1", "bad name" = "x" }
[channels.booking_com.endpoints.rates]
pauses = "hotel"
use = ["nosuch"]
[[channels.booking_com.endpoints.rates.limits]]
kind = "sliding_window"
rate = 90
per = "1m"
[[channels.booking_com.endpoints.rates.limits]]
kind = "sliding_window"
max = 5
per = "90d"
burst = 6
[[channels.booking_com.endpoints.rates.limits]]
kind = "concurrency"
max = 0
[channels.Expedia]
"#;
    let found = faults(text);
    let expected = [
        "governor.toml:2: ledgr: unknown key; did you mean ledger?",
        "governor.toml:4: ledger.url: PostgreSQL ledgers are not in this version: it must be \"sqlite:PATH\" or \"memory:\"",
        "governor.toml:5: ledger.retention: must be a whole number and a unit, such as 500ms, 15s, 1m, 24h or 30d",
        "governor.toml:7: limiter.backend: must be \"local\": this version shares limits within one process only, \"redis\" is not in it",
        "governor.toml:9: server.listen: must be an address and a port, such as \"127.0.0.1:8087\"",
        "governor.toml:11: channels.booking_com.base_url: must begin with http:// or https://, not ftp:",
        "governor.toml:12: channels.booking_com.tiemout: unknown key; did you mean timeout?",
        "governor.toml:13: channels.booking_com.token: must name its source, never hold the token: { env = \"NAME\" }, { file = \"PATH\" } or { command = [\"PROGRAM\", …] }",
        "governor.toml:14: channels.booking_com.max_attempts: unknown key; it belongs to [channels.NAME.endpoints.NAME.retry]",
        "governor.toml:15: channels.booking_com.time_zone: \"Mars/Olympus\" is not an IANA time zone such as \"Europe/Berlin\"",
        "governor.toml:16: channels.booking_com.property_id_pattern: is not a regular expression: unclosed group",
        "governor.toml:17: channels.booking_com.idempotency: must be \"revision\" or \"content\"; did you mean \"content\"?",
        "governor.toml:18: channels.booking_com.max_in_flight: must be 1 to 1024, not 0",
        "governor.toml:19: channels.booking_com.headers.X-Idempotency-Key: is set by every call itself",
        "governor.toml:19: channels.booking_com.headers.bad name: is not the name of a header",
        "governor.toml:21: channels.booking_com.endpoints.rates.pauses: must be \"lane\" or \"property\" or \"account\"",
        "governor.toml:22: channels.booking_com.endpoints.rates.use[0]: there is no limit \"nosuch\"; it would stand under [limits.nosuch]",
        "governor.toml:23: channels.booking_com.endpoints.rates.limits[0].max: is missing: how many calls it admits",
        "governor.toml:25: channels.booking_com.endpoints.rates.limits[0].rate: unknown key; only a token_bucket has a rate, the others say max",
        "governor.toml:30: channels.booking_com.endpoints.rates.limits[1].per: is longer than ledger.retention (30d): its calls would be forgotten",
        "governor.toml:31: channels.booking_com.endpoints.rates.limits[1].burst: is over max (5): such a burst can never be met",
        "governor.toml:34: channels.booking_com.endpoints.rates.limits[2].max: 0 admits no call at all: such a limit can never be met",
        "governor.toml:35: channels.Expedia: the slug of a channel must be 1 to 64 of a-z, 0-9, _ and -",
        "governor.toml:35: channels.Expedia.base_url: is missing: where the channel's API is, such as \"https://channel.example\"",
        "governor.toml:35: channels.Expedia.token: is missing: { env = \"NAME\" }, { file = \"PATH\" } or { command = [\"PROGRAM\", …] }",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_not_toml_is_reported_by_line_without_the_line_itself() {
    let found = faults("[ledger]\nurl = sqlite hunter2\n").join("\n");
    assert!(found.starts_with("governor.toml:2: "), "{found}");
    assert!(!found.contains("hunter2"), "{found}");
}

#[test]
fn secrets_appear_neither_in_faults_nor_in_debug() {
    let text = r#"
[channels.a]
base_url = "https://user:hunter2@channel.example"
token = { command = ["vault", "hunter2"] }
headers = { "X-API-KEY" = "hunter2" }
"#;
    let refused = Config::parse(text).unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    let config = Config::parse(&text.replace("user:hunter2@", "")).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    assert_eq!(config.channels.values().next().unwrap().headers[0].1, "hunter2");
}

#[test]
fn the_environment_overrides_any_value_and_can_name_a_new_one() {
    let config = with_env(
        CHANNEL,
        &[
            ("OTA_GOVERNOR__LEDGER__URL", "sqlite:/tmp/x.db"),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__TIMEOUT", "5s"),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__MAX_IN_FLIGHT", "4"),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__TOKEN", r#"{ file = "/run/token" }"#),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__HEADERS__X_TENANT", "12"),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__ENDPOINTS__RATES__LIMITS__0__MAX", "30"),
            ("OTA_GOVERNOR_LOG", "debug"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    let (channel, endpoint) = config.endpoint(&lane("booking_com:default/rates")).unwrap();
    assert_eq!(config.ledger_place(), LedgerPlace::Sqlite("/tmp/x.db".into()));
    assert_eq!((channel.timeout, channel.max_in_flight), (Duration::from_secs(5), 4));
    assert_eq!(format!("{:?}", channel.accounts.values().next().unwrap()), "file /run/token");
    assert_eq!(channel.headers, [("x_tenant".to_owned(), "12".to_owned())]);
    assert!(matches!(endpoint.limits[0].rule, Rule::SlidingWindow { max, .. } if max.get() == 30));
}

#[test]
fn a_variable_that_overrides_nothing_known_is_a_fault_that_names_it() {
    let refused = with_env(
        CHANNEL,
        &[
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__TIMOUT", "5s"),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__ENDPOINTS__RATES__LIMITS__7__MAX", "30"),
            ("OTA_GOVERNOR__CHANNELS__BOOKING_COM__MAX_IN_FLIGHT", "many"),
        ],
    );
    let found: Vec<String> = refused.unwrap_err().faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "environment OTA_GOVERNOR__CHANNELS__BOOKING_COM__ENDPOINTS__RATES__LIMITS__7__MAX: \
             channels.booking_com.endpoints.rates.limits.7.max: 7 is not the number of one of its 1 entries, from 0",
            "environment OTA_GOVERNOR__CHANNELS__BOOKING_COM__MAX_IN_FLIGHT: channels.booking_com.max_in_flight: \
             must be an integer, not a string",
            "environment OTA_GOVERNOR__CHANNELS__BOOKING_COM__TIMOUT: channels.booking_com.timout: \
             unknown key; did you mean timeout?",
        ]
    );
}

#[test]
fn a_missing_token_is_named_with_its_line_only_when_asked_for() {
    let text = format!(
        "{CHANNEL}[channels.booking_com.accounts.hotel7]\ntoken = {{ file = \"/nonexistent/token\" }}\n"
    );
    let config = Config::parse(&text).unwrap();
    let missing: Vec<String> = config.missing_tokens_in(|_| None).iter().map(ToString::to_string).collect();
    assert_eq!(missing.len(), 2);
    assert_eq!(
        missing[0],
        "governor.toml:4: channels.booking_com.accounts.default.token: \
         the environment variable BOOKING_COM_TOKEN is not set"
    );
    assert!(missing[1].starts_with("governor.toml:10: channels.booking_com.accounts.hotel7.token: the file"));
    assert_eq!(config.missing_tokens_in(|_| Some("t".into())).len(), 1);
}

#[test]
fn a_file_that_is_not_there_is_a_fault_that_says_how_to_write_one() {
    let refused = Config::load(Some(Path::new("/nonexistent/governor.toml")), std::iter::empty());
    assert!(refused.unwrap_err().to_string().contains("`ota-governor init` writes one"));
}

#[test]
fn a_call_answered_as_late_as_its_timeout_still_counts_for_its_whole_window() {
    let config = Config::parse(&format!(
        "{CHANNEL}[channels.booking_com.endpoints.availability]\ntimeout = \"30s\"\n"
    ));
    assert!(config.unwrap().longest_window() >= Duration::from_secs(60 + 30));
}
