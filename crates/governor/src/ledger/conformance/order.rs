//! Newest wins: an old value never overwrites a newer one.

use ota_governor_core::mutation::{Kind, Mutation, Restriction};
use ota_governor_core::name::{AccountName, ChannelName, RoomTypeCode};
use ota_governor_core::state::State;

use super::Factory;
use super::desk::{
    Desk, at, availability, entry, min_stay, name, plan, priority, rate, restriction, rooms, stop_sell,
};
use crate::ledger::Disposition;

/// The older waiting one is superseded in the same step; neither its turn nor its urgency is lost.
pub async fn the_newest_takes_the_place_and_the_urgency_of_the_older(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(Mutation { priority: priority(50), ..rate("r1", "100", 4) }).await;
    desk.accept(at(2, Mutation { priority: priority(50), ..rate("between", "1", 1) })).await;
    let (_, superseded) = desk.accept_over(rate("r2", "110", 4)).await;
    assert_eq!(superseded, vec![name("r1")]);
    let old = desk.record("r1").await;
    assert_eq!((old.state, old.superseded_by), (State::Superseded, Some(name("r2"))));
    let new = desk.record("r2").await;
    assert_eq!((new.replaced, new.mutation.priority), (Some(name("r1")), priority(50)));
    desk.take(Kind::Rate, "r2").await;
    desk.take(Kind::Rate, "between").await;
    desk.nothing(Kind::Rate).await;
}

/// A producer that sets a cell every minute does not push it to the end of the queue each time.
pub async fn a_cell_set_again_and_again_still_goes_out(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("v0", "100", 4)).await;
    for round in 1..=5 {
        desk.pass(60);
        desk.accept(at(round + 1, rate(&format!("other{round}"), "80", 1))).await;
        desk.accept(rate(&format!("v{round}"), "100", 4)).await;
    }
    desk.take(Kind::Rate, "v5").await;
}

/// Each of the names that make a cell tells two cells apart.
pub async fn cells_that_differ_in_one_name_do_not_meet(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let base = || rate("base", "100", 4);
    desk.accept(base()).await;
    for other in [
        Mutation { correlation_id: name("plan"), rate_plan_code: plan("NRF"), ..base() },
        Mutation { correlation_id: name("property"), ..at(2, base()) },
        Mutation {
            correlation_id: name("room"),
            room_type_code: RoomTypeCode::try_new("SGL").unwrap(),
            ..base()
        },
        Mutation { correlation_id: name("date"), stay_date: jiff::civil::date(2026, 12, 25), ..base() },
        Mutation {
            correlation_id: name("account"),
            account: AccountName::try_new("second").unwrap(),
            ..base()
        },
        Mutation { correlation_id: name("channel"), ota: ChannelName::try_new("ota_y").unwrap(), ..base() },
        min_stay("kind", 2),
    ] {
        assert_eq!(desk.accept_over(other).await.1, vec![]);
    }
    assert_eq!(desk.state("base").await, State::Queued);
}

/// Two values of a cell are never on the wire at once, whoever asks.
pub async fn one_of_a_cell_is_in_flight_and_the_newer_waits(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let first = desk.take(Kind::Rate, "r1").await;
    assert_eq!(desk.accept_over(rate("r2", "110", 4)).await.1, vec![]);
    assert_eq!(desk.record("r2").await.behind, Some(name("r1")));
    desk.nothing(Kind::Rate).await;
    desk.commit(&first).await;
    assert_eq!(desk.record("r2").await.behind, None);
    let second = desk.take(Kind::Rate, "r2").await;
    desk.commit(&second).await;
    assert_eq!(desk.state("r1").await, State::Committed);
}

/// Whatever the failure, a newer value that waits ends the older one, and takes its turn and urgency.
pub async fn an_older_one_that_fails_is_superseded_and_never_retried(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    for (round, dead) in [false, true].into_iter().enumerate() {
        let (old, new) = (format!("old{round}"), format!("new{round}"));
        desk.accept(Mutation { priority: priority(7), ..rate(&old, "100", 4) }).await;
        let job = desk.take(Kind::Rate, &old).await;
        desk.accept(rate(&new, "110", 4)).await;
        let state = if dead { desk.refuse(&job).await } else { desk.fail(&job, 1).await };
        assert_eq!(state, State::Superseded);
        let record = desk.record(&old).await;
        assert_eq!((record.superseded_by, record.requests), (Some(name(&new)), 1));
        assert_eq!((record.reason, record.due), (None, None));
        let heir = desk.record(&new).await;
        assert_eq!((heir.replaced, heir.mutation.priority), (Some(name(&old)), priority(7)));
        let job = desk.take(Kind::Rate, &new).await;
        desk.commit(&job).await;
        desk.pass(3600);
        desk.nothing(Kind::Rate).await;
    }
}

/// A permit given back does not bring an old value back.
pub async fn an_older_one_that_nothing_was_sent_of_is_superseded_too(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.accept(rate("r2", "110", 4)).await;
    assert_eq!(desk.end(&job, None, Disposition::Returned).await, State::Superseded);
    desk.take(Kind::Rate, "r2").await;
}

/// A value that failed and is parked is dropped when a newer one comes: the newer goes at once.
pub async fn a_parked_older_one_does_not_put_its_value_back(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(availability("v1", 2)).await;
    let job = desk.take(Kind::Availability, "v1").await;
    assert_eq!(desk.fail(&job, 60).await, State::Deferred);
    desk.pass(5);
    assert_eq!(desk.accept_over(availability("v2", 3)).await.1, vec![name("v1")]);
    let job = desk.take(Kind::Availability, "v2").await;
    desk.commit(&job).await;
    desk.pass(60);
    desk.nothing(Kind::Availability).await;
    assert_eq!(desk.state("v1").await, State::Superseded);
}

/// A newer value is not merged into the one being sent: it goes as its own call.
pub async fn what_is_in_flight_is_a_frozen_copy(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 5)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.accept(availability("a1", 6)).await;
    let record = desk.record("r1").await;
    assert_eq!(
        (record.mutation, record.idempotency_key),
        (job.mutation.clone(), job.idempotency_key.clone())
    );
    desk.commit(&job).await;
    assert_eq!(desk.record("r1").await.mutation.value.inventory(), Some(rooms(5)));
    desk.take(Kind::Availability, "a1").await;
}

/// A restriction that leaves a field of the older one alone does not make it needless: both go.
pub async fn a_restriction_is_superseded_only_by_one_that_sets_every_field(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(restriction(
        "both",
        Restriction { min_stay: Some(2), stop_sell: Some(true), ..Restriction::default() },
    ))
    .await;
    assert_eq!(desk.accept_over(min_stay("min", 3)).await.1, vec![]);
    assert_eq!(desk.record("min").await.behind, Some(name("both")));
    assert_eq!(desk.accept_over(min_stay("min again", 4)).await.1, vec![name("min")]);
    let first = desk.take(Kind::Restriction, "both").await;
    desk.nothing(Kind::Restriction).await;
    desk.commit(&first).await;
    let second = desk.take(Kind::Restriction, "min again").await;
    desk.commit(&second).await;

    desk.accept(min_stay("a", 2)).await;
    desk.accept(stop_sell("b", true)).await;
    let wide = Restriction {
        min_stay: Some(1),
        stop_sell: Some(false),
        max_stay: Some(9),
        ..Restriction::default()
    };
    let (_, superseded) = desk.accept_over(restriction("wide", wide)).await;
    assert_eq!(superseded, vec![name("a"), name("b")]);
    assert_eq!(desk.record("wide").await.replaced, Some(name("b")));
}

/// A stop-sell gets the next slot without overtaking an older value of its own cell.
pub async fn an_urgent_restriction_is_not_stuck_behind_a_patient_one(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    for number in 2..12 {
        desk.accept(at(number, min_stay(&format!("sync{number}"), 2))).await;
    }
    desk.accept(Mutation { priority: priority(900), ..min_stay("patient", 2) }).await;
    desk.accept(Mutation { priority: priority(0), ..stop_sell("urgent", true) }).await;
    assert_eq!(desk.record("patient").await.mutation.priority, priority(0));
    let first = desk.take(Kind::Restriction, "patient").await;
    assert_eq!(first.mutation.priority, priority(0));
    desk.commit(&first).await;
    desk.take(Kind::Restriction, "urgent").await;
}

/// A restriction that fails while one waits that leaves a field of it alone goes again, first.
pub async fn a_failed_restriction_that_is_not_covered_goes_again_first(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(min_stay("first", 2)).await;
    let job = desk.take(Kind::Restriction, "first").await;
    desk.accept(Mutation { priority: priority(5), ..stop_sell("second", true) }).await;
    assert_eq!(desk.fail(&job, 10).await, State::Deferred);
    assert_eq!(desk.record("first").await.mutation.priority, priority(5));
    desk.nothing(Kind::Restriction).await;
    desk.pass(10);
    let job = desk.take(Kind::Restriction, "first").await;
    desk.commit(&job).await;
    desk.take(Kind::Restriction, "second").await;
}

/// Inventory is one value whoever carries it: waiting rates, parked ones included, carry the newest.
pub async fn an_availability_rewrites_every_waiting_rate_it_covers(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("parked", "100", 5)).await;
    let job = desk.take(Kind::Rate, "parked").await;
    desk.fail(&job, 60).await;
    desk.accept(Mutation { rate_plan_code: plan("NRF"), ..rate("other plan", "90", 5) }).await;
    desk.accept(at(2, rate("other property", "80", 5))).await;
    let key = desk.record("parked").await.idempotency_key;
    desk.accept(Mutation { rate_plan_code: plan("BAR"), ..availability("one plan", 3) }).await;
    let carries = async |id: &str| desk.record(id).await.mutation.value.inventory().unwrap().get();
    assert_eq!((carries("parked").await, carries("other plan").await), (3, 5));
    assert_ne!(desk.record("parked").await.idempotency_key, key, "the channel would take it for the same");
    desk.accept(availability("all plans", 0)).await;
    assert_eq!((carries("parked").await, carries("other plan").await), (0, 0));
    assert_eq!(carries("other property").await, 5);
    assert_eq!(desk.state("parked").await, State::Deferred);
    desk.pass(60);
    for _ in 0..3 {
        let job = desk.next(Kind::Rate).await.unwrap();
        let expected = if job.mutation.correlation_id == name("other property") { 5 } else { 0 };
        assert_eq!(job.mutation.value.inventory(), Some(rooms(expected)));
    }
}

/// Whichever of the two went first, the other waits for its answer; other plans are not held up.
pub async fn a_rate_and_an_availability_of_one_stock_are_never_in_flight_together(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 5)).await;
    desk.accept(availability("a1", 3)).await;
    let rate_job = desk.take(Kind::Rate, "r1").await;
    desk.nothing(Kind::Availability).await;
    assert_eq!(desk.record("a1").await.behind, Some(name("r1")));
    desk.commit(&rate_job).await;
    let job = desk.take(Kind::Availability, "a1").await;
    desk.accept(rate("r2", "110", 2)).await;
    desk.nothing(Kind::Rate).await;
    desk.accept(Mutation { stay_date: jiff::civil::date(2026, 12, 25), ..rate("next day", "110", 2) }).await;
    desk.take(Kind::Rate, "next day").await;
    desk.commit(&job).await;
    let job = desk.take(Kind::Rate, "r2").await;
    assert_eq!(job.mutation.value.inventory(), Some(rooms(2)));
    desk.accept(Mutation { rate_plan_code: plan("NRF"), ..availability("other plan", 1) }).await;
    desk.take(Kind::Availability, "other plan").await;
}

/// The rate's inventory is the newer: it may not be overwritten by the availability that failed first.
pub async fn a_newer_rate_waits_behind_an_older_availability(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(Mutation { priority: priority(500), ..availability("a1", 3) }).await;
    desk.accept(Mutation { priority: priority(1), ..rate("r1", "100", 7) }).await;
    assert_eq!(desk.record("a1").await.mutation.priority, priority(1), "an urgent one stands behind it");
    assert_eq!(desk.record("r1").await.behind, Some(name("a1")));
    desk.nothing(Kind::Rate).await;
    let job = desk.take(Kind::Availability, "a1").await;
    desk.fail(&job, 30).await;
    desk.nothing(Kind::Rate).await;
    desk.pass(30);
    let job = desk.take(Kind::Availability, "a1").await;
    desk.refuse(&job).await;
    let job = desk.take(Kind::Rate, "r1").await;
    assert_eq!(job.mutation.value.inventory(), Some(rooms(7)));
}

/// An availability of all plans and one of a plan set the same stock: they go in the order accepted.
pub async fn overlapping_availabilities_go_oldest_first(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let of_plan =
        |id: &str, inventory| Mutation { rate_plan_code: plan("BAR"), ..availability(id, inventory) };
    desk.accept(availability("all", 3)).await;
    desk.accept(Mutation { priority: priority(2), ..of_plan("one", 4) }).await;
    let job = desk.take(Kind::Availability, "all").await;
    desk.nothing(Kind::Availability).await;
    desk.commit(&job).await;
    let job = desk.take(Kind::Availability, "one").await;
    desk.accept(availability("all again", 5)).await;
    desk.nothing(Kind::Availability).await;
    desk.commit(&job).await;
    desk.take(Kind::Availability, "all again").await;
}

/// A rate that was in flight when the availability came carries the newer inventory when it goes again.
pub async fn a_rate_that_comes_back_takes_the_inventory_accepted_meanwhile(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 5)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.accept(availability("a1", 3)).await;
    desk.accept(Mutation { rate_plan_code: plan("NRF"), ..availability("elsewhere", 9) }).await;
    desk.fail(&job, 10).await;
    let stock = desk.take(Kind::Availability, "a1").await;
    desk.commit(&stock).await;
    desk.pass(10);
    let again = desk.take(Kind::Rate, "r1").await;
    assert_eq!(again.mutation.value.inventory(), Some(rooms(3)));
    assert_ne!(again.idempotency_key, job.idempotency_key);
}

/// Bytes that left may still arrive: the newer value goes only when they no longer can.
pub async fn a_cell_rests_after_an_unknown_outcome(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    assert_eq!(desk.lose(&job, 1, 15).await, State::Deferred);
    desk.accept(rate("r2", "110", 4)).await;
    desk.accept(Mutation { rate_plan_code: plan("NRF"), ..rate("other cell", "90", 4) }).await;
    desk.take(Kind::Rate, "other cell").await;
    desk.pass(14);
    desk.nothing(Kind::Rate).await;
    let head = desk.ledger.head(&super::desk::lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!((head.ready, head.due), (0, Some(desk.later(1))));
    desk.pass(1);
    desk.take(Kind::Rate, "r2").await;
}

/// The same value may go again early, but its first request may still arrive after the second's answer.
pub async fn a_rest_outlives_the_commit_of_the_value_that_was_sent_again(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.lose(&job, 1, 15).await;
    desk.pass(1);
    let again = desk.take(Kind::Rate, "r1").await;
    assert_eq!(again.idempotency_key, job.idempotency_key);
    desk.commit(&again).await;
    let desk = desk.crash(factory).await;
    desk.accept(rate("r2", "110", 4)).await;
    desk.nothing(Kind::Rate).await;
    let mut desk = desk;
    desk.pass(14);
    desk.take(Kind::Rate, "r2").await;
}

/// A lost availability holds back the rates it covers, and a lost rate the availabilities that cover it.
pub async fn an_inventory_rests_whoever_carried_it(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(availability("a1", 3)).await;
    let job = desk.take(Kind::Availability, "a1").await;
    desk.lose(&job, 1, 15).await;
    desk.pass(1);
    let job = desk.take(Kind::Availability, "a1").await;
    desk.commit(&job).await;
    desk.accept(rate("r1", "100", 7)).await;
    desk.accept(min_stay("no stock", 2)).await;
    desk.take(Kind::Restriction, "no stock").await;
    desk.nothing(Kind::Rate).await;
    desk.pass(14);
    let job = desk.take(Kind::Rate, "r1").await;
    desk.lose(&job, 1, 15).await;
    desk.pass(1);
    let job = desk.take(Kind::Rate, "r1").await;
    desk.commit(&job).await;
    desk.enqueue(entry(availability("a2", 1))).await;
    desk.nothing(Kind::Availability).await;
    desk.pass(14);
    desk.take(Kind::Availability, "a2").await;
}

/// Once its inventory is rewritten, a lost rate says something else than what may still arrive.
pub async fn a_rewritten_rate_waits_for_its_own_earlier_request(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 5)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    desk.lose(&job, 1, 15).await;
    desk.accept(availability("a1", 3)).await;
    desk.pass(1);
    desk.nothing(Kind::Rate).await;
    desk.nothing(Kind::Availability).await;
    desk.pass(14);
    let job = desk.take(Kind::Rate, "r1").await;
    assert_eq!(job.mutation.value.inventory(), Some(rooms(3)));
}
