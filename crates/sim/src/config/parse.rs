//! From a tree of values to a checked [`Config`] or [`Patch`].

mod answer;
mod fault;
mod limit;
mod words;

use std::collections::BTreeSet;

use serde_json::Value;

use self::answer::{auth, forms, latency, over_limit};
use self::fault::{fault, outage};
use self::limit::limit;
use self::words::{instant, kind, pauses, skew};
use super::read::{Faults, Table, flag, number, span, text, word};
use super::{Change, Channel, Config, ConfigError, EndpointPatch, Patch};

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
    let read = Table::open(path, value, &faults).map(|mut table| {
        let read = keys(&mut table);
        table.close();
        read
    });
    let read = read.unwrap_or_default();
    let mut changed = channel.clone();
    read.apply(&mut changed);
    check_channel(path, &changed, &faults);
    done(read, faults)
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
    keys(&mut table).apply(&mut channel);
    table.close();
    check_channel(path, &channel, faults);
    Some(channel)
}

fn change(path: &str, value: &Value, faults: &Faults) -> Option<Change> {
    let mut table = Table::open(path, value, faults)?;
    let at = table.need("at", span);
    let channel = table.need("channel", text);
    let read = keys(&mut table);
    table.close();
    Some(Change { at: at?, channel: channel?, patch: read })
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

fn keys(t: &mut Table<'_>) -> Patch {
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
    let read = EndpointPatch {
        path: t.get("path", text),
        kind: t.get("kind", word(kind, "rate, availability, restriction, other")),
        limits: t.list("limits", limit),
    };
    t.close();
    Some(read)
}
