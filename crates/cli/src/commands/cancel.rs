//! `cancel`: takes back what is not yet sent.

use std::io::Write;

use ota_governor::core::name::{BatchName, CorrelationId};
use ota_governor::core::state::State;
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Filter, Ledger};

use crate::arguments::CancelArguments;
use crate::exit::Exit;
use crate::words;

pub(crate) async fn run(
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: &CancelArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    match (&arguments.id, &arguments.batch) {
        (Some(id), _) => one(ledger, now, id, out).await,
        (None, Some(batch)) => all_of(ledger, now, batch, out).await,
        (None, None) => anyhow::bail!("name a mutation or a batch"),
    }
}

async fn one(
    ledger: &dyn Ledger,
    now: Timestamp,
    id: &CorrelationId,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let filter = Filter { correlation_id: Some(id.clone()), ..Filter::default() };
    if !taken_back(ledger, &filter, now).await?.is_empty() {
        writeln!(out, "{id} is cancelled")?;
        return Ok(Exit::Done);
    }
    match ledger.get(id).await? {
        None => writeln!(out, "{id} is not in the ledger")?,
        Some(record) if record.state == State::InFlight => {
            writeln!(out, "{id} is in flight: it cannot be taken back, send a newer value instead")?;
        }
        Some(record) => {
            let since = words::relative(record.changed_at, now);
            writeln!(out, "{id} is {} since {since}: there is nothing to take back", record.state)?;
        }
    }
    Ok(Exit::Refused)
}

/// Takes back what the filter names, and tells the log of each.
async fn taken_back(
    ledger: &dyn Ledger,
    filter: &Filter,
    now: Timestamp,
) -> anyhow::Result<Vec<CorrelationId>> {
    let cancelled = ledger.cancel(filter, now).await?;
    for id in &cancelled {
        tracing::info!(event = "cancelled", correlation_id = id.as_str());
    }
    Ok(cancelled)
}

async fn all_of(
    ledger: &dyn Ledger,
    now: Timestamp,
    batch: &BatchName,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let filter = Filter { batch: Some(batch.clone()), ..Filter::default() };
    let cancelled = taken_back(ledger, &filter, now).await?;
    if cancelled.is_empty() && ledger.list(&filter, None, 1).await?.is_empty() {
        writeln!(out, "there is no batch {batch} in the ledger")?;
        return Ok(Exit::Refused);
    }
    writeln!(out, "{} of the batch {batch} are cancelled", cancelled.len())?;
    let in_flight = Filter { state: Some(State::InFlight), ..filter };
    let flying = ledger.list(&in_flight, None, 1000).await?.len();
    if flying > 0 {
        writeln!(out, "{flying} are in flight: they cannot be taken back")?;
    }
    Ok(Exit::Done)
}
