//! `export`: what became of mutations, for other programs.

use std::io::Write;

use anyhow::Context;
use ota_governor::core::mutation::Mutation;
use ota_governor::core::state::State;
use ota_governor::core::time::{Timestamp, parse_duration};
use ota_governor::ledger::{Filter, Ledger};
use serde_json::{Value, json};

use crate::arguments::ExportCommittedArguments;
use crate::exit::Exit;
use crate::words;

/// How many rows are read at a time.
const PAGE: usize = 1000;

pub(crate) async fn committed(
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: &ExportCommittedArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let since = since(&arguments.since, now)?;
    let filter = Filter { state: Some(State::Committed), changed_since: Some(since), ..Filter::default() };
    let mut after = None;
    loop {
        let page = ledger.list(&filter, after, PAGE).await?;
        for record in &page {
            let line = json!({
                "correlation_id": record.mutation.correlation_id,
                "confirmation_id": record.confirmation_id,
                "cell": cell(&record.mutation),
                "time": words::instant(record.changed_at),
            });
            writeln!(out, "{line}")?;
        }
        after = page.last().map(|record| record.id);
        if after.is_none() {
            return Ok(Exit::Done);
        }
    }
}

/// A cell as JSON, part by part.
pub(super) fn cell(mutation: &Mutation) -> Value {
    json!({
        "ota": mutation.ota,
        "account": mutation.account,
        "kind": mutation.kind(),
        "property_id": mutation.property_id,
        "room_type_code": mutation.room_type_code,
        "rate_plan_code": mutation.rate_plan_code,
        "stay_date": mutation.stay_date.to_string(),
    })
}

fn since(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    if let Ok(ago) = parse_duration(text) {
        return Ok(now - ago);
    }
    let instant: jiff::Timestamp = text.parse().with_context(|| {
        format!("reading --since {text:?}: write 2026-09-20T00:00:00Z, or 24h for so long ago")
    })?;
    Ok(Timestamp::from_jiff(instant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_time_or_so_long_ago() {
        let now = Timestamp::from_micros(1_789_898_400_000_000);
        assert_eq!(since("24h", now).unwrap().to_string(), "2026-09-19T10:00:00Z");
        assert_eq!(since("2026-09-20T02:00:00+02:00", now).unwrap().to_string(), "2026-09-20T00:00:00Z");
        assert!(since("yesterday", now).is_err());
    }
}
