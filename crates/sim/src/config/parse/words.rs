//! Reading single values.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::config::read::{count, text};
use crate::config::{Each, Kind, Pauses, Share};

pub(super) fn kind(name: &str) -> Option<Kind> {
    match name {
        "rate" => Some(Kind::Rate),
        "availability" => Some(Kind::Availability),
        "restriction" => Some(Kind::Restriction),
        "other" => Some(Kind::Other),
        _ => None,
    }
}

pub(super) fn each(name: &str) -> Option<Each> {
    match name {
        "account" => Some(Each::Account),
        "property" => Some(Each::Property),
        _ => None,
    }
}

pub(super) fn pauses(name: &str) -> Option<Pauses> {
    match name {
        "endpoint" => Some(Pauses::Endpoint),
        "property" => Some(Pauses::Property),
        "channel" => Some(Pauses::Channel),
        _ => None,
    }
}

pub(super) fn share(value: &Value) -> Result<Share, String> {
    let text = value.as_number().map(ToString::to_string).unwrap_or_default();
    Share::parse(&text).ok_or_else(|| {
        format!("must be a number from 0 to 1 with at most six digits after the point, not {value}")
    })
}

pub(super) fn skew(value: &Value) -> Result<i64, String> {
    let within = |secs: &i64| secs.abs() <= 366 * 86_400;
    value.as_i64().filter(within).ok_or_else(|| format!("must be whole seconds within a year, not {value}"))
}

pub(super) fn status(value: &Value) -> Result<u16, String> {
    let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
    status
        .filter(|s| (200..=599).contains(s))
        .ok_or_else(|| format!("must be a status from 200 to 599, not {value}"))
}

pub(super) fn header(value: &Value) -> Result<String, String> {
    let name = text(value)?;
    http::HeaderName::try_from(&name)
        .map(|_| name)
        .map_err(|_| format!("must be a header's name, not {value}"))
}

pub(super) fn header_text(value: &Value) -> Result<String, String> {
    let content = text(value)?;
    http::HeaderValue::try_from(&content).map(|_| content).map_err(|_| "cannot stand in a header".to_owned())
}

pub(super) fn zone(value: &Value) -> Result<TimeZone, String> {
    TimeZone::get(&text(value)?).map_err(|_| format!("must be an IANA time zone, not {value}"))
}

pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or("must be a list of texts")?;
    list.iter().map(text).collect()
}

pub(super) fn counts(value: &Value) -> Result<Vec<u64>, String> {
    if value.is_number() {
        return Ok(vec![count(value)?]);
    }
    let list = value.as_array().ok_or("must be a number or a list of numbers")?;
    list.iter().map(count).collect()
}

/// A text, or TOML's own date and time.
pub(super) fn instant(value: &Value) -> Result<Timestamp, String> {
    let toml = value.as_object().and_then(|map| map.values().next());
    let text = toml.unwrap_or(value).as_str().unwrap_or_default();
    text.parse().map_err(|_| format!("must be an instant such as 2026-09-20T10:00:00Z, not {value}"))
}
