//! The form of a call: what a strict receiver insists on.

use std::fmt;
use std::sync::Arc;

use http::Method;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::books::CellKey;
use crate::call::Call;
use crate::config::Kind;

/// What a call says, as far as it can be read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) property: Option<Arc<str>>,
    pub(crate) correlation_id: Option<Box<str>>,
    pub(crate) idempotency_key: Option<Box<str>>,
    pub(crate) cell: Option<Arc<CellKey>>,
    /// The kind's own fields.
    pub(crate) fields: Map<String, Value>,
    /// Everything wrong with it.
    pub(crate) wrong: Vec<String>,
}

/// The members of an object in their order, a name that comes twice included.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Gather;
        impl<'de> Visitor<'de> for Gather {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::with_capacity(10);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Gather)
    }
}

const COMMON: [&str; 6] =
    ["property_id", "room_type_code", "rate_plan_code", "ota", "stay_date", "correlation_id"];
const RESTRICTIONS: [&str; 5] =
    ["min_stay", "max_stay", "closed_to_arrival", "closed_to_departure", "stop_sell"];

impl Kind {
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Rate => &["amount", "currency", "inventory"],
            Self::Availability => &["inventory"],
            Self::Restriction => &RESTRICTIONS,
            Self::Other => &[],
        }
    }
}

/// Reads a call to an endpoint of `kind` of the channel `slug`.
pub(crate) fn read(call: &Call, kind: Kind, slug: &str) -> Read {
    let mut read =
        Read { idempotency_key: call.text_of("x-idempotency-key").map(Into::into), ..Read::default() };
    let members = match serde_json::from_slice::<Members>(&call.body) {
        Ok(Members(members)) => members,
        Err(fault) => {
            if kind != Kind::Other {
                read.wrong.push(format!("body: is not a JSON object: {fault}"));
                headers(call, &mut read);
            }
            return read;
        }
    };
    let mut body = Map::new();
    for (name, value) in members {
        if body.contains_key(&name) {
            read.wrong.push(format!("{name}: is given twice"));
        }
        body.insert(name, value);
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    read.property = text("property_id").map(Into::into);
    read.correlation_id = text("correlation_id").map(Into::into);
    if kind == Kind::Other {
        return read;
    }
    headers(call, &mut read);
    let wrong = &mut read.wrong;
    for name in COMMON {
        match body.get(name) {
            None if name == "rate_plan_code" && kind == Kind::Availability => {}
            None => wrong.push(format!("{name}: is missing")),
            Some(Value::String(text)) => common(name, text, slug, wrong),
            Some(other) => wrong.push(format!("{name}: must be a text, not {other}")),
        }
    }
    let own = kind.fields();
    for name in body.keys().filter(|name| !COMMON.contains(&name.as_str()) && !own.contains(&name.as_str())) {
        wrong.push(format!("{name}: is not a key of this call"));
    }
    for name in own {
        match body.get(*name) {
            Some(value) => {
                if let Some(rule) = broken(name, value) {
                    wrong.push(format!("{name}: {rule}, not {value}"));
                }
            }
            None if kind == Kind::Restriction => {}
            None => wrong.push(format!("{name}: is missing")),
        }
    }
    if kind == Kind::Restriction && !own.iter().any(|name| body.contains_key(*name)) {
        wrong.push(format!("body: sets none of {}", own.join(", ")));
    }
    if let (Some(property), Some(room), Some(date)) =
        (text("property_id"), text("room_type_code"), text("stay_date"))
    {
        read.cell = Some(Arc::new(CellKey {
            channel: slug.to_owned(),
            property_id: property.to_owned(),
            room_type_code: room.to_owned(),
            rate_plan_code: text("rate_plan_code").map(str::to_owned),
            stay_date: date.to_owned(),
            kind,
        }));
    }
    body.retain(|name, _| own.contains(&name.as_str()));
    read.fields = body;
    read
}

fn headers(call: &Call, read: &mut Read) {
    let wrong = &mut read.wrong;
    if call.method != Method::POST {
        wrong.push(format!("method: must be POST, not {}", call.method));
    }
    let media = call.text_of("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        wrong.push(format!("content-type: must be application/json, not {media:?}"));
    }
    let key = read.idempotency_key.as_deref().unwrap_or_default();
    if key.len() != 64 || !key.bytes().all(|b| b.is_ascii_hexdigit()) {
        wrong.push(format!("x-idempotency-key: must be 64 hex digits, not {key:?}"));
    }
    let header = call.text_of("x-correlation-id");
    if header.is_none() || header != read.correlation_id.as_deref() {
        wrong.push(format!(
            "x-correlation-id: must be the body's correlation_id {:?}, not {:?}",
            read.correlation_id.as_deref().unwrap_or_default(),
            header.unwrap_or_default()
        ));
    }
}

fn common(name: &str, text: &str, slug: &str, wrong: &mut Vec<String>) {
    let length = text.chars().count();
    let rule = match name {
        "room_type_code" if !(2..=16).contains(&length) => "must have 2 to 16 characters".to_owned(),
        "rate_plan_code" if !(2..=24).contains(&length) => "must have 2 to 24 characters".to_owned(),
        "correlation_id" if !(1..=64).contains(&length) => "must have 1 to 64 characters".to_owned(),
        "property_id" if text.is_empty() => "must not be empty".to_owned(),
        "ota" if text != slug => format!("must be {slug:?}"),
        "stay_date" if text.len() != 10 || text.parse::<jiff::civil::Date>().is_err() => {
            "must be a date such as 2026-09-20".to_owned()
        }
        _ => return,
    };
    wrong.push(format!("{name}: {rule}, not {text:?}"));
}

/// The rule that a field of the kind breaks.
fn broken(name: &str, value: &Value) -> Option<&'static str> {
    let upto_999 = || value.as_u64().is_some_and(|n| n <= 999);
    let (fine, rule) = match name {
        "amount" => (value.as_str().is_some_and(is_amount), "must be a plain decimal above 0 as a text"),
        "currency" => {
            let code = |text: &str| text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase());
            (value.as_str().is_some_and(code), "must be three capital letters")
        }
        "inventory" | "min_stay" | "max_stay" => (upto_999(), "must be a whole number from 0 to 999"),
        _ => (value.is_boolean(), "must be true or false"),
    };
    (!fine).then_some(rule)
}

/// Digits, at most one point with digits on both sides, not zero.
fn is_amount(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let form = match text.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(text),
    };
    form && text.bytes().any(|b| matches!(b, b'1'..=b'9'))
}
