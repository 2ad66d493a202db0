//! What is said when mutations are handed in.

use ota_governor_core::idempotency::{self, Recipe};
use ota_governor_core::mutation::{Kind, Mutation};
use ota_governor_core::state::State;

use super::Factory;
use super::desk::{Desk, availability, entry, name, plan, priority, rate};
use crate::ledger::{Admission, Entry, MutationId};

/// The first of a cell is revision 1, and its record says all that was handed in.
pub async fn a_first_one_is_accepted_with_its_revision(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let mutation = Mutation { sequence: Some(u64::MAX), ..rate("r1", "129.90", 4) };
    let Admission::Accepted { id, revision, superseded } = desk.enqueue(entry(mutation.clone())).await else {
        panic!("not accepted");
    };
    assert_eq!((revision, superseded), (1, vec![]));
    let record = desk.record("r1").await;
    assert_eq!((record.id, record.state, record.revision), (id, State::Queued, 1));
    assert_eq!(record.mutation, mutation);
    assert_eq!((record.accepted_at, record.changed_at), (desk.now, desk.now));
    let key = idempotency::key(Recipe::Revision, desk.ledger.id(), &mutation, 1);
    assert_eq!(record.idempotency_key, key);

    let other = Mutation { rate_plan_code: plan("NRF"), ..rate("r2", "129.90", 4) };
    let by_content = Entry { recipe: Recipe::Content, ..entry(other.clone()) };
    assert!(matches!(desk.enqueue(by_content).await, Admission::Accepted { .. }));
    let key = idempotency::key(Recipe::Content, desk.ledger.id(), &other, 1);
    assert_eq!(desk.record("r2").await.idempotency_key, key);
}

/// A producer that sends twice, amounts written otherwise, gets one mutation and learns where it stands.
pub async fn the_same_id_with_the_same_content_is_known(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = desk.accept(rate("r1", "100", 4)).await;
    let again = desk.enqueue(entry(rate("r1", "100.00", 4))).await;
    assert_eq!(again, Admission::Known { id, state: State::Queued });
    let job = desk.take(Kind::Rate, "r1").await;
    desk.commit(&job).await;
    let again = desk.enqueue(entry(rate("r1", "100", 4))).await;
    assert_eq!(again, Admission::Known { id, state: State::Committed });
    assert_eq!(desk.ledger.tallies().await.unwrap().accepted, 1);

    let twice = vec![entry(rate("r2", "90", 1)), entry(rate("r2", "90", 1))];
    let answers = desk.ledger.enqueue(twice, desk.now).await.unwrap();
    assert!(matches!(answers[0], Admission::Accepted { .. }));
    assert!(matches!(answers[1], Admission::Known { state: State::Queued, .. }));
}

/// One name never stands for two values.
pub async fn the_same_id_with_other_content_is_a_conflict(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    for other in [
        rate("r1", "100", 5),
        rate("r1", "100.01", 4),
        availability("r1", 4),
        Mutation { priority: priority(1), ..rate("r1", "100", 4) },
        Mutation { rate_plan_code: plan("NRF"), ..rate("r1", "100", 4) },
        Mutation { sequence: Some(1), ..rate("r1", "100", 4) },
    ] {
        assert_eq!(desk.enqueue(entry(other)).await, Admission::Conflict);
    }
    assert_eq!(desk.record("r1").await.mutation, rate("r1", "100", 4));
    assert_eq!(desk.ledger.tallies().await.unwrap().accepted, 1);
}

/// Inherited urgency and rewritten inventory do not make a repeated mutation another one.
pub async fn a_known_one_is_told_by_what_was_said_not_by_what_became_of_it(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(Mutation { priority: priority(3), ..rate("old", "90", 4) }).await;
    let id = desk.accept(rate("r1", "100", 4)).await;
    desk.accept(availability("a1", 0)).await;
    let record = desk.record("r1").await;
    assert_eq!(record.mutation, Mutation { priority: priority(3), ..rate("r1", "100", 0) });
    let again = desk.enqueue(entry(rate("r1", "100", 4))).await;
    assert_eq!(again, Admission::Known { id, state: State::Queued });
}

/// A late message with an older version is told so; the same version may come again.
pub async fn a_lower_sequence_is_stale_even_when_the_higher_is_done(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let version = |id: &str, sequence| Mutation { sequence: Some(sequence), ..rate(id, "100", 4) };
    desk.accept(version("v9", 9)).await;
    let stale = desk.enqueue(entry(version("v7", 7))).await;
    assert_eq!(stale, Admission::Stale { last: 9 });
    let job = desk.take(Kind::Rate, "v9").await;
    desk.commit(&job).await;
    desk.accept(rate("without", "100", 4)).await;
    let stale = desk.enqueue(entry(version("v8", 8))).await;
    assert_eq!(stale, Admission::Stale { last: 9 });
    assert!(desk.ledger.get(&name("v8")).await.unwrap().is_none());
    desk.accept(version("v9 again", 9)).await;
    desk.accept(Mutation { rate_plan_code: plan("NRF"), ..version("other cell", 1) }).await;
}

/// 100, 120, 100 are three values with three keys.
pub async fn revisions_count_per_cell_and_outlive_their_mutations(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    let mut keys = Vec::new();
    for (at, amount) in ["100", "120", "100"].into_iter().enumerate() {
        let id = format!("r{at}");
        desk.accept(rate(&id, amount, 4)).await;
        keys.push(desk.record(&id).await.idempotency_key);
        let job = desk.take(Kind::Rate, &id).await;
        desk.commit(&job).await;
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);
    desk.pass(60);
    assert_eq!(desk.ledger.prune(desk.now, std::time::Duration::ZERO).await.unwrap(), 3);
    desk.balance().await;
    let answer = desk.enqueue(entry(rate("r3", "100", 4))).await;
    assert_eq!(answer, Admission::Accepted { id: MutationId(4), revision: 4, superseded: vec![] });
}

/// What was said to be accepted is found by the next process.
pub async fn what_was_accepted_is_there_after_a_crash(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let id = desk.accept(rate("r1", "100.10", 4)).await;
    let before = (desk.ledger.id().to_owned(), desk.record("r1").await);
    let desk = desk.crash(factory).await;
    assert_eq!((desk.ledger.id().to_owned(), desk.record("r1").await), before);
    let again = desk.enqueue(entry(rate("r1", "100.1", 4))).await;
    assert_eq!(again, Admission::Known { id, state: State::Queued });
}
