//! Reading limits.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::words::{each, zone};
use crate::config::read::{Faults, Table, count, flag, long, text, word};
use crate::config::{Limit, Rule};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn limit(path: &str, value: &Value, faults: &Faults) -> Option<Limit> {
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
