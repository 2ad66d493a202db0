//! Reading how and whom a channel answers.

use serde_json::Value;

use super::words::{header, share};
use crate::config::read::{Faults, Table, count, long, span, text};
use crate::config::{Auth, Latency, OverLimit, RetryAfter, Tail, Token};

pub(super) fn forms(t: &mut Table<'_>, key: &str) -> Option<Vec<RetryAfter>> {
    let value = t.take(key)?;
    if value.is_array() {
        return t.list(key, form);
    }
    form(&t.key(key), value, t.faults()).map(|form| vec![form])
}

const FORMS: &str =
    "absent, seconds, imf_fixdate, rfc850, asctime, decimal, past, a number, or { raw = \"…\" }";

fn form(path: &str, value: &Value, faults: &Faults) -> Option<RetryAfter> {
    if let Some(secs) = value.as_u64() {
        return Some(RetryAfter::Seconds(secs));
    }
    if let Some(name) = value.as_str() {
        let form = RetryAfter::named(name, None);
        if form.is_none() {
            faults.add(path, format!("must be one of {FORMS}, not {name:?}"));
        }
        return form;
    }
    let mut t = Table::open(path, value, faults)?;
    let raw = t.get("raw", text);
    let name = t.get("form", text);
    let wait = t.get("wait", span);
    let form = match (raw, name) {
        (Some(raw), None) => Some(RetryAfter::Raw(raw)),
        (None, Some(name)) => {
            let form = RetryAfter::named(&name, wait);
            if form.is_none() {
                t.fault("form", format!("must be one of {FORMS}, not {name:?}"));
            }
            form
        }
        _ => {
            faults.add(path, "must have either form or raw");
            None
        }
    };
    t.close();
    form
}

pub(super) fn auth(path: &str, value: &Value, faults: &Faults) -> Option<Auth> {
    let mut t = Table::open(path, value, faults)?;
    let usual = Auth::default();
    let auth = Auth {
        header: t.get("header", header).unwrap_or(usual.header),
        prefix: t.get("prefix", text).unwrap_or(usual.prefix),
        tokens: t.list("tokens", token).unwrap_or_default(),
    };
    t.close();
    Some(auth)
}

fn token(path: &str, value: &Value, faults: &Faults) -> Option<Token> {
    if let Some(value) = value.as_str() {
        return Some(Token::new(value));
    }
    let mut t = Table::open(path, value, faults)?;
    let (value, expires_at, after_calls) =
        (t.need("value", text), t.get("expires_at", span), t.get("after_calls", count));
    t.close();
    Some(Token { value: value?, expires_at, after_calls })
}

pub(super) fn latency(path: &str, value: &Value, faults: &Faults) -> Option<Latency> {
    let mut t = Table::open(path, value, faults)?;
    let usual = Latency::default();
    let (min, max) = (t.get("min", span).unwrap_or(usual.min), t.get("max", span).unwrap_or(usual.max));
    let tail = t.take("tail").and_then(|value| tail(&t.key("tail"), value, faults));
    if min > max {
        t.fault("max", "must not be below min");
    }
    t.close();
    Some(Latency { min, max, tail })
}

fn tail(path: &str, value: &Value, faults: &Faults) -> Option<Tail> {
    let mut t = Table::open(path, value, faults)?;
    let (share, min, max) = (t.need("share", share), t.need("min", span), t.need("max", span));
    if min > max {
        t.fault("max", "must not be below min");
    }
    t.close();
    Some(Tail { share: share?, min: min?, max: max? })
}

pub(super) fn over_limit(path: &str, value: &Value, faults: &Faults) -> Option<OverLimit> {
    if value == "refuse" {
        return Some(OverLimit::Refuse);
    }
    let mut t = Table::open(path, value, faults)?;
    let by = t.need("slow", long);
    t.close();
    by.map(OverLimit::Slow)
}
