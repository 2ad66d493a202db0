//! Filters as SQL.

use ota_governor_core::state::State;
use rusqlite::types::Value;

use super::code;
use super::digest;
use super::row::SELECT;
use crate::ledger::{Filter, MutationId};

/// A query and what goes into it.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) params: Vec<Value>,
}

/// The query of a page of mutations, in order of acceptance.
pub(super) fn query(filter: &Filter, after: Option<MutationId>, limit: usize) -> Query {
    build(filter, "m.id > ?1", after, limit)
}

/// The same of those that wait: neither in flight nor final.
pub(super) fn waiting(filter: &Filter, after: Option<MutationId>, limit: usize) -> Query {
    build(filter, "m.id > ?1 AND m.state IN (0, 2)", after, limit)
}

fn build(filter: &Filter, first: &str, after: Option<MutationId>, limit: usize) -> Query {
    let mut terms = vec![first.to_owned()];
    let mut params = vec![Value::Integer(after.map_or(i64::MIN, |id| id.0))];
    let mut term = |column: &str, value: Value| {
        params.push(value);
        terms.push(format!("{column} ?{}", params.len()));
    };
    if let Some(id) = &filter.correlation_id {
        term("m.name =", Value::Integer(digest::name(id)));
        term("m.correlation_id =", Value::Text(id.as_str().to_owned()));
    }
    if let Some(batch) = &filter.batch {
        term("m.batch =", Value::Text(batch.as_str().to_owned()));
    }
    if let Some(ota) = &filter.ota {
        term("l.channel =", Value::Text(ota.as_str().to_owned()));
    }
    if let Some(account) = &filter.account {
        term("l.account =", Value::Text(account.as_str().to_owned()));
    }
    if let Some(kind) = filter.kind {
        term("m.kind =", Value::Integer(code::kind(kind)));
    }
    if let Some(property) = &filter.property_id {
        term("m.property_id =", Value::Text(property.as_str().to_owned()));
    }
    if let Some(reason) = &filter.reason {
        term("m.reason =", Value::Text(reason.clone()));
    }
    if let Some(since) = filter.changed_since {
        term("m.changed_us >=", Value::Integer(since.as_micros()));
    }
    if let Some(state) = filter.state {
        // Literal, so that the partial indexes over states apply.
        terms.push(format!("m.state = {}", code::state(state)));
    }
    let index = index(filter);
    if index == FINISHED {
        terms.push("m.state > 2".to_owned());
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let from = SELECT.replace("FROM mutation m", &format!("FROM mutation m {index}"));
    let sql = format!("{from} WHERE {} ORDER BY m.id LIMIT {limit}", terms.join(" AND "));
    Query { sql, params }
}

const FINISHED: &str = "INDEXED BY mutation_finished";

/// Few are dead, taken back, or changed of late, in a ledger of millions: those are found by state.
/// The rest is read in order of acceptance, which needs no sorting.
const fn index(filter: &Filter) -> &'static str {
    if filter.correlation_id.is_some() {
        return "INDEXED BY mutation_name";
    }
    if filter.batch.is_some() {
        return "INDEXED BY mutation_batch";
    }
    match filter.state {
        Some(State::DeadLettered | State::Cancelled) => FINISHED,
        Some(State::Committed | State::Superseded) if filter.changed_since.is_some() => FINISHED,
        Some(State::InFlight) => "INDEXED BY mutation_sent",
        Some(State::Queued | State::Deferred | State::Committed | State::Superseded) | None => "",
    }
}
