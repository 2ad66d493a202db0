//! Pauses, breakers and suspensions, turns already waited for included.

use ota_governor_core::lane::Scope;

use super::{
    AccountName, Ask, Backend, Duration, LaneLimits, Permit, Timestamp, World, ask, at_once, bucket, granted,
    is_at, lane, limit, of, only, property, refused, secs,
};
use crate::ledger::{Hold, HoldCause};

fn hold(scope: Scope, since: Timestamp, until: Option<Timestamp>) -> Hold {
    Hold { scope, cause: HoldCause::Throttled, since, until, detail: "429 with Retry-After 30".to_owned() }
}

fn on_lane(world: &World, until: Option<Duration>) -> Hold {
    let scope = Scope::Lane { lane: lane("rates") };
    hold(scope, world.clock.now(), until.map(|until| world.start + until))
}

/// A pause that comes while askers wait holds them back until its very end, then the limits spread them.
pub async fn a_hold_is_obeyed_by_those_already_in_line(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(1), 2))).await;
    world.call(ask("rates")).await;
    world.call(ask("rates")).await;
    let mut line = Vec::new();
    for _ in 0..4 {
        line.push(world.join_line(ask("rates")).await);
    }
    world.limiter.set_holds(vec![on_lane(&world, Some(secs(30)))]);
    for (task, due) in line.into_iter().zip([30, 30, 31, 32]) {
        let at = task.await.expect("the asker is served");
        assert!(at >= secs(due) && at <= secs(due).saturating_add(Duration::from_millis(10)), "{at:?}");
    }
}

/// By hand: nothing goes until it is lifted, then at once.
pub async fn a_hold_without_an_end_waits_until_it_is_lifted(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(1), 1))).await;
    world.limiter.set_holds(vec![on_lane(&world, None)]);
    let waits = world.join_line(ask("rates")).await;
    world.at(secs(100_000)).await;
    assert!(!waits.is_finished());
    world.limiter.set_holds(Vec::new());
    is_at(waits.await.expect("the asker is served"), secs(100_000));
}

/// Asked with a bound, the answer is the hold and when it ends; those already in line learn it too.
pub async fn a_bounded_wait_is_refused_with_the_hold_in_words(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(2), 1))).await;
    world.call(ask("rates")).await;
    let asker = world.clone();
    let bounded = Ask { max_wait: Some(secs(5)), ..ask("rates") };
    let in_line = tokio::spawn(async move { (asker.acquire(bounded).await, asker.elapsed()) });
    super::in_line().await;
    world.limiter.set_holds(vec![on_lane(&world, Some(secs(30)))]);
    let (answer, at) = in_line.await.expect("the asker is answered");
    let (wait, by) = refused(answer);
    assert!(by.contains("429 with Retry-After 30"), "{by}");
    assert!(wait.is_some_and(|wait| wait > secs(29)) && at <= secs(5), "{wait:?} at {at:?}");

    let (wait, by) = refused(world.acquire(Ask { max_wait: Some(secs(5)), ..ask("rates") }).await);
    assert!(by.contains("429 with Retry-After 30"), "{by}");
    assert_eq!(wait, Some(secs(30).saturating_sub(world.elapsed())));
    let outlook = world.limiter.outlook(&lane("rates"), None).await.expect("the limiter answers");
    assert!(outlook.is_some_and(|outlook| outlook.until == Some(world.start + secs(30))));

    world.limiter.set_holds(vec![on_lane(&world, None)]);
    assert_eq!(refused(world.acquire(at_once("rates")).await).0, None);
}

/// Where the channel counts per property, the pause is that property's.
pub async fn a_held_property_leaves_the_others_going(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(10, secs(1), 10))).await;
    let scope = Scope::Property { lane: lane("rates"), property: property("P1") };
    world.limiter.set_holds(vec![hold(scope, world.start, Some(world.start + secs(30)))]);
    let held = world.join_line(of("rates", &["P1"])).await;
    let permits = granted(world.acquire(of("rates", &["P1", "P2"])).await);
    assert_eq!(permits.first().and_then(Permit::property), Some(&property("P2")));
    is_at(held.await.expect("the asker is served"), secs(30));
}

/// A pause covers what its scope says and no more.
pub async fn a_hold_of_one_account_leaves_others_alone(backend: &dyn Backend) {
    let mut other = lane("rates");
    other.account = AccountName::try_new("hotel-7").expect("a name");
    let limits = || vec![limit("only", bucket(10, secs(1), 10))];
    let lanes = vec![LaneLimits::new(lane("rates"), limits()), LaneLimits::new(other.clone(), limits())];
    let world = World::new(backend, lanes).await;
    let scope = Scope::Account { channel: other.channel.clone(), account: other.account.clone() };
    world.limiter.set_holds(vec![hold(scope, world.start, None)]);
    granted(world.acquire(at_once("rates")).await);
    refused(world.acquire(Ask { lane: other.clone(), ..at_once("rates") }).await);
    world.limiter.set_holds(vec![hold(Scope::Channel { channel: other.channel }, world.start, None)]);
    refused(world.acquire(at_once("rates")).await);
}
