//! A mutation's row: how it is read, and the one place where it is changed.

use jiff::civil::Date;
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::mutation::{Mutation, Priority};
use ota_governor_core::name::{
    AccountName, BatchName, ChannelName, CorrelationId, NameError, PropertyId, RatePlanCode, RoomTypeCode,
};
use ota_governor_core::state::State;
use ota_governor_core::time::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Params, named_params};

use super::code;
use super::code::gate;
use super::digest;
use super::fault::{Outcome, damaged};
use super::tx::Tx;
use super::value;
use crate::ledger::{MutationId, Record};

/// Reads whole rows; conditions and order go behind it. `m` is the mutation, `l` its lane.
pub(super) const SELECT: &str = "SELECT m.id, m.correlation_id, m.lane_id, l.channel, l.account, m.kind, m.stock, \
     m.property_id, m.room, m.plan, m.stay_date, m.fields, m.revision, m.state, m.gate, m.due_us, m.priority, \
     m.place, m.idempotency_key, m.sequence, m.batch, m.time_zone, m.expires_at_us, m.expires_us, m.accepted_us, \
     m.changed_us, m.sent_us, m.attempts, m.requests, m.throttled, m.last_status, m.last_answer, m.reason, \
     m.confirmation_id, m.superseded_by, m.replaced, m.behind, m.recipe, m.at_us \
     FROM mutation m CROSS JOIN lane l ON l.id = m.lane_id ";

/// A mutation as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) record: Record,
    pub(super) lane_id: i64,
    pub(super) stock: Vec<u8>,
    pub(super) gate: i64,
    pub(super) place: i64,
    /// When its deferral ends; kept while it is in flight, in case nothing is sent.
    pub(super) due: Option<Timestamp>,
    /// When it may go, if it waits for a time.
    pub(super) at: Option<Timestamp>,
    pub(super) sent: Option<Timestamp>,
    pub(super) recipe: Recipe,
}

impl Row {
    /// Reads a row of [`SELECT`].
    pub(super) fn read(row: &rusqlite::Row<'_>) -> Outcome<Self> {
        let mut at = Columns { row, next: 0 };
        let id = MutationId(at.take()?);
        let correlation_id = at.name("correlation id", CorrelationId::try_new)?;
        let lane_id = at.take()?;
        let ota = at.name("channel", ChannelName::try_new)?;
        let account = at.name("account", AccountName::try_new)?;
        let kind = code::read_kind(at.take()?)?;
        let stock = at.take()?;
        let property_id = at.name("property", PropertyId::try_new)?;
        let room_type_code = at.name("room", RoomTypeCode::try_new)?;
        let rate_plan_code = at.maybe("plan", RatePlanCode::try_new)?;
        let stay_date: Date = at.text()?.parse().map_err(|_| damaged("stay date"))?;
        let value = value::read(kind, at.text()?)?;
        let revision = at.unsigned()?;
        let state = code::read_state(at.take()?)?;
        let gate = at.take()?;
        let due = at.time()?;
        let priority = Priority::try_new(at.take()?).ok_or(damaged("priority"))?;
        let place = at.take()?;
        let idempotency_key = digest::hex(&at.take::<Vec<u8>>()?);
        let sequence = at.take::<Option<i64>>()?.map(i64::cast_unsigned);
        let batch = at.maybe("batch", BatchName::try_new)?;
        let time_zone = at.take()?;
        let expires_at = at.time()?;
        let expires = at.time()?;
        let accepted_at = at.time()?.unwrap_or_default();
        let changed_at = at.time()?.unwrap_or_default();
        let sent = at.time()?;
        let mutation = Mutation {
            correlation_id,
            ota,
            account,
            property_id,
            room_type_code,
            rate_plan_code,
            stay_date,
            value,
            priority,
            time_zone,
            expires_at,
            sequence,
            batch,
        };
        let record = Record {
            id,
            mutation,
            state,
            revision,
            idempotency_key,
            accepted_at,
            changed_at,
            due: None,
            expires,
            attempts: at.take()?,
            requests: at.take()?,
            throttled: at.take()?,
            last_status: at.take()?,
            last_answer: at.take()?,
            reason: at.take()?,
            confirmation_id: at.take()?,
            superseded_by: at.maybe("successor", CorrelationId::try_new)?,
            replaced: at.maybe("replaced value", CorrelationId::try_new)?,
            behind: at.maybe("blocker", CorrelationId::try_new)?,
            history: Vec::new(),
        };
        let recipe = code::read_recipe(at.take()?)?;
        let at = at.time()?;
        let mut row = Self { record, lane_id, stock, gate, place, due, at, sent, recipe };
        row.show_due();
        Ok(row)
    }

    /// Whether the mutation may still move by itself.
    pub(super) const fn is_open(&self) -> bool {
        self.record.state.is_open()
    }

    /// Ends it in a final state.
    pub(super) fn finish(&mut self, state: State, reason: Option<&str>, now: Timestamp) {
        self.record.state = state;
        self.record.reason = reason.map(str::to_owned);
        self.record.changed_at = now;
        self.record.due = None;
        self.record.behind = None;
        self.gate = gate::NONE;
        self.due = None;
        self.at = None;
        self.sent = None;
    }

    /// Shows in the record when it may go.
    pub(super) fn show_due(&mut self) {
        self.record.due = self.at.or(self.due).filter(|_| self.record.state != State::InFlight);
    }

    /// Ends it because a newer value takes its place.
    pub(super) fn supersede(&mut self, by: &CorrelationId, now: Timestamp) {
        self.finish(State::Superseded, None, now);
        self.record.superseded_by = Some(by.clone());
    }
}

/// Columns in the order of the statement.
struct Columns<'a, 'b> {
    row: &'a rusqlite::Row<'b>,
    next: usize,
}

impl<'a> Columns<'a, '_> {
    fn step(&mut self) -> usize {
        let at = self.next;
        self.next += 1;
        at
    }

    fn take<T: FromSql>(&mut self) -> Outcome<T> {
        Ok(self.row.get(self.step())?)
    }

    fn text(&mut self) -> Outcome<&'a str> {
        let at = self.step();
        self.row.get_ref(at)?.as_str().map_err(|_| damaged("text"))
    }

    fn name<T>(&mut self, what: &'static str, read: impl Fn(&str) -> Result<T, NameError>) -> Outcome<T> {
        read(self.text()?).map_err(|_| damaged(what))
    }

    fn maybe<T>(
        &mut self,
        what: &'static str,
        read: impl Fn(&str) -> Result<T, NameError>,
    ) -> Outcome<Option<T>> {
        let at = self.step();
        let text = self.row.get_ref(at)?.as_str_or_null().map_err(|_| damaged(what))?;
        text.map(|text| read(text).map_err(|_| damaged(what))).transpose()
    }

    fn time(&mut self) -> Outcome<Option<Timestamp>> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_micros))
    }

    fn unsigned(&mut self) -> Outcome<u64> {
        Ok(self.take::<i64>()?.cast_unsigned())
    }
}

/// The first row of a query made of [`SELECT`].
pub(super) fn find(tx: &Tx<'_>, sql: &str, params: impl Params) -> Outcome<Option<Row>> {
    let mut statement = tx.sql(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(Row::read).transpose()
}

/// All rows of a query made of [`SELECT`].
pub(super) fn find_all(tx: &Tx<'_>, sql: &str, params: impl Params) -> Outcome<Vec<Row>> {
    let mut statement = tx.sql(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Row::read(row)?);
    }
    Ok(found)
}

/// The row of an id.
pub(super) fn by_id(tx: &Tx<'_>, id: MutationId) -> Outcome<Option<Row>> {
    find(tx, &format!("{SELECT} WHERE m.id = ?1"), [id.0])
}

/// The open mutations of a stock, oldest first.
pub(super) fn open_of(tx: &Tx<'_>, stock: &[u8]) -> Outcome<Vec<Row>> {
    let indexed = SELECT.replace("mutation m", "mutation m INDEXED BY mutation_stock");
    find_all(tx, &format!("{indexed} WHERE m.stock = ?1 AND m.state < 3 ORDER BY m.id"), [stock])
}

/// Writes what may change of a row, counts its move, and moves its lane's mark if it may go at
/// another time than before. The only statement that changes a mutation's row.
pub(super) fn save(tx: &mut Tx<'_>, before: &Row, after: &Row) -> Outcome<()> {
    let record = &after.record;
    let was = &before.record;
    let lane = tx.lane_of(after.lane_id)?;
    let fields = value::write(&record.mutation.value)?;
    tx.sql(
        "UPDATE mutation SET fields = :fields, state = :state, gate = :gate, due_us = :due, at_us = :at,
         idempotency_key = :key, priority = :priority,
         place = :place, changed_us = :changed, sent_us = :sent, attempts = :attempts, requests = :requests,
         throttled = :throttled, last_status = :status, last_answer = :answer, reason = :reason,
         confirmation_id = :confirmation, superseded_by = :superseded_by, replaced = :replaced, behind = :behind, keyed = :keyed
         WHERE id = :id",
    )?
    .execute(named_params! {
        ":id": record.id.0,
        ":fields": fields,
        ":state": code::state(record.state),
        ":gate": after.gate,
        ":due": after.due.map(Timestamp::as_micros),
        ":at": after.at.map(Timestamp::as_micros),
        ":key": digest::unhex(&record.idempotency_key)?,
        ":priority": record.mutation.priority.get(),
        ":place": after.place,
        ":changed": record.changed_at.as_micros(),
        ":sent": after.sent.map(Timestamp::as_micros),
        ":attempts": record.attempts,
        ":requests": record.requests,
        ":throttled": record.throttled,
        ":status": record.last_status,
        ":answer": record.last_answer,
        ":reason": record.reason,
        ":confirmation": record.confirmation_id,
        ":superseded_by": record.superseded_by.as_ref().map(CorrelationId::as_str),
        ":replaced": record.replaced.as_ref().map(CorrelationId::as_str),
        ":keyed": lane.keyed,
        ":behind": record.behind.as_ref().map(CorrelationId::as_str),
    })?;
    tx.count_moved(
        after.lane_id,
        (was.mutation.priority.get(), was.state),
        (record.mutation.priority.get(), record.state),
    );
    let goes = |row: &Row| (row.gate, row.at, row.record.mutation.priority);
    if matches!(after.gate, gate::READY | gate::TIME) && goes(before) != goes(after) {
        tx.touch(&lane);
    }
    Ok(())
}
