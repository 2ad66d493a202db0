//! The checks: the books of both sides held against each other, and against the script.

use std::collections::BTreeMap;
use std::io::Write;

use ota_governor::core::state::State;
use serde_json::Value;

use super::books::{Books, median};
use super::script::{Script, Setting};
use crate::words::about;

/// One thing that must hold.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) holds: bool,
    says: String,
}

/// Checks everything.
pub(super) fn checks(books: &Books, script: &Script, known: u64) -> Vec<Check> {
    vec![
        nothing_is_lost(books, script, known),
        requests_agree(books),
        last_values_stand(books, script),
        never_over(books),
        retry_after_is_obeyed(books),
        dead_letters_are_named(books),
        urgent_ones_pass(books),
    ]
}

/// Writes each check with what came of it.
pub(super) fn write(checks: &[Check], out: &mut dyn Write) -> std::io::Result<()> {
    for Check { holds, says } in checks {
        writeln!(out, "{}  {says}", if *holds { "ok   " } else { "WRONG" })?;
    }
    let failed = checks.iter().filter(|check| !check.holds).count();
    match failed {
        0 => writeln!(out, "both sides' books agree"),
        _ => writeln!(out, "{failed} of {} checks failed", checks.len()),
    }
}

fn nothing_is_lost(books: &Books, script: &Script, known: u64) -> Check {
    let of = |state| books.sum(|channel| channel.count(state));
    let accepted = books.sum(|channel| u64::try_from(channel.records.len()).unwrap_or(u64::MAX));
    let (committed, superseded, dead) =
        (of(State::Committed), of(State::Superseded), of(State::DeadLettered));
    Check {
        holds: known == 0
            && accepted == script.handed_in
            && accepted == committed + superseded + dead
            && superseded == script.superseding,
        says: format!(
            "nothing is lost: {} handed in = {accepted} accepted = {committed} committed + {superseded} \
             superseded by newer values + {dead} dead-lettered",
            script.handed_in,
        ),
    }
}

fn requests_agree(books: &Books) -> Check {
    let sent = books.sum(super::books::Channel::requests);
    let received = books.sum(|channel| channel.received.total.received);
    let committed = books.sum(|channel| channel.count(State::Committed));
    let applied = books.sum(|channel| channel.received.total.committed);
    let each = books.channels.iter().all(|channel| {
        channel.requests() == channel.received.total.received
            && channel.count(State::Committed) == channel.received.total.committed
            && channel.throttled() == channel.received.total.refused
    });
    Check {
        holds: each && books.unrouted == 0,
        says: format!(
            "requests: {sent} sent = {received} received; {committed} committed = {applied} applied, none twice"
        ),
    }
}

fn last_values_stand(books: &Books, script: &Script) -> Check {
    let held: BTreeMap<_, _> = books.cells.iter().map(|book| (book.cell.as_ref(), book)).collect();
    let stands = |setting: &Setting, value: &serde_json::Map<String, Value>| {
        value.get("amount").and_then(Value::as_str) == Some(setting.amount.as_str())
            && value.get("inventory").and_then(Value::as_u64) == Some(setting.inventory)
    };
    let right = script.last.iter().filter(|(cell, setting)| {
        held.get(cell).is_some_and(|book| {
            stands(setting, &book.value)
                && book.applied.last().is_some_and(|id| id.as_ref() == setting.correlation_id)
        })
    });
    let right = right.count();
    Check {
        holds: right == script.last.len() && held.len() == script.last.len(),
        says: format!("last values: stand at the channel in {right} of {} cells", script.last.len()),
    }
}

fn never_over(books: &Books) -> Check {
    let over: Vec<&str> = books
        .channels
        .iter()
        .filter(|channel| channel.ceiling().is_none_or(|limit| limit.over || limit.refused > 0))
        .map(|channel| channel.act.slug)
        .collect();
    let fullest: Vec<String> = books
        .channels
        .iter()
        .map(|channel| format!("{} {} of {}", channel.act.slug, channel.fullest(), channel.act.ceiling))
        .collect();
    let says = if over.is_empty() { "never".to_owned() } else { over.join(", ") };
    Check {
        holds: over.is_empty(),
        says: format!("over limit: {says}, in any trailing minute ({})", fullest.join(", ")),
    }
}

fn retry_after_is_obeyed(books: &Books) -> Check {
    let refused = books.sum(|channel| channel.received.total.refused);
    let into = books.sum(|channel| channel.received.total.into_pause);
    let elsewhere = books.sum(|channel| match channel.act.hidden {
        Some(_) => 0,
        None => channel.received.total.refused,
    });
    Check {
        holds: refused > 0 && into == 0 && elsewhere == 0,
        says: format!("Retry-After: asked for by {refused} answers 429, {into} calls sent into a pause"),
    }
}

fn dead_letters_are_named(books: &Books) -> Check {
    let wanted = books.sum(|channel| u64::from(channel.act.has_unknown));
    let dead: Vec<_> = books
        .channels
        .iter()
        .flat_map(|channel| &channel.records)
        .filter(|record| record.state == State::DeadLettered)
        .collect();
    let as_meant = dead.iter().all(|record| {
        record.last_status == Some(422)
            && record.requests == 1
            && record.mutation.property_id.as_str() == super::stage::UNKNOWN_PROPERTY
    });
    let named: Vec<String> = dead
        .iter()
        .map(|record| {
            let status = record.last_status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            let requests = if record.requests == 1 { "request" } else { "requests" };
            format!(": {} ({status}, {} {requests})", record.mutation.correlation_id, record.requests)
        })
        .collect();
    Check {
        holds: as_meant && u64::try_from(dead.len()) == Ok(wanted),
        says: format!(
            "dead letters: {} of {wanted} as meant{}",
            if as_meant { dead.len() } else { 0 },
            named.concat()
        ),
    }
}

fn urgent_ones_pass(books: &Books) -> Check {
    let all = |urgent| {
        let mut waits: Vec<_> = books.channels.iter().flat_map(|channel| channel.waits(urgent)).collect();
        waits.sort_unstable();
        waits
    };
    let (urgent, bulk) = (all(true), all(false));
    let (urgent, bulk) = (urgent.last().copied(), median(&bulk));
    let shown = |wait: Option<_>| wait.map_or_else(|| "-".to_owned(), about);
    Check {
        holds: matches!((urgent, bulk), (Some(urgent), Some(bulk)) if urgent < bulk),
        says: format!(
            "urgent ones: the slowest went in {}; half of the bulk took longer than {}",
            shown(urgent),
            shown(bulk)
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ota_governor::ledger::memory::MemoryLedger;
    use ota_sim::{Call, Ota, Server};

    use super::super::stage;
    use super::*;

    #[tokio::test]
    async fn calls_that_the_ledger_does_not_know_of_fail_the_checks() {
        let ota = Arc::new(Ota::new(stage::receiver()));
        let server = Server::start(Arc::clone(&ota), ([127, 0, 0, 1], 0).into()).await.unwrap();
        let now = server.now();
        for _ in 0..=60 {
            ota.receive(now, &Call::post("/expedia/rates/sync"));
        }
        let books = Books::read(MemoryLedger::new().as_ref(), &server).await.unwrap();
        let script = Script::new(jiff::civil::date(2026, 10, 1));
        let checks = checks(&books, &script, 0);
        let mut out = Vec::new();
        write(&checks, &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        WRONG  nothing is lost: 1115 handed in = 0 accepted = 0 committed + 0 superseded by newer values + 0 dead-lettered
        WRONG  requests: 0 sent = 61 received; 0 committed = 0 applied, none twice
        WRONG  last values: stand at the channel in 0 of 934 cells
        WRONG  over limit: expedia, in any trailing minute (agoda 0 of 120, booking_com 0 of 90, expedia 61 of 60)
        WRONG  Retry-After: asked for by 1 answers 429, 0 calls sent into a pause
        WRONG  dead letters: 0 of 1 as meant
        WRONG  urgent ones: the slowest went in -; half of the bulk took longer than -
        7 of 7 checks failed
        ");
        server.stop().await;
    }
}
