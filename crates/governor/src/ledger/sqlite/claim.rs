//! Claiming: the most urgent that may go, with the intent to send recorded.

use ota_governor_core::name::PropertyId;
use ota_governor_core::state::{DeadReason, State};
use ota_governor_core::time::Timestamp;

use super::code::gate;
use super::fault::Outcome;
use super::group::Group;
use super::head;
use super::row::{self, Row, SELECT};
use super::tx::{Lane, Tx};
use crate::ledger::{Claim, Claimed, Expired, Job, Record};

/// Most expired ones that one claim clears away; the next goes on.
const EXPIRED: usize = 1_000;

/// Takes one mutation per pick.
pub(super) fn run(tx: &mut Tx<'_>, claim: &Claim) -> Outcome<Claimed> {
    let lane = tx.lane(&claim.lane)?;
    head::promote(tx, lane.id, claim.now)?;
    let mut claimed = Claimed::default();
    for (pick, property) in claim.picks.iter().enumerate() {
        while let Some(row) = most_urgent(tx, &lane, property.as_ref())? {
            let expired = row.record.expires.is_some_and(|at| at <= claim.now);
            if expired && claimed.expired.len() >= EXPIRED {
                break;
            }
            take(tx, &row, expired, claim.now)?;
            let record = row.record;
            if expired {
                let Record { id, mutation, replaced, .. } = record;
                claimed.expired.push(Expired { id, mutation, replaced });
                continue;
            }
            claimed.jobs.push(Job {
                id: record.id,
                mutation: record.mutation,
                idempotency_key: record.idempotency_key,
                attempts: record.attempts,
                accepted_at: record.accepted_at,
                pick,
            });
            break;
        }
    }
    claimed.jobs.sort_by_key(|job| job.mutation.priority);
    claimed.head = head::of(tx.conn(), lane.id, lane.keyed, claim.now)?.head;
    Ok(claimed)
}

fn most_urgent(tx: &Tx<'_>, lane: &Lane, property: Option<&PropertyId>) -> Outcome<Option<Row>> {
    let order = "ORDER BY m.priority, m.place, m.id LIMIT 1";
    let Some(property) = property else {
        let indexed = SELECT.replace("mutation m", "mutation m INDEXED BY mutation_ready");
        return row::find(tx, &format!("{indexed} WHERE m.lane_id = ?1 AND m.gate = 1 {order}"), [lane.id]);
    };
    // A lane keyed since the last claim has rows that do not carry the flag yet only while they wait.
    let index = if lane.keyed { "mutation_keyed" } else { "mutation_ready" };
    let flag = if lane.keyed { "AND m.keyed = 1" } else { "" };
    let indexed = SELECT.replace("mutation m", &format!("mutation m INDEXED BY {index}"));
    let sql = format!("{indexed} WHERE m.lane_id = ?1 AND m.gate = 1 {flag} AND m.property_id = ?2 {order}");
    row::find(tx, &sql, (lane.id, property.as_str()))
}

/// Puts it in flight, or lays it down if its time has passed.
fn take(tx: &mut Tx<'_>, row: &Row, expired: bool, now: Timestamp) -> Outcome<()> {
    let mut group = Group::load(tx, &row.stock)?;
    let taken = group.row(row.record.id)?;
    if expired {
        taken.finish(State::DeadLettered, Some(DeadReason::Expired.as_str()), now);
    } else {
        taken.record.state = State::InFlight;
        taken.record.changed_at = now;
        taken.gate = gate::NONE;
        taken.at = None;
        taken.show_due();
        taken.sent = Some(now);
    }
    group.save(tx, now)
}
