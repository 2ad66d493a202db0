//! Reading `[channels.SLUG]` and its endpoints.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::mutation::Kind;
use ota_governor_core::name::{ChannelName, EndpointName};
use ota_governor_core::retry::RetryPolicy;
use regex::Regex;
use reqwest::Url;

use super::limits::{self, Shared};
use super::section::Section;
use super::token::{self, TokenOrigins};
use super::{Channel, Endpoint, Pauses};

pub(super) const KEYS: &[&str] = &[
    "base_url",
    "token",
    "accounts",
    "timeout",
    "max_in_flight",
    "time_zone",
    "property_id_pattern",
    "idempotency",
    "auth",
    "headers",
    "max_answer_bytes",
    "retry_after_horizon",
    "limits",
    "use",
    "endpoints",
];
pub(super) const ENDPOINT_KEYS: &[&str] =
    &["path", "pauses", "timeout", "retry_after_horizon", "retry", "limits", "use"];
pub(super) const RETRY_KEYS: &[&str] = &["initial", "factor", "jitter", "cap", "max_attempts"];

/// What every call sets by itself.
const OWN_HEADERS: &[&str] = &[
    "content-type",
    "content-length",
    "host",
    "connection",
    "transfer-encoding",
    "x-idempotency-key",
    "x-correlation-id",
];
const PROPERTY_ID: &str = "^prop_[0-9a-f]{8}$";
const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// What channels share.
#[derive(Clone, Copy)]
pub(super) struct Setting<'t> {
    pub(super) shared: &'t Shared,
    pub(super) retention: Duration,
}

/// Reads one channel; `None` where it is too faulty to make one.
pub(super) fn read(
    section: &Section<'_>,
    name: &ChannelName,
    setting: Setting<'_>,
    origins: &mut TokenOrigins,
) -> Option<Channel> {
    section.only(KEYS, belongs);
    section.require("base_url", "where the channel's API is, such as \"https://channel.example\"");
    let base_url = section.parsed("base_url", base_url);
    let accounts = token::accounts(section, name, origins);
    let (auth_header, auth_prefix) = auth(section);
    let headers = headers(section, &auth_header);
    let pattern = section.text("property_id_pattern").unwrap_or(PROPERTY_ID);
    let pattern = Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        let cause = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        section.fault("property_id_pattern", format!("is not a regular expression: {cause}"));
    });
    let time_zone = section.parsed("time_zone", |name| limits::zone(name).map(|_| name.to_owned()));
    let words = [("revision", Recipe::Revision), ("content", Recipe::Content)];
    let idempotency = section.word("idempotency", &words).unwrap_or_default();
    let horizon = horizon(section).unwrap_or(RetryPolicy::default().retry_after_horizon);
    let in_flight = section.integer("max_in_flight", 1..=1024).unwrap_or(16);
    let answer = section.integer("max_answer_bytes", 1..=16 * 1024 * 1024).unwrap_or(64 * 1024);
    Some(Channel {
        timeout: timeout(section).unwrap_or(Duration::from_secs(15)),
        max_in_flight: usize::try_from(in_flight).unwrap_or(16),
        max_answer_bytes: usize::try_from(answer).unwrap_or(64 * 1024),
        limits: limits::of(section, name.as_str(), setting.shared, setting.retention),
        endpoints: endpoints(section, name, setting, horizon),
        base_url: base_url?,
        accounts,
        auth_header,
        auth_prefix,
        headers,
        time_zone,
        property_id_pattern: pattern.ok()?,
        idempotency,
    })
}

/// Where a key that is unknown in its place would be known.
pub(super) fn belongs(key: &str) -> Option<String> {
    let place = if RETRY_KEYS.contains(&key) {
        "[channels.NAME.endpoints.NAME.retry]"
    } else if ENDPOINT_KEYS.contains(&key) {
        "[channels.NAME.endpoints.NAME]"
    } else if KEYS.contains(&key) {
        "[channels.NAME]"
    } else if ["kind", "each", "rate", "max", "per", "burst"].contains(&key) {
        "a limit, such as [[channels.NAME.endpoints.NAME.limits]]"
    } else {
        return None;
    };
    Some(format!("it belongs to {place}"))
}

fn base_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("must begin with http:// or https://, not {}:", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not carry a user or password: tokens come from token".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not carry a query or a fragment".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn timeout(section: &Section<'_>) -> Option<Duration> {
    section.duration("timeout", MILLISECOND..=HOUR)
}

fn horizon(section: &Section<'_>) -> Option<Duration> {
    section.duration("retry_after_horizon", Duration::from_secs(1)..=HOUR * 24 * 366)
}

fn auth(section: &Section<'_>) -> (String, String) {
    let mut header = "Authorization".to_owned();
    let mut prefix = "Bearer ".to_owned();
    if let Some(auth) = section.section("auth") {
        auth.only(&["header", "prefix"], belongs);
        header = auth.parsed("header", header_name).unwrap_or(header);
        prefix = auth.parsed("prefix", header_value).unwrap_or(prefix);
    }
    (header, prefix)
}

fn headers(section: &Section<'_>, auth_header: &str) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let Some(table) = section.section("headers") else { return headers };
    for (name, _) in table.entries() {
        let value = table.parsed(name, header_value);
        if let Err(rule) = header_name(name) {
            table.fault(name, rule);
        } else if name.eq_ignore_ascii_case(auth_header) {
            table.fault(name, "carries the token: set it by auth and token");
        } else if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            table.fault(name, "is given twice: case does not tell headers apart");
        } else if let Some(value) = value {
            headers.push((name.to_owned(), value));
        }
    }
    headers
}

fn header_name(text: &str) -> Result<String, String> {
    HeaderName::from_bytes(text.as_bytes()).map_err(|_| "is not the name of a header".to_owned())?;
    if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(text)) {
        return Err("is set by every call itself".to_owned());
    }
    Ok(text.to_owned())
}

fn header_value(text: &str) -> Result<String, String> {
    let value = HeaderValue::from_str(text).map(|_| text.to_owned());
    value.map_err(|_| "holds a character that no header may carry".to_owned())
}

/// The endpoints configured, and those of the three kinds whether configured or not.
fn endpoints(
    section: &Section<'_>,
    channel: &ChannelName,
    setting: Setting<'_>,
    horizon: Duration,
) -> BTreeMap<EndpointName, Endpoint> {
    let retry = RetryPolicy { retry_after_horizon: horizon, ..RetryPolicy::default() };
    let of_kind = |name: &EndpointName| Endpoint {
        path: default_path(channel, name),
        pauses: Pauses::default(),
        timeout: None,
        retry: retry.clone(),
        limits: Vec::new(),
    };
    let mut endpoints: BTreeMap<_, _> = Kind::ALL
        .iter()
        .filter_map(|kind| EndpointName::try_new(kind.endpoint()).ok())
        .map(|name| (name.clone(), of_kind(&name)))
        .collect();
    let Some(table) = section.section("endpoints") else { return endpoints };
    for (name, node) in table.entries() {
        let path = table.key(name);
        let slug = EndpointName::try_new(name);
        if let Err(error) = &slug {
            table.fault(name, format!("the name of an endpoint {error}"));
        }
        // Under a name that is none, the other faults of the endpoint are still worth telling.
        let Ok(slug) = slug.or_else(|_| EndpointName::try_new("unnamed")) else { continue };
        if let Some(section) = Section::open(node, path, table.faults) {
            let endpoint = endpoint(&section, channel, &slug, setting, &retry);
            endpoints.insert(slug, endpoint);
        }
    }
    endpoints
}

fn default_path(channel: &ChannelName, endpoint: &EndpointName) -> String {
    let of_kind = Kind::ALL.iter().any(|kind| kind.endpoint() == endpoint.as_str());
    if of_kind { format!("/{channel}/{endpoint}/sync") } else { String::new() }
}

fn endpoint(
    section: &Section<'_>,
    channel: &ChannelName,
    name: &EndpointName,
    setting: Setting<'_>,
    inherited: &RetryPolicy,
) -> Endpoint {
    section.only(ENDPOINT_KEYS, belongs);
    let path = section.parsed("path", |text| {
        let clean = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.starts_with('/') && clean && !text.contains('#') {
            Ok(text.replace("{ota}", channel.as_str()))
        } else {
            Err("must begin with / and hold neither blanks nor #".to_owned())
        }
    });
    let words = [("lane", Pauses::Lane), ("property", Pauses::Property), ("account", Pauses::Account)];
    let mut retry = inherited.clone();
    if let Some(section) = section.section("retry") {
        read_retry(&section, &mut retry);
    }
    retry.retry_after_horizon = horizon(section).unwrap_or(retry.retry_after_horizon);
    let place = format!("{channel}/{name}");
    Endpoint {
        path: path.unwrap_or_else(|| default_path(channel, name)),
        pauses: section.word("pauses", &words).unwrap_or_default(),
        timeout: timeout(section),
        retry,
        limits: limits::of(section, &place, setting.shared, setting.retention),
    }
}

fn read_retry(section: &Section<'_>, retry: &mut RetryPolicy) {
    section.only(RETRY_KEYS, belongs);
    retry.initial = section.duration("initial", MILLISECOND..=HOUR * 24).unwrap_or(retry.initial);
    retry.jitter = section.duration("jitter", Duration::ZERO..=HOUR * 24).unwrap_or(retry.jitter);
    let number =
        |key: &str, most: u64| section.integer(key, 1..=most).and_then(|value| u32::try_from(value).ok());
    retry.factor = number("factor", 100).unwrap_or(retry.factor);
    retry.max_attempts = number("max_attempts", 1000).unwrap_or(retry.max_attempts);
    let cap = section.duration("cap", MILLISECOND..=HOUR * 24);
    retry.cap = cap.unwrap_or(retry.cap);
    if retry.initial > retry.cap {
        let key = if section.get("cap").is_some() { "cap" } else { "initial" };
        section.fault(key, "cap (60s if not given) must not be shorter than initial");
    }
}
