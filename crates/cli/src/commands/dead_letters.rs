//! `dead-letters`: the mutations that were given up.

use std::io::Write;

use ota_governor::core::name::CorrelationId;
use ota_governor::core::state::State;
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Filter, Ledger, MutationId, Record, Replay};
use serde_json::json;

use super::export::cell;
use crate::arguments::{
    DeadLettersCommand, DeadLettersFilter, DeadLettersListArguments, DeadLettersPickArguments,
};
use crate::exit::Exit;
use crate::table::Table;
use crate::{record, words};

/// How many are read, replayed or discarded at a time.
const PAGE: usize = 500;

pub(crate) async fn run(
    ledger: &dyn Ledger,
    now: Timestamp,
    command: DeadLettersCommand,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    match command {
        DeadLettersCommand::List(arguments) => list(ledger, now, &arguments, out).await,
        DeadLettersCommand::Show(arguments) => show(ledger, now, &arguments.id, out).await,
        DeadLettersCommand::Replay(arguments) => each_page(ledger, &arguments, Act::Replay(now), out).await,
        DeadLettersCommand::Discard(arguments) => each_page(ledger, &arguments, Act::Discard, out).await,
    }
}

fn dead(filter: &DeadLettersFilter) -> Filter {
    Filter {
        state: Some(State::DeadLettered),
        ota: filter.ota.clone(),
        account: filter.account.clone(),
        property_id: filter.property.clone(),
        reason: filter.reason.map(|reason| reason.to_string()),
        ..Filter::default()
    }
}

async fn list(
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: &DeadLettersListArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let filter = dead(&arguments.filter);
    let mut letters: Vec<Record> = Vec::new();
    let mut more = true;
    // One more than asked for tells whether there are more.
    while more && letters.len() <= arguments.limit {
        let page = ledger.list(&filter, letters.last().map(|letter| letter.id), PAGE).await?;
        more = page.len() == PAGE;
        letters.extend(page);
    }
    let more = more || letters.len() > arguments.limit;
    letters.truncate(arguments.limit);
    if arguments.json {
        for letter in &letters {
            writeln!(out, "{}", to_json(letter))?;
        }
        return Ok(Exit::Done);
    }
    if letters.is_empty() {
        writeln!(out, "no dead letters")?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["id", "lane", "cell", "reason", "status", "attempts", "since"]);
    for letter in &letters {
        table.row(vec![
            letter.mutation.correlation_id.to_string(),
            letter.mutation.lane().to_string(),
            words::cell(&letter.mutation),
            letter.reason.clone().unwrap_or_default(),
            letter.last_status.map(|status| status.to_string()).unwrap_or_default(),
            letter.attempts.to_string(),
            words::relative(letter.changed_at, now),
        ]);
    }
    table.write(out)?;
    if more {
        writeln!(out, "and more: --limit shows them")?;
    }
    Ok(Exit::Done)
}

fn to_json(letter: &Record) -> serde_json::Value {
    json!({
        "correlation_id": letter.mutation.correlation_id,
        "cell": cell(&letter.mutation),
        "value": letter.mutation.value,
        "reason": letter.reason,
        "last_status": letter.last_status,
        "last_answer": letter.last_answer,
        "attempts": letter.attempts,
        "accepted_at": words::instant(letter.accepted_at),
        "time": words::instant(letter.changed_at),
    })
}

async fn show(
    ledger: &dyn Ledger,
    now: Timestamp,
    id: &CorrelationId,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    match ledger.get(id).await? {
        Some(letter) if letter.state == State::DeadLettered => {
            writeln!(out, "{id} is dead_lettered since {}", words::relative(letter.changed_at, now))?;
            record::write(&letter, now, out)?;
            Ok(Exit::Done)
        }
        Some(other) => {
            writeln!(
                out,
                "{id} is no dead letter: it is {}; `ota-governor explain {id}` tells more",
                other.state
            )?;
            Ok(Exit::Refused)
        }
        None => {
            writeln!(out, "{id} is not in the ledger")?;
            Ok(Exit::Refused)
        }
    }
}

/// What is done with the dead letters picked.
#[derive(Clone, Copy)]
enum Act {
    Replay(Timestamp),
    Discard,
}

#[derive(Default)]
struct Sum {
    done: u64,
    refused: u64,
}

async fn each_page(
    ledger: &dyn Ledger,
    arguments: &DeadLettersPickArguments,
    act: Act,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let mut sum = Sum::default();
    if arguments.all {
        let filter = dead(&arguments.filter);
        let mut after = None;
        loop {
            let page = ledger.list(&filter, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            perform(ledger, page, act, &mut sum, out).await?;
        }
    } else {
        let mut picked = Vec::new();
        for id in &arguments.ids {
            match ledger.get(id).await? {
                Some(letter) if letter.state == State::DeadLettered => picked.push(letter),
                Some(other) => {
                    sum.refused += 1;
                    writeln!(out, "{id} is no dead letter: it is {}", other.state)?;
                }
                None => {
                    sum.refused += 1;
                    writeln!(out, "{id} is not in the ledger")?;
                }
            }
        }
        picked.dedup_by_key(|letter| letter.id);
        perform(ledger, picked, act, &mut sum, out).await?;
    }
    let did = match act {
        Act::Replay(_) => "queued again",
        Act::Discard => "discarded",
    };
    writeln!(out, "{} {did}, {} refused", sum.done, sum.refused)?;
    Ok(if sum.refused == 0 { Exit::Done } else { Exit::Refused })
}

async fn perform(
    ledger: &dyn Ledger,
    letters: Vec<Record>,
    act: Act,
    sum: &mut Sum,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let ids: Vec<MutationId> = letters.iter().map(|letter| letter.id).collect();
    match act {
        Act::Discard => sum.done += ledger.discard(ids).await?,
        Act::Replay(now) => {
            for (letter, answer) in letters.iter().zip(ledger.replay(ids, now).await?) {
                match answer {
                    Replay::Queued => sum.done += 1,
                    Replay::Newer { by } => {
                        sum.refused += 1;
                        let by = by.map_or_else(String::new, |by| format!(", {by}"));
                        let id = &letter.mutation.correlation_id;
                        writeln!(out, "{id} is refused: a newer value of its cell exists{by}")?;
                    }
                }
            }
        }
    }
    Ok(())
}
