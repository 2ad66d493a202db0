//! Limits, holds, times and cells in words: the same everywhere they are printed.

use std::time::Duration;

use ota_governor::core::limit::{Each, Limit, Rule};
use ota_governor::core::mutation::{Mutation, Value};
use ota_governor::core::time::{Timestamp, show_duration};
use ota_governor::ledger::{Hold, HoldCause};

/// `sliding_window 90 per 1m, burst 3`.
pub(crate) fn rule(limit: &Limit) -> String {
    let rule = match &limit.rule {
        Rule::TokenBucket { rate, per, burst } => {
            format!("token_bucket {rate} per {}, burst {burst}", show_duration(*per))
        }
        Rule::SlidingWindow { max, per, burst } => {
            format!("sliding_window {max} per {}, burst {burst}", show_duration(*per))
        }
        Rule::FixedWindow { max, per, time_zone } => {
            let zone = time_zone.iana_name().unwrap_or("UTC");
            format!("fixed_window {max} per {}, {zone}", show_duration(*per))
        }
        Rule::Concurrency { max } => format!("concurrency {max}"),
    };
    match limit.each {
        Each::Account => rule,
        Each::Property => format!("{rule}, each property"),
        Each::Egress => format!("{rule}, each egress"),
    }
}

/// The steady time between calls; `None` where a limit has no pace.
fn interval(limit: &Limit) -> Option<Duration> {
    let (max, per) = match &limit.rule {
        Rule::TokenBucket { rate: max, per, .. }
        | Rule::SlidingWindow { max, per, .. }
        | Rule::FixedWindow { max, per, .. } => (max, per),
        Rule::Concurrency { .. } => return None,
    };
    Some(share(*per, 1, max.get()))
}

/// The shortest time in which a limit lets `ahead` calls and one more go, its budget being full.
pub(crate) fn shortest_wait(limit: &Limit, ahead: u64) -> Duration {
    match &limit.rule {
        Rule::TokenBucket { rate: max, per, burst } | Rule::SlidingWindow { max, per, burst } => {
            share(*per, ahead.saturating_add(1).saturating_sub(burst.get()), max.get())
        }
        // The first edge may be now; the others are a window apart.
        Rule::FixedWindow { max, per, .. } => {
            let edges = ahead.checked_div(max.get()).unwrap_or(0);
            share(*per, edges.saturating_sub(1), 1)
        }
        Rule::Concurrency { .. } => Duration::ZERO,
    }
}

/// `count` of the `max` parts of a period.
fn share(per: Duration, count: u64, max: u64) -> Duration {
    let micros = per.as_micros().saturating_mul(u128::from(count)).checked_div(u128::from(max));
    Duration::from_micros(micros.and_then(|micros| u64::try_from(micros).ok()).unwrap_or(u64::MAX))
}

/// `one every 667ms`; `-` where a limit has no pace.
pub(crate) fn pace(limit: &Limit) -> String {
    interval(limit).map_or_else(|| "-".to_owned(), |interval| format!("one every {}", about(interval)))
}

/// The most calls at once.
pub(crate) fn burst(limit: &Limit) -> u64 {
    match &limit.rule {
        Rule::TokenBucket { burst, .. } | Rule::SlidingWindow { burst, .. } => burst.get(),
        Rule::FixedWindow { max, .. } | Rule::Concurrency { max } => max.get(),
    }
}

/// The most calls that any trailing window can hold: `at most 90 in any 1m`.
pub(crate) fn worst_window(limit: &Limit) -> String {
    match &limit.rule {
        Rule::TokenBucket { rate, per, burst } => {
            format!("at most {} in any {}", rate.get().saturating_add(burst.get()), show_duration(*per))
        }
        Rule::SlidingWindow { max, per, .. } => format!("at most {max} in any {}", show_duration(*per)),
        Rule::FixedWindow { max, per, .. } => {
            let across = max.get().saturating_mul(2);
            format!("at most {max} from edge to edge, {across} in any {} across one", show_duration(*per))
        }
        Rule::Concurrency { max } => format!("at most {max} in flight"),
    }
}

/// A duration without digits nobody reads.
pub(crate) fn about(length: Duration) -> String {
    let micros = length.as_micros();
    let step = match micros {
        0..10_000 => 1,
        10_000..60_000_000 => 1_000,
        _ => 1_000_000,
    };
    let rounded = (micros + step / 2) / step * step;
    show_duration(Duration::from_micros(u64::try_from(rounded).unwrap_or(u64::MAX)))
}

/// An instant to the millisecond, in UTC.
pub(crate) fn instant(at: Timestamp) -> String {
    format!("{:.3}", at.to_jiff())
}

/// `2026-09-20T10:02:00.000Z (in 2m)`, or `(2m ago)`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("{} (in {})", instant(at), about(now.until(at)))
    } else {
        format!("{} ({} ago)", instant(at), about(now.since(at)))
    }
}

/// What a cause is called.
pub(crate) const fn cause(cause: HoldCause) -> &'static str {
    match cause {
        HoldCause::Throttled => "throttled",
        HoldCause::Breaker => "breaker",
        HoldCause::TokenRefresh => "token_refresh",
        HoldCause::AccountSuspended => "account_suspended",
        HoldCause::LaneSuspended => "lane_suspended",
        HoldCause::Manual => "manual",
    }
}

/// `throttled until 10:02:00 (in 2m): 429 with Retry-After 120`.
pub(crate) fn hold(hold: &Hold, now: Timestamp) -> String {
    let until = match hold.until {
        Some(until) => format!("until {}", relative(until, now)),
        None => "until it is lifted".to_owned(),
    };
    format!("{} {until}: {}", cause(hold.cause), hold.detail)
}

/// `prop_0123abcd DLX BAR 2026-10-01`.
pub(crate) fn cell(mutation: &Mutation) -> String {
    let plan = mutation.rate_plan_code.as_ref().map_or("(every plan)", |plan| plan.as_str());
    format!("{} {} {plan} {}", mutation.property_id, mutation.room_type_code, mutation.stay_date)
}

/// `rate 129.00 EUR, inventory 3`.
pub(crate) fn value(mutation: &Mutation) -> String {
    match &mutation.value {
        Value::Rate { amount, currency, inventory } => {
            format!("rate {amount} {currency}, inventory {}", inventory.get())
        }
        Value::Availability { inventory } => format!("availability {}", inventory.get()),
        Value::Restriction(rules) => {
            let rules = serde_json::to_string(rules).unwrap_or_default();
            format!("restriction {rules}")
        }
    }
}

#[cfg(test)]
mod tests {
    use ota_governor::config::Config;

    use super::*;

    #[test]
    fn limits_are_described_with_pace_burst_and_worst_trailing_window() {
        let text = r#"
            [limits]
            a = { kind = "sliding_window", max = 90, per = "1m" }
            b = { kind = "token_bucket", rate = 20, per = "1s", burst = 40 }
            c = { kind = "fixed_window", max = 1000, per = "1d", time_zone = "Europe/Berlin", each = "property" }
            d = { kind = "concurrency", max = 4 }
        "#;
        let config = Config::parse(text).unwrap();
        let line = |l: &Limit| format!("{} | {} | {} | {}", rule(l), pace(l), burst(l), worst_window(l));
        let lines: Vec<String> = config.limits.values().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        sliding_window 90 per 1m, burst 3 | one every 667ms | 3 | at most 90 in any 1m
        token_bucket 20 per 1s, burst 40 | one every 50ms | 40 | at most 60 in any 1s
        fixed_window 1000 per 1d, Europe/Berlin, each property | one every 1m26s | 1000 | at most 1000 from edge to edge, 2000 in any 1d across one
        concurrency 4 | - | 4 | at most 4 in flight
        ");
    }
}
