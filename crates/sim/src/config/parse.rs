//! From a tree of values to a checked [`Config`] or [`Patch`].

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::channel::EndpointPatch;
use super::read::{Faults, Table, count, flag, long, number, span, text, word};
use super::{
    Act, Auth, Change, Channel, Config, ConfigError, Each, Fault, Kind, Latency, Limit, Outage, OutageKind,
    OverLimit, Patch, Pauses, RetryAfter, Rule, Share, Tail, Token,
};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn config(value: &Value) -> Result<Config, ConfigError> {
    let faults = Faults::default();
    let mut config = Config::default();
    if let Some(mut table) = Table::open("", value, &faults) {
        let t = &mut table;
        if let Some(seed) = t.get("seed", number) {
            config.seed = seed;
        }
        config.epoch = t.get("epoch", instant);
        if let Some(keep) = t.get("keep_arrivals", number) {
            config.keep_arrivals = usize::try_from(keep).unwrap_or(usize::MAX);
        }
        if let Some(only) = t.get("only_listed", flag) {
            config.only_listed = only;
        }
        if let Some(value) = t.take("any")
            && let Some(any) = channel("any", value, &faults)
        {
            config.any = any;
        }
        config.channels = t.tables("channels", channel).into_iter().collect();
        for slug in config.channels.keys().filter(|slug| !is_slug(slug)) {
            faults.add(format!("channels.{slug}"), "a slug is 1 to 64 of a-z, 0-9, _ and -");
        }
        config.changes = t.list("changes", change).unwrap_or_default();
        table.close();
        check_changes(&config, &faults);
    }
    done(config, faults)
}

/// Reads a patch and checks the channel it would make.
pub(crate) fn patch_of(channel: &Channel, path: &str, value: &Value) -> Result<Patch, ConfigError> {
    let faults = Faults::default();
    let patch = Table::open(path, value, &faults).map(|mut table| {
        let patch = patch(&mut table);
        table.close();
        patch
    });
    let patch = patch.unwrap_or_default();
    let mut changed = channel.clone();
    patch.apply(&mut changed);
    check_channel(path, &changed, &faults);
    done(patch, faults)
}

fn done<T>(value: T, faults: Faults) -> Result<T, ConfigError> {
    let faults = faults.into_inner();
    if faults.is_empty() { Ok(value) } else { Err(ConfigError { faults }) }
}

/// Whether a path segment can name a channel.
pub(crate) fn is_slug(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(allowed) && text != "_sim"
}

fn channel(path: &str, value: &Value, faults: &Faults) -> Option<Channel> {
    let mut table = Table::open(path, value, faults)?;
    let mut channel = Channel::default();
    patch(&mut table).apply(&mut channel);
    table.close();
    check_channel(path, &channel, faults);
    Some(channel)
}

fn change(path: &str, value: &Value, faults: &Faults) -> Option<Change> {
    let mut table = Table::open(path, value, faults)?;
    let at = table.need("at", span);
    let channel = table.need("channel", text);
    let patch = patch(&mut table);
    table.close();
    Some(Change { at: at?, channel: channel?, patch })
}

/// Tries the changes in their order, so that each is checked against the channel it will meet.
fn check_changes(config: &Config, faults: &Faults) {
    let mut tried = config.clone();
    for (at, change) in config.changes.iter().enumerate() {
        let path = format!("changes[{at}]");
        match tried.of(&change.channel).cloned() {
            None => faults.add(format!("{path}.channel"), format!("{:?} is not listed", change.channel)),
            Some(mut channel) => {
                change.patch.apply(&mut channel);
                check_channel(&path, &channel, faults);
                tried.channels.insert(change.channel.clone(), channel);
            }
        }
    }
}

/// What no single key shows.
fn check_channel(path: &str, channel: &Channel, faults: &Faults) {
    let mut paths = BTreeSet::new();
    for (name, endpoint) in &channel.endpoints {
        if !endpoint.path.starts_with('/') {
            faults.add(format!("{path}.endpoints.{name}.path"), "must begin with /");
        }
        if !paths.insert(&endpoint.path) {
            faults.add(format!("{path}.endpoints.{name}.path"), "is the path of another endpoint");
        }
    }
    for (at, fault) in channel.faults.iter().enumerate() {
        if let Some(name) = &fault.endpoint
            && !channel.endpoints.contains_key(name)
        {
            faults.add(format!("{path}.faults[{at}].endpoint"), format!("{name:?} is not an endpoint here"));
        }
    }
}

fn patch(t: &mut Table<'_>) -> Patch {
    Patch {
        limits: t.list("limits", limit),
        endpoints: t.tables("endpoints", endpoint).into_iter().collect(),
        latency: t.take("latency").and_then(|value| latency(&t.key("latency"), value, t.faults())),
        over_limit: t
            .take("over_limit")
            .and_then(|value| over_limit(&t.key("over_limit"), value, t.faults())),
        retry_after: forms(t, "retry_after"),
        pauses: t.get("pauses", word(pauses, "endpoint, property, channel")),
        pause_grace: t.get("pause_grace", span),
        pause_horizon: t.get("pause_horizon", span),
        date_skew: t.get("date_skew", skew),
        auth: t.take("auth").and_then(|value| auth(&t.key("auth"), value, t.faults())),
        faults: t.list("faults", fault),
        outages: t.list("outages", outage),
        strict: t.get("strict", flag),
        confirmation: t.get("confirmation", flag),
        idempotent: t.get("idempotent", flag),
    }
}

fn endpoint(path: &str, value: &Value, faults: &Faults) -> Option<EndpointPatch> {
    let mut t = Table::open(path, value, faults)?;
    let patch = EndpointPatch {
        path: t.get("path", text),
        kind: t.get("kind", word(kind, "rate, availability, restriction, other")),
        limits: t.list("limits", limit),
    };
    t.close();
    Some(patch)
}

fn limit(path: &str, value: &Value, faults: &Faults) -> Option<Limit> {
    let mut t = Table::open(path, value, faults)?;
    let rule = match t.need("kind", text)?.as_str() {
        "sliding_window" => {
            let (max, per) = (t.need("max", count), t.need("per", long));
            max.zip(per).map(|(max, per)| Rule::SlidingWindow { max, per })
        }
        "fixed_window" => {
            let (max, per) = (t.need("max", count), t.need("per", long));
            let time_zone = t.get("time_zone", zone).unwrap_or(TimeZone::UTC);
            if per.is_some_and(|per| per > DAY) {
                t.fault("per", "must be at most 1d: the clock's windows end with the day");
            }
            max.zip(per).map(|(max, per)| Rule::FixedWindow { max, per, time_zone })
        }
        "token_bucket" => {
            let (rate, per, burst) = (t.need("rate", count), t.need("per", long), t.need("burst", count));
            rate.zip(per).zip(burst).map(|((rate, per), burst)| Rule::TokenBucket { rate, per, burst })
        }
        "concurrency" => t.need("max", count).map(|max| Rule::Concurrency { max }),
        other => {
            t.fault(
                "kind",
                format!("must be sliding_window, fixed_window, token_bucket or concurrency, not {other:?}"),
            );
            return None;
        }
    };
    let limit = Limit {
        name: t.get("name", text),
        each: t.get("each", word(each, "account, property")).unwrap_or_default(),
        hidden: t.get("hidden", flag).unwrap_or(false),
        count_refused: t.get("count_refused", flag).unwrap_or(false),
        rule: rule.unwrap_or(Rule::Concurrency { max: 1 }),
    };
    t.close();
    Some(limit)
}

fn latency(path: &str, value: &Value, faults: &Faults) -> Option<Latency> {
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

fn over_limit(path: &str, value: &Value, faults: &Faults) -> Option<OverLimit> {
    if value == "refuse" {
        return Some(OverLimit::Refuse);
    }
    let mut t = Table::open(path, value, faults)?;
    let by = t.need("slow", long);
    t.close();
    by.map(OverLimit::Slow)
}

fn forms(t: &mut Table<'_>, key: &str) -> Option<Vec<RetryAfter>> {
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

fn auth(path: &str, value: &Value, faults: &Faults) -> Option<Auth> {
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

fn fault(path: &str, value: &Value, faults: &Faults) -> Option<Fault> {
    let mut t = Table::open(path, value, faults)?;
    let act = act(&mut t);
    let fault = Fault {
        act: act.unwrap_or(Act::Cut),
        share: t.get("share", share).unwrap_or(Share::ALL),
        endpoint: t.get("endpoint", text),
        properties: t.get("properties", texts).unwrap_or_default(),
        nth: t.get("nth", counts).unwrap_or_default(),
        every: t.get("every", count),
        at: t.get("at", span).unwrap_or_default(),
        lasts: t.get("for", long),
        times: t.get("times", count),
    };
    t.close();
    Some(fault)
}

const ACTS: &str = "status, a status such as \"503\", redirect, cut, commit_then_cut, commit_then_status, \
    commit_then_500, cut_in_answer, hang, commit_then_hang, drip, huge, garbage, refuse, slow";

fn act(t: &mut Table<'_>) -> Option<Act> {
    let name = t.need("act", text)?;
    Some(match name.as_str() {
        "status" => Act::Status {
            status: t.need("status", status)?,
            retry_after: forms(t, "retry_after").and_then(|forms| forms.into_iter().next()),
            body: t.get("body", text),
        },
        "redirect" => Act::Redirect {
            location: t.get("location", header_text).unwrap_or_else(|| "/elsewhere".to_owned()),
        },
        "cut" => Act::Cut,
        "commit_then_cut" => Act::CommitThenCut,
        "commit_then_500" => Act::CommitThenStatus { status: 500 },
        "commit_then_status" => Act::CommitThenStatus { status: t.need("status", status)? },
        "cut_in_answer" => Act::CutInAnswer,
        "hang" => Act::Hang,
        "commit_then_hang" => Act::CommitThenHang,
        "drip" => Act::Drip { interval: t.get("interval", long).unwrap_or(Duration::from_millis(100)) },
        "huge" => Act::Huge { bytes: t.get("bytes", count).unwrap_or(1 << 30) },
        "garbage" => Act::Garbage,
        "refuse" => Act::Refuse,
        "slow" => Act::Slow { by: t.need("by", long)? },
        other => {
            let Some(status) = other.parse().ok().filter(|s| (200..=599).contains(s)) else {
                t.fault("act", format!("must be one of {ACTS}, not {other:?}"));
                return None;
            };
            Act::Status {
                status,
                retry_after: forms(t, "retry_after").and_then(|forms| forms.into_iter().next()),
                body: t.get("body", text),
            }
        }
    })
}

fn outage(path: &str, value: &Value, faults: &Faults) -> Option<Outage> {
    let mut t = Table::open(path, value, faults)?;
    let (at, lasts) = (t.need("at", span), t.need("for", long));
    let kind = t.need("kind", word(OutageKind::named, "503, refuse, cut, hang"));
    t.close();
    Some(Outage { at: at?, lasts: lasts?, kind: kind? })
}

fn kind(name: &str) -> Option<Kind> {
    match name {
        "rate" => Some(Kind::Rate),
        "availability" => Some(Kind::Availability),
        "restriction" => Some(Kind::Restriction),
        "other" => Some(Kind::Other),
        _ => None,
    }
}

fn each(name: &str) -> Option<Each> {
    match name {
        "account" => Some(Each::Account),
        "property" => Some(Each::Property),
        _ => None,
    }
}

fn pauses(name: &str) -> Option<Pauses> {
    match name {
        "endpoint" => Some(Pauses::Endpoint),
        "property" => Some(Pauses::Property),
        "channel" => Some(Pauses::Channel),
        _ => None,
    }
}

fn share(value: &Value) -> Result<Share, String> {
    let text = value.as_number().map(ToString::to_string).unwrap_or_default();
    Share::parse(&text).ok_or_else(|| {
        format!("must be a number from 0 to 1 with at most six digits after the point, not {value}")
    })
}

fn skew(value: &Value) -> Result<i64, String> {
    let within = |secs: &i64| secs.abs() <= 366 * 86_400;
    value.as_i64().filter(within).ok_or_else(|| format!("must be whole seconds within a year, not {value}"))
}

fn status(value: &Value) -> Result<u16, String> {
    let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
    status
        .filter(|s| (200..=599).contains(s))
        .ok_or_else(|| format!("must be a status from 200 to 599, not {value}"))
}

fn header(value: &Value) -> Result<String, String> {
    let name = text(value)?;
    http::HeaderName::try_from(&name)
        .map(|_| name)
        .map_err(|_| format!("must be a header's name, not {value}"))
}

fn header_text(value: &Value) -> Result<String, String> {
    let content = text(value)?;
    http::HeaderValue::try_from(&content).map(|_| content).map_err(|_| "cannot stand in a header".to_owned())
}

fn zone(value: &Value) -> Result<TimeZone, String> {
    TimeZone::get(&text(value)?).map_err(|_| format!("must be an IANA time zone, not {value}"))
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or("must be a list of texts")?;
    list.iter().map(text).collect()
}

fn counts(value: &Value) -> Result<Vec<u64>, String> {
    if value.is_number() {
        return Ok(vec![count(value)?]);
    }
    let list = value.as_array().ok_or("must be a number or a list of numbers")?;
    list.iter().map(count).collect()
}

/// A text, or TOML's own date and time.
fn instant(value: &Value) -> Result<Timestamp, String> {
    let toml = value.as_object().and_then(|map| map.values().next());
    let text = toml.unwrap_or(value).as_str().unwrap_or_default();
    text.parse().map_err(|_| format!("must be an instant such as 2026-09-20T10:00:00Z, not {value}"))
}
