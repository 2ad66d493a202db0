//! The endpoints that look into the OTA and steer it; none of them counts as a call.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::config::{ConfigError, OutageKind};
use crate::reaction::Answer;

use super::Desk;

/// Answers a control call.
pub(super) fn answer(desk: &Desk, call: &Call) -> Answer {
    let path = call.path.split('?').next().unwrap_or_default();
    let result = match (&call.method, path) {
        (&Method::GET, "/_sim/books") => json_of(&desk.ota.books(desk.now())),
        (&Method::GET, "/_sim/arrivals") => lines_of(&desk.ota.arrivals()),
        (&Method::GET, "/_sim/cells") => {
            json_of(&json!({ "cells": desk.ota.cells(), "inventory": desk.ota.inventory() }))
        }
        (&Method::GET, "/_sim/config") => json_of(&desk.ota.config()),
        (&Method::POST, "/_sim/config") => patch(desk, call),
        (&Method::POST, "/_sim/outage") => outage(desk, call),
        (&Method::POST, "/_sim/token") => token(desk, call),
        (&Method::POST, "/_sim/reset") => {
            desk.ota.reset(desk.now());
            json_of(&json!({ "reset": true }))
        }
        _ => Err(Fault::NoSuch),
    };
    match result {
        Ok((media, body)) => of(StatusCode::OK, media, body),
        Err(Fault::NoSuch) => of(
            StatusCode::NOT_FOUND,
            JSON,
            json!({ "error": "there is GET /_sim/books, arrivals, cells, config and POST /_sim/config, outage, token, reset" })
                .to_string()
                .into(),
        ),
        Err(Fault::Bad(fault)) => {
            of(StatusCode::UNPROCESSABLE_ENTITY, JSON, json!({ "faults": fault.faults }).to_string().into())
        }
    }
}

enum Fault {
    NoSuch,
    Bad(ConfigError),
}

impl From<ConfigError> for Fault {
    fn from(fault: ConfigError) -> Self {
        Self::Bad(fault)
    }
}

type Done = Result<(&'static str, Bytes), Fault>;

const JSON: &str = "application/json";

fn of(status: StatusCode, media: &'static str, body: Bytes) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(media));
    Answer { status, headers, body }
}

fn bytes_of(value: &impl Serialize) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|fault| Fault::Bad(ConfigError::one("", fault.to_string())))
}

fn json_of(value: &impl Serialize) -> Done {
    bytes_of(value).map(|bytes| (JSON, bytes.into()))
}

fn lines_of(values: &[impl Serialize]) -> Done {
    let mut lines = Vec::new();
    for value in values {
        lines.extend(bytes_of(value)?);
        lines.push(b'\n');
    }
    Ok(("application/x-ndjson", lines.into()))
}

/// The body's table without `channel`, and that.
fn table(call: &Call) -> Result<(Map<String, Value>, Option<String>), ConfigError> {
    let body = if call.body.is_empty() { b"{}".as_slice() } else { &call.body };
    let mut table: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|fault| ConfigError::one("", format!("is not a JSON object: {fault}")))?;
    match table.remove("channel") {
        None => Ok((table, None)),
        Some(Value::String(channel)) => Ok((table, Some(channel))),
        Some(other) => Err(ConfigError::one("channel", format!("must be a slug, not {other}"))),
    }
}

fn named(channel: Option<String>) -> Result<String, ConfigError> {
    channel.ok_or_else(|| ConfigError::one("channel", "is missing"))
}

fn patch(desk: &Desk, call: &Call) -> Done {
    let (table, channel) = table(call)?;
    let channel = named(channel)?;
    desk.ota.patch_json(desk.now(), &channel, &Value::Object(table))?;
    json_of(&json!({ "changed": channel }))
}

fn outage(desk: &Desk, call: &Call) -> Done {
    let (mut table, channel) = table(call)?;
    let mut take = |key: &str| match table.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(ConfigError::one(key, format!("must be a text, not {other}"))),
        None => Err(ConfigError::one(key, "is missing")),
    };
    let (kind, lasts) = (take("kind")?, take("for")?);
    let kind = OutageKind::named(&kind).ok_or_else(|| {
        ConfigError::one("kind", format!("must be one of 503, refuse, cut, hang, not {kind:?}"))
    })?;
    let lasts = crate::at::parse_span(&lasts).filter(|lasts| *lasts > Duration::ZERO).ok_or_else(|| {
        ConfigError::one("for", format!("must be a duration such as \"5s\", not {lasts:?}"))
    })?;
    if let Some(key) = table.keys().next() {
        return Err(ConfigError::one(key, "is not a key here; known are channel, kind, for").into());
    }
    let channel = named(channel)?;
    desk.ota.outage(desk.now(), (channel != "*").then_some(channel.as_str()), kind, lasts);
    json_of(&json!({ "away": channel }))
}

fn token(desk: &Desk, call: &Call) -> Done {
    let (mut table, channel) = table(call)?;
    let token = match table.remove("token") {
        None => None,
        Some(Value::String(token)) if !token.is_empty() => Some(token),
        Some(other) => return Err(ConfigError::one("token", format!("must be a text, not {other}")).into()),
    };
    if let Some(key) = table.keys().next() {
        return Err(ConfigError::one(key, "is not a key here; known are channel, token").into());
    }
    let accepted = desk.ota.rotate_token(desk.now(), &named(channel)?, token.as_deref())?;
    json_of(&json!({ "accepted": accepted }))
}
