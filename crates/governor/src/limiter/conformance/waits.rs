//! Waits and refusals are exact, and what is reported is what happens.

use super::{
    Ask, Backend, Duration, Grant, LaneLimits, Permit, Priority, Rule, World, ask, at_once, bucket, count,
    granted, in_line, is_at, lane, limit, only, refused, secs, window,
};

/// The channel may see a call as late as its answer, so it counts until then.
pub async fn a_slow_call_counts_until_its_answer(backend: &dyn Backend) {
    let world = World::new(backend, only(window(1, secs(10), 1))).await;
    let slow = granted(world.acquire(ask("rates")).await);
    let next = world.join_line(ask("rates")).await;
    world.at(secs(15)).await;
    assert!(!next.is_finished());
    slow.into_iter().for_each(Permit::answered);
    let at = next.await.expect("the asker is served");
    assert!(at > secs(25) && at < Duration::from_millis(25_010), "{at:?}");

    let world = World::new(backend, only(Rule::Concurrency { max: count(1) })).await;
    let slow = granted(world.acquire(ask("rates")).await);
    let next = world.join_line(ask("rates")).await;
    world.at(secs(3)).await;
    drop(slow);
    is_at(next.await.expect("the asker is served"), secs(3));
}

/// Refused until exactly when it said.
pub async fn a_refusal_names_the_exact_wait(backend: &dyn Backend) {
    let rules =
        [bucket(1, secs(7), 2), window(3, secs(60), 3), window(10, secs(60), 1), bucket(7, secs(86_400), 1)];
    for rule in rules {
        let world = World::new(backend, only(rule)).await;
        let mut grants = 0;
        while let Grant::Granted(permits) = world.acquire(at_once("rates")).await {
            permits.into_iter().for_each(Permit::answered);
            grants += 1;
            assert!(grants <= 3, "the burst ends");
        }
        let (wait, by) = refused(world.acquire(at_once("rates")).await);
        assert_eq!(by, "only");
        let due = world.elapsed().saturating_add(wait.expect("a limit's wait has an end"));
        world.at(due.saturating_sub(Duration::from_millis(2))).await;
        refused(world.acquire(at_once("rates")).await);
        world.at(due).await;
        granted(world.acquire(at_once("rates")).await);
    }
}

/// The turn is reckoned with those ahead; refused at once, the line is as before.
pub async fn a_turn_too_far_off_is_refused_at_once_and_takes_nothing(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(1), 1))).await;
    world.call(ask("rates")).await;
    let mut line = Vec::new();
    for _ in 0..3 {
        line.push(world.join_line(ask("rates")).await);
    }
    let before = world.elapsed();
    for _ in 0..4 {
        let short = Ask { max_wait: Some(Duration::from_millis(3_900)), ..ask("rates") };
        let (wait, by) = refused(world.acquire(short).await);
        assert_eq!(world.elapsed(), before, "at once");
        assert_eq!(before.saturating_add(wait.expect("a limit's wait has an end")), secs(4));
        assert_eq!(by, "only");
    }
    let long_enough = Ask { max_wait: Some(Duration::from_millis(4_100)), ..ask("rates") };
    let last = world.join_line(long_enough).await;
    for (place, task) in (1u64..).zip(line) {
        let at = task.await.expect("the asker is served");
        assert!(at >= secs(place) && at < secs(place).saturating_add(Duration::from_millis(50)), "{at:?}");
    }
    let at = last.await.expect("the asker is served");
    assert!(at >= secs(4) && at < Duration::from_millis(4_050), "{at:?}");
}

/// One who is refused has held up nobody, however urgent and however much was asked for.
pub async fn a_refused_asker_holds_up_nobody(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(1), 5))).await;
    world.call(Ask { cost: 5, ..ask("rates") }).await;
    let waits = world.join_line(ask("rates")).await;
    let much = Ask { cost: 5, priority: Priority::MOST_URGENT, max_wait: Some(secs(2)), ..ask("rates") };
    let (wait, _) = refused(world.acquire(much).await);
    assert_eq!(world.elapsed().saturating_add(wait.expect("a limit's wait has an end")), secs(5));
    is_at(waits.await.expect("the asker is served"), secs(1));
}

/// Where only an answer could help, the bound is kept all the same.
pub async fn an_asker_behind_a_slow_call_is_refused_at_its_deadline(backend: &dyn Backend) {
    let world = World::new(backend, only(Rule::Concurrency { max: count(1) })).await;
    let slow = granted(world.acquire(ask("rates")).await);
    let bounded = Ask { max_wait: Some(secs(5)), ..ask("rates") };
    let (_, by) = refused(world.acquire(bounded).await);
    assert_eq!(by, "only");
    is_at(world.elapsed(), secs(5));
    drop(slow);
    granted(world.acquire(at_once("rates")).await);
}

/// A cost above what the limit can ever hold waits for nothing.
pub async fn a_cost_that_can_never_fit_is_refused_as_such(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(10, secs(1), 10))).await;
    let grant = world.acquire(Ask { cost: 12, ..ask("rates") }).await;
    assert!(matches!(&grant, Grant::NeverFits { limit } if limit.as_str() == "only"), "{grant:?}");
    granted(world.acquire(Ask { cost: 10, ..at_once("rates") }).await);
}

/// A lane without limits is not a lane without bounds.
pub async fn an_unknown_lane_is_an_error_and_no_grant(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(10, secs(1), 10))).await;
    assert!(world.limiter.acquire(ask("reservations")).await.is_err());
    assert!(world.limiter.outlook(&lane("reservations"), None).await.is_err());
}

/// Pace and quota at once: the one that binds longest is named.
pub async fn the_outlook_names_what_binds_and_until_when(backend: &dyn Backend) {
    let limits = vec![limit("pace", bucket(1, secs(1), 1)), limit("quota", bucket(2, secs(120), 2))];
    let world = World::new(backend, vec![LaneLimits::new(lane("rates"), limits)]).await;
    let outlook =
        || async { world.limiter.outlook(&lane("rates"), None).await.expect("the limiter answers") };
    assert_eq!(outlook().await, None);
    world.call(ask("rates")).await;
    let paced = outlook().await.expect("the pace binds");
    assert_eq!((paced.by.as_str(), paced.until), ("pace", Some(world.start + secs(1))));
    world.call(ask("rates")).await;
    let spent = outlook().await.expect("the quota binds");
    assert_eq!(spent.by, "quota");
    let (wait, by) = refused(world.acquire(at_once("rates")).await);
    assert_eq!((by.as_str(), wait.map(|wait| world.clock.now() + wait)), ("quota", spent.until));
}

/// What an operator reads is what the next calls meet.
pub async fn status_tells_what_the_next_calls_get(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(1), 2))).await;
    let row = || async {
        let rows = world.limiter.status().await.expect("the limiter answers");
        rows.into_iter().next().expect("a limit without a property is always shown")
    };
    let full = row().await;
    assert_eq!((full.left, full.used, full.max, full.next_at), (2, 0, 2, None));
    assert_eq!(full.rule, "token_bucket 1 per 1s, burst 2");
    world.call(ask("rates")).await;
    assert_eq!(row().await.left, 1);
    world.call(ask("rates")).await;
    let spent = row().await;
    assert_eq!((spent.left, spent.next_at), (0, Some(world.start + secs(1))));
    in_line().await;
    world.at(secs(2)).await;
    assert_eq!(row().await.left, 2);
    granted(world.acquire(at_once("rates")).await);
    granted(world.acquire(at_once("rates")).await);
    refused(world.acquire(at_once("rates")).await);
}
