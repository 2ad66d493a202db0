//! Dead letters: listed, shown, replayed and discarded.

use std::time::Duration;

use ota_governor_core::mutation::{Kind, Mutation};
use ota_governor_core::state::State;

use super::Factory;
use super::desk::{Desk, at, availability, entry, min_stay, name, rate, rooms, stop_sell};
use crate::ledger::{Admission, Filter, MutationId, Replay};

/// Accepts a mutation, sends it and has it refused.
async fn bury(desk: &Desk, mutation: Mutation) -> MutationId {
    let (id, kind) = (mutation.correlation_id.clone(), mutation.kind());
    let accepted = desk.accept(mutation).await;
    let job = desk.take(kind, id.as_str()).await;
    assert_eq!(desk.refuse(&job).await, State::DeadLettered);
    accepted
}

async fn replay(desk: &Desk, id: MutationId) -> Replay {
    let mut answers = desk.ledger.replay(vec![id], desk.now).await.unwrap();
    desk.balance().await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// The list says how many and why, the record how it came to that.
pub async fn dead_letters_are_listed_by_reason_and_shown_with_their_history(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let dead = bury(&desk, rate("dead", "100", 4)).await;
    desk.accept(at(2, rate("alive", "100", 4))).await;
    let filter = |reason: &str| Filter {
        state: Some(State::DeadLettered),
        reason: Some(reason.to_owned()),
        ..Filter::default()
    };
    let listed = desk.ledger.list(&filter("client_rejection"), None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|record| record.id).collect::<Vec<_>>(), [dead]);
    assert!(listed[0].history.is_empty(), "a list carries no history");
    assert_eq!(desk.ledger.list(&filter("expired"), None, 10).await.unwrap(), vec![]);
    assert_eq!(desk.record("dead").await.history.len(), 1);
}

/// A replay goes through the queue like everything else, its attempts anew, its history kept.
pub async fn a_replayed_one_starts_anew_with_the_same_key(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = bury(&desk, rate("r1", "100", 4)).await;
    let dead = desk.record("r1").await;
    assert_eq!(replay(&desk, id).await, Replay::Queued);
    assert_eq!(replay(&desk, id).await, Replay::Queued, "asked twice, queued once");
    let record = desk.record("r1").await;
    assert_eq!((record.state, record.attempts, record.reason), (State::Queued, 0, None));
    assert_eq!((record.requests, record.history), (1, dead.history));
    let job = desk.take(Kind::Rate, "r1").await;
    assert_eq!((job.idempotency_key.clone(), job.attempts), (dead.idempotency_key, 0));
    desk.commit(&job).await;
    assert_eq!(replay(&desk, id).await, Replay::Newer { by: None }, "a committed one is no dead letter");
    assert_eq!(replay(&desk, MutationId(99)).await, Replay::Newer { by: None });
    assert_eq!(desk.state("r1").await, State::Committed);
}

/// A replay refused says by what, whatever became of that.
pub async fn a_replay_never_overwrites_a_newer_value(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = bury(&desk, rate("r1", "100", 4)).await;
    desk.accept(rate("r2", "110", 4)).await;
    let refused = Replay::Newer { by: Some(name("r2")) };
    assert_eq!(replay(&desk, id).await, refused);
    let job = desk.take(Kind::Rate, "r2").await;
    assert_eq!(replay(&desk, id).await, refused);
    desk.refuse(&job).await;
    let both = desk.ledger.replay(vec![id, job.id], desk.now).await.unwrap();
    assert_eq!(both, vec![refused, Replay::Queued]);
    desk.balance().await;
    let job = desk.take(Kind::Rate, "r2").await;
    desk.commit(&job).await;
    desk.nothing(Kind::Rate).await;
}

/// A value that was taken back is no value of the cell.
pub async fn a_cancelled_newer_one_does_not_forbid_a_replay(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = bury(&desk, rate("r1", "100", 4)).await;
    desk.accept(rate("r2", "110", 4)).await;
    let filter = Filter { correlation_id: Some(name("r2")), ..Filter::default() };
    assert_eq!(desk.ledger.cancel(&filter, desk.now).await.unwrap(), vec![name("r2")]);
    assert_eq!(replay(&desk, id).await, Replay::Queued);
    desk.take(Kind::Rate, "r1").await;
}

/// Restrictions of one cell meet only in the fields that both set.
pub async fn a_replayed_restriction_is_refused_only_for_the_fields_it_shares(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let min = bury(&desk, min_stay("min", 2)).await;
    let stop = bury(&desk, stop_sell("stop", true)).await;
    desk.accept(stop_sell("go", false)).await;
    assert_eq!(replay(&desk, stop).await, Replay::Newer { by: Some(name("go")) });
    assert_eq!(replay(&desk, min).await, Replay::Queued);
    let job = desk.take(Kind::Restriction, "min").await;
    desk.commit(&job).await;
    desk.take(Kind::Restriction, "go").await;
}

/// A replayed rate does not bring an old inventory back.
pub async fn a_replayed_rate_takes_the_newest_inventory(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = bury(&desk, rate("r1", "100", 5)).await;
    desk.accept(availability("a1", 3)).await;
    let job = desk.take(Kind::Availability, "a1").await;
    desk.commit(&job).await;
    assert_eq!(replay(&desk, id).await, Replay::Queued);
    let job = desk.take(Kind::Rate, "r1").await;
    assert_eq!(job.mutation.value.inventory(), Some(rooms(3)));
}

/// A replayed availability would overwrite the inventory that a newer rate brought.
pub async fn a_replayed_availability_is_refused_for_a_newer_rate(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = bury(&desk, availability("a1", 3)).await;
    desk.accept(rate("r1", "100", 7)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.commit(&job).await;
    assert_eq!(replay(&desk, id).await, Replay::Newer { by: Some(name("r1")) });
}

/// Discarding is for good, for dead letters only, and still counted.
pub async fn discarded_ones_are_gone_and_still_counted(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let dead = bury(&desk, rate("dead", "100", 4)).await;
    let alive = desk.accept(at(2, rate("alive", "100", 4))).await;
    assert_eq!(desk.ledger.discard(vec![dead, alive, MutationId(99)]).await.unwrap(), 1);
    desk.balance().await;
    assert_eq!(desk.ledger.discard(vec![dead]).await.unwrap(), 0);
    let tallies = desk.ledger.tallies().await.unwrap();
    assert_eq!((tallies.accepted, tallies.discarded, tallies.pruned), (2, 1, 0));
    assert!(desk.ledger.get(&name("dead")).await.unwrap().is_none());
    let answer = desk.enqueue(entry(rate("dead", "90", 4))).await;
    assert_eq!(answer, Admission::Accepted { id: MutationId(3), revision: 2, superseded: vec![] });
}

/// What is no longer on record was accepted all the same.
pub async fn a_newer_value_that_left_the_record_still_forbids_a_replay(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    let first = bury(&desk, rate("r1", "100", 4)).await;
    let second = bury(&desk, rate("r2", "110", 4)).await;
    assert_eq!(desk.ledger.discard(vec![second]).await.unwrap(), 1);
    assert_eq!(replay(&desk, first).await, Replay::Newer { by: None });

    desk.accept(at(2, availability("a1", 4))).await;
    let job = desk.take(Kind::Availability, "a1").await;
    desk.pass(3600);
    let before = desk.now;
    desk.refuse(&job).await;
    desk.accept(at(3, rate("other", "100", 4))).await;
    assert_eq!(desk.ledger.prune(before, Duration::ZERO).await.unwrap(), 1, "r1 is old enough");
    desk.balance().await;
    assert_eq!(replay(&desk, first).await, Replay::Newer { by: None });
    assert_eq!(replay(&desk, job.id).await, Replay::Queued);
}
