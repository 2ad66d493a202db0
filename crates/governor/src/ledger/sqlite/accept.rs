//! Accepting: checked mutations become rows.

use std::borrow::Cow;

use ota_governor_core::idempotency;
use ota_governor_core::mutation::{Kind, Value};
use ota_governor_core::name::{BatchName, CorrelationId, RatePlanCode};

use ota_governor_core::time::Timestamp;
use rusqlite::{CachedStatement, OptionalExtension, params};

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

/// The statements of every entry, kept at hand for a whole call.
struct Statements<'a> {
    known: CachedStatement<'a>,
    cell: CachedStatement<'a>,
    crowd: [CachedStatement<'a>; 2],
    insert: CachedStatement<'a>,
}

impl<'a> Statements<'a> {
    fn new(tx: &Tx<'a>) -> Outcome<Self> {
        Ok(Self {
            known: tx.sql(
                "SELECT id, state, content_hash FROM mutation INDEXED BY mutation_name
                 WHERE name = ?1 AND correlation_id = ?2",
            )?,
            cell: tx.sql(
                "INSERT INTO cell (stock, kind, plan, revision, sequence, latest, inventory)
                 VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET revision = revision + 1,
                 sequence = ifnull(excluded.sequence, sequence), latest = excluded.latest,
                 inventory = excluded.inventory RETURNING revision",
            )?,
            crowd: [tx.sql(&crowd("kind = 1"))?, tx.sql(&crowd("kind < 2"))?],
            insert: tx.sql(
                "INSERT INTO mutation (id, correlation_id, name, lane_id, kind, stock, property_id, room, plan,
                 stay_date, fields, revision, state, gate, priority, place, keyed, recipe, idempotency_key,
                 content_hash, sequence, batch, time_zone, expires_at_us, expires_us, accepted_us, changed_us)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, ?13, ?14, ?1, ?15, ?16, ?17, ?18,
                 ?19, ?20, ?21, ?22, ?23, ?24, ?24)",
            )?,
        })
    }
}

fn crowd(others: &str) -> String {
    format!(
        "SELECT EXISTS (SELECT 1 FROM mutation INDEXED BY mutation_stock
                        WHERE stock = ?1 AND state < 3 AND {others})
             OR EXISTS (SELECT 1 FROM cell WHERE stock = ?1 AND {others} AND rest_us IS NOT NULL)"
    )
}

/// Accepts entries in order.
pub(super) fn run(tx: &mut Tx<'_>, entries: &[Prepared], now: Timestamp) -> Outcome<Vec<Admission>> {
    let mut lane: Option<Lane> = None;
    let mut statements = Statements::new(tx)?;
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
        admissions.push(one(tx, &mut statements, lane, prepared, now)?);
    }
    Ok(admissions)
}

fn one(
    tx: &mut Tx<'_>,
    statements: &mut Statements<'_>,
    lane: &Lane,
    prepared: &Prepared,
    now: Timestamp,
) -> Outcome<Admission> {
    let mutation = &prepared.entry.mutation;
    if let Some(known) = known(statements, prepared)? {
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
    let sequence = mutation.sequence.map(u64::cast_signed);
    let revision: i64 =
        statements.cell.query_row((cell.0, cell.1, cell.2, sequence, id.0, inventory), |row| row.get(0))?;
    let revision = revision.cast_unsigned();
    let crowded = revision != FIRST || crowded(statements, prepared)?;
    insert(tx, statements, lane, prepared, &Place { id, revision, crowded }, now)?;
    let superseded = if crowded { join(tx, prepared, id, now)? } else { Vec::new() };
    tx.touch(lane);
    Ok(Admission::Accepted { id, revision, superseded })
}

fn known(statements: &mut Statements<'_>, prepared: &Prepared) -> Outcome<Option<Admission>> {
    let id = prepared.entry.mutation.correlation_id.as_str();
    let found: Option<(i64, i64, [u8; 16])> = statements
        .known
        .query_row((prepared.name, id), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((id, state, stored)) = found else { return Ok(None) };
    if stored != prepared.content {
        return Ok(Some(Admission::Conflict));
    }
    Ok(Some(Admission::Known { id: MutationId(id), state: code::read_state(state)? }))
}

/// Whether anything may have a say about one whose cell is new: an open one or a rest of the same
/// inventory. Rates of other plans have none, and a room with many plans is the common case.
fn crowded(statements: &mut Statements<'_>, prepared: &Prepared) -> Outcome<bool> {
    let [availability, any] = &mut statements.crowd;
    let crowd = match prepared.entry.mutation.kind() {
        Kind::Restriction => return Ok(false),
        Kind::Rate => availability,
        Kind::Availability => any,
    };
    Ok(crowd.query_row([&prepared.stock], |row| row.get(0))?)
}

struct Place {
    id: MutationId,
    revision: u64,
    /// Whether its standing is decided with the others in a moment.
    crowded: bool,
}

fn insert(
    tx: &Tx<'_>,
    statements: &mut Statements<'_>,
    lane: &Lane,
    prepared: &Prepared,
    place: &Place,
    now: Timestamp,
) -> Outcome<()> {
    let Entry { mutation, recipe, expires } = &prepared.entry;
    let key = if place.revision == FIRST {
        Cow::Borrowed(&prepared.first_key)
    } else {
        Cow::Owned(key(&prepared.entry, tx.ledger_id(), place.revision)?)
    };
    // By position: names are looked up one by one, which costs more than the row.
    statements.insert.execute(params![
        place.id.0,
        mutation.correlation_id.as_str(),
        prepared.name,
        lane.id,
        code::kind(mutation.kind()),
        prepared.stock,
        mutation.property_id.as_str(),
        mutation.room_type_code.as_str(),
        mutation.rate_plan_code.as_ref().map(RatePlanCode::as_str),
        prepared.stay_date,
        prepared.fields,
        place.revision.cast_signed(),
        if place.crowded { gate::BEHIND } else { gate::READY },
        mutation.priority.get(),
        lane.keyed,
        code::recipe(*recipe),
        *key,
        prepared.content,
        mutation.sequence.map(u64::cast_signed),
        mutation.batch.as_ref().map(BatchName::as_str),
        mutation.time_zone,
        mutation.expires_at.map(Timestamp::as_micros),
        expires.map(Timestamp::as_micros),
        now.as_micros(),
    ])?;
    Ok(())
}

/// Lets a new mutation take the place of those it supersedes, and decides who waits for whom.
fn join(tx: &mut Tx<'_>, prepared: &Prepared, id: MutationId, now: Timestamp) -> Outcome<Vec<CorrelationId>> {
    let mut group = Group::load(tx, &prepared.stock)?;
    let superseded = group.admit(tx, id, now)?;
    group.save(tx, now)?;
    Ok(superseded)
}
