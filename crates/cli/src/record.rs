//! One mutation in full: its facts and its history.

use std::io::{self, Write};

use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Attempt, Record};

use crate::words;

/// Writes what the ledger knows of a mutation, one fact a line, then its requests.
pub(crate) fn write(record: &Record, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let mutation = &record.mutation;
    let mut facts: Vec<(&str, String)> = vec![
        ("lane", mutation.lane().to_string()),
        ("cell", words::cell(mutation)),
        ("value", words::value(mutation)),
        ("revision", record.revision.to_string()),
        ("priority", mutation.priority.to_string()),
        ("accepted", words::relative(record.accepted_at, now)),
    ];
    let mut fact = |name: &'static str, text: Option<String>| facts.extend(text.map(|text| (name, text)));
    fact("batch", mutation.batch.as_ref().map(ToString::to_string));
    fact("sequence", mutation.sequence.map(|sequence| sequence.to_string()));
    fact("expires", record.expires.map(|at| words::relative(at, now)));
    fact("replaced", record.replaced.as_ref().map(ToString::to_string));
    fact("superseded by", record.superseded_by.as_ref().map(ToString::to_string));
    fact("reason", record.reason.clone());
    fact("due", record.due.map(|at| words::relative(at, now)));
    fact("confirmation", record.confirmation_id.clone());
    fact(
        "attempts",
        Some(format!(
            "{} counted, {} requests sent, {} answered 429",
            record.attempts, record.requests, record.throttled
        )),
    );
    fact("last status", record.last_status.map(|status| status.to_string()));
    fact("last answer", record.last_answer.as_deref().map(printable));
    fact("key", Some(record.idempotency_key.clone()));
    for (name, text) in facts {
        writeln!(out, "{name:<13}  {text}")?;
    }
    if record.history.is_empty() {
        return Ok(());
    }
    writeln!(out, "history, the oldest first")?;
    for attempt in &record.history {
        writeln!(out, "  {}", line(attempt))?;
    }
    Ok(())
}

fn line(attempt: &Attempt) -> String {
    let took = words::about(attempt.sent_at.until(attempt.answered_at));
    let status = attempt.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let mut line = format!("{}  {status} after {took}", words::instant(attempt.sent_at));
    if let Some(wait) = &attempt.retry_after {
        line.push_str("  Retry-After ");
        line.push_str(&printable(wait));
    }
    if !attempt.counted {
        line.push_str("  (not counted)");
    }
    if let Some(answer) = &attempt.answer {
        line.push_str("  ");
        line.push_str(&printable(answer));
    }
    line
}

/// What a channel wrote, safe for a terminal and on one line.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
