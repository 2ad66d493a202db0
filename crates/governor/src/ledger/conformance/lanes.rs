//! What is kept of lanes, and the marks that wake who waits.

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::mutation::{Kind, Mutation};
use ota_governor_core::name::ChannelName;
use ota_governor_core::time::Timestamp;
use tokio::sync::watch;

use super::Factory;
use super::desk::{Desk, START, at, availability, lane, property, rate};
use crate::ledger::{Hold, HoldCause};

fn held(scope: Scope, cause: HoldCause, until: Option<Timestamp>) -> Hold {
    Hold { scope, cause, since: START, until, detail: format!("because of {cause:?}") }
}

fn whole_lane() -> Scope {
    Scope::Lane { lane: lane(Kind::Rate) }
}

/// Whether a mark has moved since it was last looked at.
fn moved(mark: &mut watch::Receiver<u64>) -> bool {
    let moved = mark.has_changed().unwrap();
    mark.borrow_and_update();
    moved
}

/// A pause holds over a restart; a second one of the same cause takes the place of the first.
pub async fn holds_survive_a_restart_one_per_scope_and_cause(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let of_property = Scope::Property { lane: lane(Kind::Rate), property: property(1) };
    let holds = vec![
        held(whole_lane(), HoldCause::Throttled, Some(desk.later(30))),
        held(whole_lane(), HoldCause::Manual, None),
        held(of_property, HoldCause::Throttled, Some(desk.later(60))),
    ];
    desk.ledger.hold(holds.clone()).await.unwrap();
    let longer = held(whole_lane(), HoldCause::Throttled, Some(desk.later(90)));
    desk.ledger.hold(vec![longer.clone()]).await.unwrap();
    let desk = desk.crash(factory).await;
    let kept = desk.ledger.holds().await.unwrap();
    assert_eq!(kept.len(), 3);
    for hold in [&longer, &holds[1], &holds[2]] {
        assert!(kept.contains(hold), "{hold:?}");
    }
}

/// A person's pause is lifted without lifting the channel's.
pub async fn a_lift_takes_one_cause_or_all(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let by_hand = held(whole_lane(), HoldCause::Manual, None);
    let throttled = held(whole_lane(), HoldCause::Throttled, Some(desk.later(30)));
    let account = Scope::Account { channel: lane(Kind::Rate).channel, account: lane(Kind::Rate).account };
    let suspended = held(account, HoldCause::AccountSuspended, None);
    desk.ledger.hold(vec![by_hand.clone(), throttled.clone(), suspended.clone()]).await.unwrap();
    let lifted = desk.ledger.lift(&whole_lane(), Some(HoldCause::Manual)).await.unwrap();
    assert_eq!(lifted, vec![by_hand]);
    assert_eq!(desk.ledger.lift(&whole_lane(), Some(HoldCause::Manual)).await.unwrap(), vec![]);
    assert_eq!(desk.ledger.lift(&whole_lane(), None).await.unwrap(), vec![throttled]);
    assert_eq!(desk.ledger.holds().await.unwrap(), vec![suspended]);
}

/// A breaker is open after a restart as it was before.
pub async fn health_survives_a_restart(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let settlement = |health: Option<&str>| crate::ledger::Settlement {
        lane: lane(Kind::Rate),
        now: START,
        outcomes: vec![],
        health: health.map(str::to_owned),
        holds: vec![],
        lifted: vec![],
    };
    assert_eq!(desk.ledger.health(&lane(Kind::Rate)).await.unwrap(), None);
    desk.ledger.settle(settlement(Some("{\"failures\":5}"))).await.unwrap();
    desk.ledger.settle(settlement(None)).await.unwrap();
    let desk = desk.crash(factory).await;
    let health = desk.ledger.health(&lane(Kind::Rate)).await.unwrap();
    assert_eq!(health.as_deref(), Some("{\"failures\":5}"), "none means no change");
    assert_eq!(desk.ledger.health(&lane(Kind::Availability)).await.unwrap(), None);
}

/// A lane is listed while it has work, in flight and parked work included.
pub async fn lanes_are_those_with_open_mutations(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    assert_eq!(desk.ledger.lanes().await.unwrap(), Vec::<LaneKey>::new());
    desk.accept(rate("r1", "100", 4)).await;
    desk.accept(at(2, availability("a1", 4))).await;
    assert_eq!(desk.ledger.lanes().await.unwrap(), vec![lane(Kind::Availability), lane(Kind::Rate)]);
    let job = desk.take(Kind::Availability, "a1").await;
    assert_eq!(desk.ledger.lanes().await.unwrap().len(), 2);
    desk.commit(&job).await;
    let desk = desk.crash(factory).await;
    assert_eq!(desk.ledger.lanes().await.unwrap(), vec![lane(Kind::Rate)]);
}

/// A lane that sleeps is woken by its work alone; the governor by a lane's first work.
pub async fn work_moves_the_mark_of_its_lane_and_of_no_other(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let (mut rates, mut stocks) =
        (desk.ledger.changes(&lane(Kind::Rate)), desk.ledger.changes(&lane(Kind::Availability)));
    let mut lanes = desk.ledger.lane_changes();
    assert!(!moved(&mut rates) && !moved(&mut lanes));
    desk.accept(rate("r1", "100", 4)).await;
    assert!(moved(&mut rates) && !moved(&mut stocks) && moved(&mut lanes));
    desk.accept(at(2, rate("r2", "100", 4))).await;
    assert!(moved(&mut rates) && !moved(&mut lanes), "the lane had work already");
    let job = desk.take(Kind::Rate, "r1").await;
    moved(&mut rates);
    desk.fail(&job, 10).await;
    assert!(moved(&mut rates), "the next due time is another now");
    assert!(!moved(&mut stocks));
}

/// A rate that waited for an availability is sent as soon as that is settled, though in another lane.
pub async fn a_settlement_moves_the_mark_of_the_lane_it_frees(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(availability("a1", 3)).await;
    desk.accept(rate("r1", "100", 7)).await;
    let job = desk.take(Kind::Availability, "a1").await;
    let mut rates = desk.ledger.changes(&lane(Kind::Rate));
    rates.borrow_and_update();
    desk.commit(&job).await;
    assert!(moved(&mut rates));
    desk.take(Kind::Rate, "r1").await;
}

/// A pause is seen by the lanes it covers as soon as it is written, and its end too.
pub async fn a_hold_moves_the_marks_it_covers(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let elsewhere = Mutation { ota: ChannelName::try_new("ota_y").unwrap(), ..rate("y", "100", 4) };
    desk.accept(rate("r1", "100", 4)).await;
    let other = elsewhere.lane();
    desk.accept(elsewhere).await;
    let (mut rates, mut others) = (desk.ledger.changes(&lane(Kind::Rate)), desk.ledger.changes(&other));
    let mut lanes = desk.ledger.lane_changes();
    for mark in [&mut rates, &mut others, &mut lanes] {
        mark.borrow_and_update();
    }
    let scope = Scope::Channel { channel: lane(Kind::Rate).channel };
    desk.ledger.hold(vec![held(scope.clone(), HoldCause::Manual, None)]).await.unwrap();
    assert!(moved(&mut rates) && moved(&mut lanes) && !moved(&mut others));
    desk.ledger.lift(&scope, None).await.unwrap();
    assert!(moved(&mut rates) && moved(&mut lanes) && !moved(&mut others));
}
