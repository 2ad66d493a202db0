//! Reading limits: under `[limits.NAME]`, in `limits = [...]`, and by `use = [...]`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use jiff::tz::TimeZone;
use ota_governor_core::limit::{Each, Limit, Rule};
use ota_governor_core::name::{EndpointName, LimitName};
use ota_governor_core::time::show_duration;

use super::section::{Section, nearest};
use super::tree::{Node, Value};

/// The most that a limit may admit: it bounds what a window has to remember.
const MOST: u64 = 1_000_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits under `[limits.NAME]`; `None` where one is faulty.
pub(super) type Shared = BTreeMap<String, Option<Limit>>;

#[derive(Clone, Copy)]
enum Shape {
    TokenBucket,
    SlidingWindow,
    FixedWindow,
    Concurrency,
}

const KINDS: [(&str, Shape); 4] = [
    ("token_bucket", Shape::TokenBucket),
    ("sliding_window", Shape::SlidingWindow),
    ("fixed_window", Shape::FixedWindow),
    ("concurrency", Shape::Concurrency),
];

impl Shape {
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::TokenBucket => &["kind", "each", "rate", "per", "burst"],
            Self::SlidingWindow => &["kind", "each", "max", "per", "burst"],
            Self::FixedWindow => &["kind", "each", "max", "per", "time_zone"],
            Self::Concurrency => &["kind", "each", "max"],
        }
    }
}

/// Reads `[limits.NAME]`.
pub(super) fn shared(section: &Section<'_>, retention: Duration) -> Shared {
    let mut shared = Shared::new();
    for (name, node) in section.entries() {
        let path = section.key(name);
        let slug = EndpointName::try_new(name);
        if let Err(error) = slug {
            section.faults.add(&node.origin, &path, format!("the name of a limit {error}"));
        }
        let limit = Section::open(node, path, section.faults)
            .zip(LimitName::try_new(name).ok())
            .and_then(|(section, name)| limit(&section, name, retention));
        shared.insert(name.to_owned(), limit);
    }
    shared
}

/// The limits of a channel or an endpoint: its own, then the shared ones it lists. `place` begins the
/// names of its own.
pub(super) fn of(section: &Section<'_>, place: &str, shared: &Shared, retention: Duration) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (index, node) in section.array("limits").iter().enumerate() {
        limits.extend(own(node, section, place, index, retention));
    }
    let mut listed: Vec<&str> = Vec::new();
    for (index, (name, origin)) in section.texts("use").into_iter().enumerate() {
        let fault = |rule: String| section.faults.add(origin, &section.key(&format!("use[{index}]")), rule);
        if listed.contains(&name) {
            fault(format!("lists {name:?} twice"));
            continue;
        }
        listed.push(name);
        if let Some(limit) = shared.get(name) {
            limits.extend(limit.clone());
            continue;
        }
        let names: Vec<&str> = shared.keys().map(String::as_str).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("it would stand under [limits.{name}]"),
        };
        fault(format!("there is no limit {name:?}; {hint}"));
    }
    limits
}

fn own(node: &Node, parent: &Section<'_>, place: &str, index: usize, retention: Duration) -> Option<Limit> {
    let section = Section::open(node, parent.key(&format!("limits[{index}]")), parent.faults)?;
    let name = LimitName::try_new(&format!("{place}.limits[{index}]")).ok()?;
    limit(&section, name, retention)
}

fn limit(section: &Section<'_>, name: LimitName, retention: Duration) -> Option<Limit> {
    section.require("kind", "one of token_bucket, sliding_window, fixed_window, concurrency");
    let shape = section.word("kind", &KINDS);
    match shape {
        Some(shape) => section.only(shape.keys(), counterpart),
        None => section.only(&["kind", "each", "rate", "max", "per", "burst", "time_zone"], |_| None),
    }
    let each = section.word("each", &[("property", Each::Property), ("egress", Each::Egress)]);
    let each = each.unwrap_or(Each::Account);
    let rule = match shape? {
        Shape::TokenBucket => {
            let (rate, per) = (count(section, "rate"), period(section, retention));
            let burst = burst(section, rate, per, None);
            Rule::TokenBucket { rate: rate?, per: per?, burst: burst? }
        }
        Shape::SlidingWindow => {
            let (max, per) = (count(section, "max"), period(section, retention));
            let burst = burst(section, max, per, max);
            Rule::SlidingWindow { max: max?, per: per?, burst: burst? }
        }
        Shape::FixedWindow => {
            let (max, per) = (count(section, "max"), period(section, retention));
            let zone = section.parsed("time_zone", zone);
            let time_zone = if section.get("time_zone").is_some() { zone } else { Some(TimeZone::UTC) };
            if per.is_some_and(|per| per > DAY && per.as_micros() % DAY.as_micros() != 0) {
                section.fault("per", "a window longer than a day resets at midnight: it must be whole days");
            }
            Rule::FixedWindow { max: max?, per: per?, time_zone: time_zone? }
        }
        Shape::Concurrency => Rule::Concurrency { max: count(section, "max")? },
    };
    Some(Limit { name, rule, each })
}

/// What a key of another kind of limit is called in this one.
fn counterpart(key: &str) -> Option<String> {
    let hint = match key {
        "max" => "a token_bucket says rate",
        "rate" => "only a token_bucket has a rate, the others say max",
        "burst" => "only token_bucket and sliding_window have a burst",
        "time_zone" => "only a fixed_window hangs on the clock of a time zone",
        "per" => "a concurrency limit has no period",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn count(section: &Section<'_>, key: &str) -> Option<NonZeroU64> {
    section.require(key, "how many calls it admits");
    if section.get(key).is_some_and(|node| matches!(node.value, Value::Integer(0))) {
        section.fault(key, "0 admits no call at all: such a limit can never be met");
        return None;
    }
    section.integer(key, 1..=MOST).and_then(NonZeroU64::new)
}

fn period(section: &Section<'_>, retention: Duration) -> Option<Duration> {
    section.require("per", "the period, such as \"1m\"");
    let per = section.duration("per", Duration::from_millis(1)..=Duration::from_secs(60 * 60 * 24 * 366))?;
    if per > retention {
        let kept = show_duration(retention);
        section
            .fault("per", format!("is longer than ledger.retention ({kept}): its calls would be forgotten"));
        return None;
    }
    Some(per)
}

/// The burst configured, else two seconds' worth of the pace; at most `most`, if that is given.
fn burst(
    section: &Section<'_>,
    count: Option<NonZeroU64>,
    per: Option<Duration>,
    most: Option<NonZeroU64>,
) -> Option<NonZeroU64> {
    if section.get("burst").is_some() {
        let burst = section.integer("burst", 1..=MOST).and_then(NonZeroU64::new)?;
        if let Some(max) = most.filter(|max| burst > *max) {
            section.fault("burst", format!("is over max ({max}): such a burst can never be met"));
            return None;
        }
        return Some(burst);
    }
    let burst = default_burst(count?, per?);
    Some(most.map_or(burst, |max| burst.min(max)))
}

/// Two seconds' worth of `max` calls per `per`, at least 1.
fn default_burst(max: NonZeroU64, per: Duration) -> NonZeroU64 {
    let worth = u128::from(max.get()).saturating_mul(2_000_000).checked_div(per.as_micros());
    let worth = worth.and_then(|worth| u64::try_from(worth).ok()).unwrap_or(u64::MAX);
    NonZeroU64::new(worth.clamp(1, MOST)).unwrap_or(NonZeroU64::MIN)
}

/// An IANA time zone.
pub(super) fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| format!("{name:?} is not an IANA time zone such as \"Europe/Berlin\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_burst_is_two_seconds_worth_and_at_least_one() {
        let burst = |max, per| default_burst(NonZeroU64::new(max).unwrap(), per).get();
        assert_eq!(burst(90, Duration::from_secs(60)), 3);
        assert_eq!(burst(60, Duration::from_secs(60)), 2);
        assert_eq!(burst(20, Duration::from_secs(1)), 40);
        assert_eq!(burst(1, Duration::from_secs(3600)), 1);
    }
}
