//! Accepting: checked mutations become rows.

use std::borrow::Cow;

use ota_governor_core::idempotency;
use ota_governor_core::mutation::{Kind, Value};
use ota_governor_core::name::{BatchName, CorrelationId, RatePlanCode};

use ota_governor_core::time::Timestamp;
use rusqlite::{OptionalExtension, named_params};

use super::code;
use super::code::gate;
use super::digest;
use super::fault::Outcome;
use super::group::{self, Group};
use super::tx::{Lane, Tx};
use super::value;
use crate::ledger::{Admission, Entry, MutationId};

/// The revision of a cell's first mutation.
const FIRST: u64 = 1;

/// An entry with what can be made of it without the ledger.
pub(super) struct Prepared {
    entry: Entry,
    stock: [u8; 16],
    /// The correlation id's place in its index.
    name: i64,
    content: [u8; 16],
    fields: String,
    /// Its idempotency key if it is the first of its cell.
    first_key: Vec<u8>,
    stay_date: String,
}

/// Makes digests and JSON outside the writer's thread.
pub(super) fn prepare(entries: Vec<Entry>, ledger_id: &str) -> Outcome<Vec<Prepared>> {
    entries
        .into_iter()
        .map(|entry| {
            Ok(Prepared {
                stock: digest::stock(&entry.mutation),
                name: digest::name(&entry.mutation.correlation_id),
                content: digest::short(idempotency::content_hash(&entry.mutation)),
                fields: value::write(&entry.mutation.value)?,
                first_key: key(&entry, ledger_id, FIRST)?,
                stay_date: entry.mutation.stay_date.to_string(),
                entry,
            })
        })
        .collect()
}

fn key(entry: &Entry, ledger_id: &str, revision: u64) -> Outcome<Vec<u8>> {
    digest::unhex(&idempotency::key(entry.recipe, ledger_id, &entry.mutation, revision))
}

/// Accepts entries in order.
pub(super) fn run(tx: &mut Tx<'_>, entries: &[Prepared], now: Timestamp) -> Outcome<Vec<Admission>> {
    let mut lane: Option<Lane> = None;
    let mut admissions = Vec::with_capacity(entries.len());
    for prepared in entries {
        let mutation = &prepared.entry.mutation;
        let same = lane.as_ref().is_some_and(|lane| {
            lane.key.channel == mutation.ota
                && lane.key.account == mutation.account
                && lane.key.endpoint.as_str() == mutation.kind().endpoint()
        });
        if !same {
            lane = Some(tx.lane(&mutation.lane())?);
        }
        let Some(lane) = &lane else { continue };
        admissions.push(one(tx, lane, prepared, now)?);
    }
    Ok(admissions)
}

fn one(tx: &mut Tx<'_>, lane: &Lane, prepared: &Prepared, now: Timestamp) -> Outcome<Admission> {
    let mutation = &prepared.entry.mutation;
    if let Some(known) = known(tx, prepared)? {
        return Ok(known);
    }
    let cell = (&prepared.stock, code::kind(mutation.kind()), group::plan(mutation));
    if let Some(sequence) = mutation.sequence {
        let last: Option<Option<i64>> = tx
            .sql("SELECT sequence FROM cell WHERE stock = ?1 AND kind = ?2 AND plan = ?3")?
            .query_row(cell, |row| row.get(0))
            .optional()?;
        if let Some(last) = last.flatten().map(i64::cast_unsigned)
            && sequence < last
        {
            return Ok(Admission::Stale { last });
        }
    }
    let id = tx.count_accepted(lane.id, mutation.priority.get())?;
    let inventory = match &mutation.value {
        Value::Availability { inventory } => Some(inventory.get()),
        Value::Rate { .. } | Value::Restriction(_) => None,
    };
    let revision: i64 = tx
        .sql(
            "INSERT INTO cell (stock, kind, plan, revision, sequence, latest, inventory)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET revision = revision + 1, sequence = ifnull(excluded.sequence, sequence),
             latest = excluded.latest, inventory = excluded.inventory RETURNING revision",
        )?
        .query_row(
            (cell.0, cell.1, cell.2, mutation.sequence.map(u64::cast_signed), id.0, inventory),
            |row| row.get(0),
        )?;
    let revision = revision.cast_unsigned();
    let crowded = revision != FIRST || crowded(tx, prepared)?;
    insert(tx, lane, prepared, &Place { id, revision, crowded }, now)?;
    let superseded = if crowded { join(tx, prepared, id, now)? } else { Vec::new() };
    tx.touch(lane);
    Ok(Admission::Accepted { id, revision, superseded })
}

fn known(tx: &Tx<'_>, prepared: &Prepared) -> Outcome<Option<Admission>> {
    let found: Option<(i64, i64, [u8; 16])> = tx
        .sql(
            "SELECT id, state, content_hash FROM mutation INDEXED BY mutation_name
             WHERE name = ?1 AND correlation_id = ?2",
        )?
        .query_row((prepared.name, prepared.entry.mutation.correlation_id.as_str()), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((id, state, stored)) = found else { return Ok(None) };
    if stored != prepared.content {
        return Ok(Some(Admission::Conflict));
    }
    Ok(Some(Admission::Known { id: MutationId(id), state: code::read_state(state)? }))
}

/// Whether anything may have a say about one whose cell is new: an open one or a rest of the same
/// inventory. Rates of other plans have none, and a room with many plans is the common case.
fn crowded(tx: &Tx<'_>, prepared: &Prepared) -> Outcome<bool> {
    let others = match prepared.entry.mutation.kind() {
        Kind::Restriction => return Ok(false),
        Kind::Rate => "kind = 1",
        Kind::Availability => "kind < 2",
    };
    let mut statement = tx.sql(&format!(
        "SELECT EXISTS (SELECT 1 FROM mutation INDEXED BY mutation_stock
                        WHERE stock = ?1 AND state < 3 AND {others})
             OR EXISTS (SELECT 1 FROM cell WHERE stock = ?1 AND {others} AND rest_us IS NOT NULL)"
    ))?;
    Ok(statement.query_row([&prepared.stock], |row| row.get(0))?)
}

struct Place {
    id: MutationId,
    revision: u64,
    /// Whether its standing is decided with the others in a moment.
    crowded: bool,
}

fn insert(tx: &Tx<'_>, lane: &Lane, prepared: &Prepared, place: &Place, now: Timestamp) -> Outcome<()> {
    let Entry { mutation, recipe, expires } = &prepared.entry;
    let key = if place.revision == FIRST {
        Cow::Borrowed(&prepared.first_key)
    } else {
        Cow::Owned(key(&prepared.entry, tx.ledger_id(), place.revision)?)
    };
    tx.sql(
        "INSERT INTO mutation (id, correlation_id, name, lane_id, kind, stock, property_id, room, plan, stay_date, fields,
         revision, state, gate, priority, place, keyed, recipe, idempotency_key, content_hash, sequence, batch,
         time_zone, expires_at_us, expires_us, accepted_us, changed_us)
         VALUES (:id, :correlation, :name, :lane, :kind, :stock, :property, :room, :plan, :date, :fields, :revision, 0, :gate,
         :priority, :id, :keyed, :recipe, :key, :content, :sequence, :batch, :zone, :expires_at, :expires, :now, :now)",
    )?
    .execute(named_params! {
        ":id": place.id.0,
        ":correlation": mutation.correlation_id.as_str(),
        ":name": prepared.name,
        ":lane": lane.id,
        ":kind": code::kind(mutation.kind()),
        ":stock": prepared.stock,
        ":property": mutation.property_id.as_str(),
        ":room": mutation.room_type_code.as_str(),
        ":plan": mutation.rate_plan_code.as_ref().map(RatePlanCode::as_str),
        ":date": prepared.stay_date,
        ":fields": prepared.fields,
        ":revision": place.revision.cast_signed(),
        ":gate": if place.crowded { gate::BEHIND } else { gate::READY },
        ":priority": mutation.priority.get(),
        ":keyed": lane.keyed,
        ":recipe": code::recipe(*recipe),
        ":key": *key,
        ":content": prepared.content,
        ":sequence": mutation.sequence.map(u64::cast_signed),
        ":batch": mutation.batch.as_ref().map(BatchName::as_str),
        ":zone": mutation.time_zone,
        ":expires_at": mutation.expires_at.map(Timestamp::as_micros),
        ":expires": expires.map(Timestamp::as_micros),
        ":now": now.as_micros(),
    })?;
    Ok(())
}

/// Lets a new mutation take the place of those it supersedes, and decides who waits for whom.
fn join(tx: &mut Tx<'_>, prepared: &Prepared, id: MutationId, now: Timestamp) -> Outcome<Vec<CorrelationId>> {
    let mut group = Group::load(tx, &prepared.stock)?;
    let superseded = group.admit(tx, id, now)?;
    group.save(tx, now)?;
    Ok(superseded)
}
