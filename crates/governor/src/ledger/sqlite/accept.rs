//! Accepting: checked mutations become rows.

use ota_governor_core::mutation::Kind;
use ota_governor_core::name::{BatchName, CorrelationId};

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

/// An entry with what can be made of it without the ledger.
pub(super) struct Prepared {
    entry: Entry,
    stock: [u8; 16],
    content: [u8; 16],
    fields: String,
    stay_date: String,
}

/// Makes digests and JSON outside the writer's thread.
pub(super) fn prepare(entries: Vec<Entry>) -> Outcome<Vec<Prepared>> {
    entries
        .into_iter()
        .map(|entry| {
            Ok(Prepared {
                stock: digest::stock(&entry.mutation),
                content: digest::content(&entry.mutation),
                fields: value::write(&entry.mutation.value)?,
                stay_date: entry.mutation.stay_date.to_string(),
                entry,
            })
        })
        .collect()
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
    if let Some(known) = known(tx, &mutation.correlation_id, prepared.content)? {
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
    let (revision, rest): (i64, Option<i64>) = tx
        .sql(
            "INSERT INTO cell (stock, kind, plan, revision, sequence, latest) VALUES (?1, ?2, ?3, 1, ?4, ?5)
             ON CONFLICT DO UPDATE SET revision = revision + 1, sequence = ifnull(excluded.sequence, sequence),
             latest = excluded.latest RETURNING revision, rest_us",
        )?
        .query_row((cell.0, cell.1, cell.2, mutation.sequence.map(u64::cast_signed), id.0), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let rest = rest.map(Timestamp::from_micros).filter(|rest| *rest > now);
    let crowded = crowded(tx, prepared)?;
    insert(tx, lane, prepared, &Place { id, revision, rest, crowded }, now)?;
    let superseded = if crowded { join(tx, prepared, id, now)? } else { Vec::new() };
    tx.touch(lane);
    Ok(Admission::Accepted { id, revision: revision.cast_unsigned(), superseded })
}

fn known(tx: &Tx<'_>, id: &CorrelationId, content: [u8; 16]) -> Outcome<Option<Admission>> {
    let found: Option<(i64, i64, [u8; 16])> = tx
        .sql("SELECT id, state, content_hash FROM mutation WHERE correlation_id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((id, state, stored)) = found else { return Ok(None) };
    if stored != content {
        return Ok(Some(Admission::Conflict));
    }
    Ok(Some(Admission::Known { id: MutationId(id), state: code::read_state(state)? }))
}

/// Whether anything open may have a say: of the same cell, or of the same inventory. Rates of other
/// plans have none, and a room with many plans is the common case.
fn crowded(tx: &Tx<'_>, prepared: &Prepared) -> Outcome<bool> {
    let mutation = &prepared.entry.mutation;
    let sql = match mutation.kind() {
        Kind::Rate => {
            "SELECT 1 FROM mutation INDEXED BY mutation_stock
             WHERE stock = ?1 AND state < 3 AND (kind = 1 OR (kind = 0 AND plan = ?2)) LIMIT 1"
        }
        Kind::Availability => {
            "SELECT 1 FROM mutation INDEXED BY mutation_stock
             WHERE stock = ?1 AND state < 3 AND kind < 2 AND ?2 = ?2 LIMIT 1"
        }
        Kind::Restriction => {
            "SELECT 1 FROM mutation INDEXED BY mutation_stock
             WHERE stock = ?1 AND state < 3 AND kind = 2 AND plan = ?2 LIMIT 1"
        }
    };
    let found: Option<i64> =
        tx.sql(sql)?.query_row((&prepared.stock, group::plan(mutation)), |row| row.get(0)).optional()?;
    Ok(found.is_some())
}

struct Place {
    id: MutationId,
    revision: i64,
    rest: Option<Timestamp>,
    crowded: bool,
}

fn insert(tx: &Tx<'_>, lane: &Lane, prepared: &Prepared, place: &Place, now: Timestamp) -> Outcome<()> {
    let Entry { mutation, recipe, expires } = &prepared.entry;
    let key = group::key(*recipe, tx.ledger_id(), mutation, place.revision.cast_unsigned());
    let gate = match (place.crowded, place.rest) {
        // Decided with the others in a moment.
        (true, _) => gate::BEHIND,
        (false, Some(_)) => gate::TIME,
        (false, None) => gate::READY,
    };
    tx.sql(
        "INSERT INTO mutation (id, correlation_id, lane_id, kind, stock, property_id, room, plan, stay_date, fields,
         revision, state, gate, due_us, priority, place, keyed, idempotency_key, content_hash, sequence, batch,
         time_zone, expires_at_us, expires_us, accepted_us, changed_us)
         VALUES (:id, :correlation, :lane, :kind, :stock, :property, :room, :plan, :date, :fields, :revision, 0, :gate,
         :due, :priority, :id, :keyed, :key, :content, :sequence, :batch, :zone, :expires_at, :expires, :now, :now)",
    )?
    .execute(named_params! {
        ":id": place.id.0,
        ":correlation": mutation.correlation_id.as_str(),
        ":lane": lane.id,
        ":kind": code::kind(mutation.kind()),
        ":stock": prepared.stock,
        ":property": mutation.property_id.as_str(),
        ":room": mutation.room_type_code.as_str(),
        ":plan": mutation.rate_plan_code.as_ref().map(|plan| plan.as_str()),
        ":date": prepared.stay_date,
        ":fields": prepared.fields,
        ":revision": place.revision,
        ":gate": gate,
        ":due": place.rest.map(Timestamp::as_micros),
        ":priority": mutation.priority.get(),
        ":keyed": lane.keyed,
        ":key": key,
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
    let superseded = group.admit(id, now)?;
    group.save(tx, now)?;
    Ok(superseded)
}
