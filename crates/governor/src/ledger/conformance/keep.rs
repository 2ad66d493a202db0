//! Taking back, crashing, pruning, listing.

use std::time::Duration;

use ota_governor_core::mutation::{Kind, Mutation};
use ota_governor_core::name::{BatchName, ChannelName};
use ota_governor_core::state::State;

use super::Factory;
use super::desk::{Desk, at, availability, entry, lane, min_stay, name, property, rate, stop_sell};
use crate::ledger::{Counts, Filter, MutationId, PastCall, Record};

fn batch(text: &str) -> Option<BatchName> {
    Some(BatchName::try_new(text).unwrap())
}

/// Waiting and parked ones are taken back; one whose bytes may have left is not.
pub async fn a_cancel_takes_back_what_waits_and_leaves_what_is_in_flight(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    let of_batch =
        |number: u32, id: &str| at(number, Mutation { batch: batch("night"), ..rate(id, "100", 4) });
    desk.accept(of_batch(1, "in flight")).await;
    desk.accept(of_batch(2, "parked")).await;
    desk.accept(of_batch(3, "waiting")).await;
    desk.accept(at(4, rate("other batch", "100", 4))).await;
    desk.take(Kind::Rate, "in flight").await;
    let job = desk.take(Kind::Rate, "parked").await;
    desk.fail(&job, 60).await;
    desk.pass(1);
    let filter = Filter { batch: batch("night"), ..Filter::default() };
    let taken = desk.ledger.cancel(&filter, desk.now).await.unwrap();
    desk.balance().await;
    assert_eq!(taken, vec![name("parked"), name("waiting")]);
    let record = desk.record("parked").await;
    assert_eq!((record.state, record.changed_at), (State::Cancelled, desk.now));
    assert_eq!((record.due, record.reason), (None, None));
    assert_eq!(desk.state("in flight").await, State::InFlight);
    assert_eq!(desk.ledger.cancel(&filter, desk.now).await.unwrap(), vec![]);
    desk.pass(60);
    desk.take(Kind::Rate, "other batch").await;
    desk.nothing(Kind::Rate).await;
}

/// What waited for a mutation that was taken back waits no more.
pub async fn a_cancel_frees_what_stood_behind(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(availability("a1", 3)).await;
    desk.accept(rate("r1", "100", 7)).await;
    desk.nothing(Kind::Rate).await;
    let filter = Filter { correlation_id: Some(name("a1")), ..Filter::default() };
    desk.ledger.cancel(&filter, desk.now).await.unwrap();
    assert_eq!(desk.record("r1").await.behind, None);
    desk.take(Kind::Rate, "r1").await;
}

/// Killed at any moment: all is there, what was in flight is due again and no attempt is counted.
pub async fn a_crash_loses_nothing_and_parks_what_was_in_flight(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(at(1, rate("in flight", "100", 4))).await;
    desk.accept(at(2, rate("waiting", "100", 4))).await;
    let sent = desk.now;
    let job = desk.take(Kind::Rate, "in flight").await;
    desk.pass(3);
    let desk = desk.crash(factory).await;
    assert_eq!(desk.ledger.recover(desk.now, Duration::from_secs(15)).await.unwrap(), 1);
    desk.balance().await;
    let record = desk.record("in flight").await;
    assert_eq!((record.state, record.reason.as_deref()), (State::Deferred, Some("unknown_outcome")));
    assert_eq!((record.due, record.attempts, record.requests), (Some(desk.now), 0, 1));
    let attempt = &record.history[0];
    assert_eq!((attempt.sent_at, attempt.answered_at, attempt.status), (sent, desk.now, None));
    assert!(!attempt.counted);
    let again = desk.take(Kind::Rate, "in flight").await;
    assert_eq!(again.idempotency_key, job.idempotency_key);
    desk.take(Kind::Rate, "waiting").await;
}

/// The process died with an old value on the wire and a newer one waiting: the newer goes, after a rest.
pub async fn after_a_crash_an_older_value_does_not_go_again(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("v1", "100", 4)).await;
    desk.take(Kind::Rate, "v1").await;
    desk.accept(rate("v2", "110", 4)).await;
    desk.pass(3);
    let mut desk = desk.crash(factory).await;
    assert_eq!(desk.ledger.recover(desk.now, Duration::from_secs(15)).await.unwrap(), 1);
    desk.balance().await;
    let record = desk.record("v1").await;
    assert_eq!((record.state, record.superseded_by), (State::Superseded, Some(name("v2"))));
    desk.pass(11);
    desk.nothing(Kind::Rate).await;
    desk.pass(1);
    desk.take(Kind::Rate, "v2").await;
    desk.nothing(Kind::Rate).await;
}

/// A settlement of the process that died changes nothing after recovery; nothing goes out twice at once.
pub async fn a_lost_dispatcher_sends_nothing_twice(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    desk.take(Kind::Rate, "r1").await;
    let desk = desk.crash(factory).await;
    desk.nothing(Kind::Rate).await;
    desk.ledger.recover(desk.now, Duration::from_secs(15)).await.unwrap();
    assert_eq!(desk.ledger.recover(desk.now, Duration::from_secs(15)).await.unwrap(), 0);
    desk.take(Kind::Rate, "r1").await;
    desk.nothing(Kind::Rate).await;
}

/// Limits go on counting what was sent before the restart, dead letters discarded since included.
pub async fn past_calls_survive_a_crash_and_a_discard(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    for number in 1..=3 {
        desk.accept(at(number, rate(&format!("r{number}"), "100", 4))).await;
    }
    let first = desk.take(Kind::Rate, "r1").await;
    desk.commit(&first).await;
    desk.pass(100);
    let second = desk.take(Kind::Rate, "r2").await;
    desk.refuse(&second).await;
    let sent = desk.attempt(None, true).sent_at;
    desk.ledger.discard(vec![second.id]).await.unwrap();
    let lost = desk.now;
    desk.take(Kind::Rate, "r3").await;
    desk.pass(200);
    let desk = desk.crash(factory).await;
    desk.ledger.recover(desk.now, Duration::from_secs(15)).await.unwrap();
    let call = |number, sent_at, answered_at| PastCall {
        lane: lane(Kind::Rate),
        property: property(number),
        sent_at,
        answered_at,
    };
    let answered = call(2, sent, Some(lost));
    let unknown = call(3, lost, None);
    assert_eq!(desk.ledger.past_calls(sent).await.unwrap(), vec![answered, unknown.clone()]);
    assert_eq!(desk.ledger.past_calls(desk.now).await.unwrap(), vec![unknown], "it may still count");
}

/// Only what is final and old goes; the counts stay whole.
pub async fn pruning_keeps_what_is_open_and_what_is_recent(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    for number in 1..=4 {
        desk.accept(at(number, rate(&format!("r{number}"), "100", 4))).await;
    }
    let old = desk.take(Kind::Rate, "r1").await;
    desk.commit(&old).await;
    let parked = desk.take(Kind::Rate, "r2").await;
    desk.fail(&parked, 1_000_000).await;
    desk.pass(3600);
    let recent = desk.take(Kind::Rate, "r3").await;
    desk.commit(&recent).await;
    assert_eq!(desk.ledger.prune(desk.now, Duration::from_secs(3600)).await.unwrap(), 1);
    desk.balance().await;
    assert!(desk.ledger.get(&name("r1")).await.unwrap().is_none());
    for (id, state) in [("r2", State::Deferred), ("r3", State::Committed), ("r4", State::Queued)] {
        assert_eq!(desk.state(id).await, state);
    }
    let tallies = desk.ledger.tallies().await.unwrap();
    assert_eq!((tallies.accepted, tallies.pruned), (4, 1));
    let desk = desk.crash(factory).await;
    assert_eq!(desk.ledger.tallies().await.unwrap(), tallies);
}

/// Page by page, everything once, in the order of acceptance, while more comes in.
pub async fn pages_of_a_list_neither_skip_nor_repeat(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let some = (1..=7).map(|number| entry(at(number, rate(&format!("r{number}"), "100", 4))));
    desk.ledger.enqueue(some.collect(), desk.now).await.unwrap();
    let mut seen: Vec<MutationId> = Vec::new();
    loop {
        let page = desk.ledger.list(&Filter::default(), seen.last().copied(), 3).await.unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        seen.extend(page.iter().map(|record| record.id));
        if seen.len() == 3 {
            desk.accept(at(8, rate("meanwhile", "100", 4))).await;
        }
    }
    assert_eq!(seen, (1..=8).map(MutationId).collect::<Vec<_>>());
}

/// Each part of a filter narrows; together they narrow more.
pub async fn filters_narrow_a_list(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(Mutation { batch: batch("night"), ..rate("rate", "100", 4) }).await;
    desk.accept(at(2, Mutation { batch: batch("night"), ..min_stay("restriction", 2) })).await;
    desk.accept(Mutation { ota: ChannelName::try_new("ota_y").unwrap(), ..stop_sell("other", true) }).await;
    desk.pass(10);
    let job = desk.take(Kind::Rate, "rate").await;
    desk.fail(&job, 60).await;
    let ids = async |filter: Filter| {
        let records = desk.ledger.list(&filter, None, 10).await.unwrap();
        records.iter().map(|record: &Record| record.id.0).collect::<Vec<_>>()
    };
    let all = Filter::default;
    assert_eq!(ids(all()).await, [1, 2, 3]);
    assert_eq!(ids(Filter { batch: batch("night"), ..all() }).await, [1, 2]);
    assert_eq!(ids(Filter { batch: batch("nigh"), ..all() }).await, [0_i64; 0]);
    assert_eq!(ids(Filter { state: Some(State::Deferred), ..all() }).await, [1]);
    assert_eq!(ids(Filter { kind: Some(Kind::Restriction), ..all() }).await, [2, 3]);
    assert_eq!(ids(Filter { property_id: Some(property(2)), ..all() }).await, [2]);
    assert_eq!(ids(Filter { correlation_id: Some(name("other")), ..all() }).await, [3]);
    assert_eq!(ids(Filter { reason: Some("server_error".to_owned()), ..all() }).await, [1]);
    assert_eq!(ids(Filter { changed_since: Some(desk.now), ..all() }).await, [1]);
    let ota = Some(ChannelName::try_new("ota_x").unwrap());
    let account = Some(ota_governor_core::name::AccountName::default());
    assert_eq!(ids(Filter { ota, account, kind: Some(Kind::Restriction), ..all() }).await, [2]);
}

/// A report is about one file's mutations, whatever else the ledger holds.
pub async fn counts_are_of_these_mutations_only(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let mine =
        [desk.accept(at(1, rate("r1", "100", 4))).await, desk.accept(at(2, rate("r2", "100", 4))).await];
    desk.accept(at(3, rate("not mine", "100", 4))).await;
    let other = Mutation { ota: ChannelName::try_new("ota_y").unwrap(), ..availability("a1", 2) };
    let ids = [mine[0], mine[1], desk.accept(other).await, MutationId(99)];
    let job = desk.take(Kind::Rate, "r1").await;
    desk.end(
        &job,
        Some(429),
        crate::ledger::Disposition::Deferred {
            reason: ota_governor_core::state::DeferReason::Throttled,
            due: desk.later(1),
        },
    )
    .await;
    let channel = |text: &str| ChannelName::try_new(text).unwrap();
    let expected = vec![
        (channel("ota_x"), Counts { states: [1, 0, 1, 0, 0, 0, 0], requests: 1, throttled: 1 }),
        (channel("ota_y"), Counts { states: [1, 0, 0, 0, 0, 0, 0], requests: 0, throttled: 0 }),
    ];
    assert_eq!(desk.ledger.counts(&ids).await.unwrap(), expected);
    assert_eq!(desk.ledger.counts(&[]).await.unwrap(), vec![]);
}
