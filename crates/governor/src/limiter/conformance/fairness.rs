//! Who goes first, who holds up whom, and what costs nothing.

use super::{
    Ask, Backend, Duration, Each, LaneLimits, Limit, Permit, Priority, PropertyId, Rule, TICK, World, ask,
    at_once, bucket, count, granted, in_line, is_at, lane, limit, of, only, property, refused, secs, window,
};

/// Two limits on one lane: a refusal by one takes nothing from the other.
pub async fn a_permit_is_taken_from_all_limits_or_from_none(backend: &dyn Backend) {
    let limits = vec![limit("wide", window(100, secs(60), 100)), limit("narrow", bucket(1, secs(60), 1))];
    let world = World::new(backend, vec![LaneLimits::new(lane("rates"), limits)]).await;
    let first = granted(world.acquire(at_once("rates")).await);
    for _ in 0..5 {
        let (_, by) = refused(world.acquire(at_once("rates")).await);
        assert_eq!(by, "narrow");
    }
    assert_eq!(world.used("wide").await, 1);
    assert_eq!(world.used("narrow").await, 1);
    first.into_iter().for_each(Permit::answered);
    is_at(world.call(ask("rates")).await, secs(60));
}

/// Equal askers go in the order in which they came.
pub async fn first_come_is_first_served(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(1), 1))).await;
    world.call(ask("rates")).await;
    let mut line = Vec::new();
    for _ in 0..5 {
        line.push(world.join_line(ask("rates")).await);
    }
    for (place, task) in (1u64..).zip(line) {
        let at = task.await.expect("the asker is served");
        assert!(at >= secs(place) && at < secs(place).saturating_add(Duration::from_millis(50)), "{at:?}");
    }
}

/// However long the line, the urgent one has the next slot.
pub async fn an_urgent_asker_waits_at_most_one_slot(backend: &dyn Backend) {
    let world = World::new(backend, only(window(90, secs(60), 3))).await;
    let mut line = Vec::new();
    for _ in 0..50 {
        line.push(world.join_line(ask("rates")).await);
    }
    let asked = world.elapsed();
    let urgent = world.call(Ask { priority: Priority::MOST_URGENT, ..ask("rates") }).await;
    assert!(
        urgent.saturating_sub(asked) <= Duration::from_micros(666_667).saturating_add(TICK),
        "{urgent:?}"
    );
    for task in line {
        task.abort();
    }
}

/// Lanes that share a limit form one line.
pub async fn the_more_urgent_lane_of_a_shared_limit_goes_first(backend: &dyn Backend) {
    let shared = limit("shared", bucket(1, secs(1), 1));
    let lanes = ["rates", "availability"]
        .map(|endpoint| LaneLimits::new(lane(endpoint), vec![shared.clone()]))
        .to_vec();
    let world = World::new(backend, lanes).await;
    world.call(ask("rates")).await;
    let patient = world.join_line(ask("rates")).await;
    let urgent = Ask { priority: Priority::MOST_URGENT, ..ask("availability") };
    let urgent = world.join_line(urgent).await;
    is_at(urgent.await.expect("the asker is served"), secs(1));
    let patient = patient.await.expect("the asker is served");
    assert!(patient >= secs(2) && patient <= Duration::from_millis(2_010), "{patient:?}");
}

fn per_property() -> Vec<LaneLimits> {
    let of_property = Limit { each: Each::Property, ..limit("per property", bucket(1, secs(4), 1)) };
    let limits = vec![limit("whole", bucket(100, secs(1), 100)), of_property];
    vec![LaneLimits::new(lane("rates"), limits)]
}

/// One property at one call per 4 s has ten calls waiting; the others go at once.
pub async fn a_used_up_property_never_blocks_others(backend: &dyn Backend) {
    let world = World::new(backend, per_property()).await;
    let mut slow = Vec::new();
    for _ in 0..10 {
        slow.push(world.join_line(of("rates", &["P1"])).await);
    }
    let before = world.elapsed();
    for name in ["P2", "P3", "P4", "P5", "P6"] {
        // The used-up one stands first among the candidates.
        let permits = granted(world.acquire(of("rates", &["P1", name])).await);
        assert_eq!(permits.first().and_then(Permit::property), Some(&property(name)));
        permits.into_iter().for_each(Permit::answered);
    }
    assert!(world.elapsed().saturating_sub(before) <= Duration::from_millis(50));
    for (place, task) in (0u64..).zip(slow) {
        let at = task.await.expect("the asker is served");
        let due = secs(place.saturating_mul(4));
        assert!(at >= due && at <= due.saturating_add(Duration::from_millis(100)), "{place}: {at:?}");
    }
}

/// Several wanted at once: the round goes through the candidates before it begins again.
pub async fn each_candidate_gets_one_before_any_gets_a_second(backend: &dyn Backend) {
    let of_property = Limit { each: Each::Property, ..limit("per property", bucket(2, secs(4), 2)) };
    let world = World::new(backend, vec![LaneLimits::new(lane("rates"), vec![of_property])]).await;
    let permits = granted(world.acquire(Ask { want: 5, ..of("rates", &["P1", "P2"]) }).await);
    let names: Vec<_> = permits.iter().filter_map(Permit::property).map(PropertyId::as_str).collect();
    assert_eq!(names, ["P1", "P2", "P1", "P2"]);
}

/// A lane that waits for its own limit leaves the shared one to others.
pub async fn an_asker_blocked_elsewhere_holds_up_only_its_own_limit(backend: &dyn Backend) {
    let shared = limit("shared", bucket(100, secs(1), 100));
    let lanes = vec![
        LaneLimits::new(lane("rates"), vec![shared.clone(), limit("own", bucket(1, secs(3_600), 1))]),
        LaneLimits::new(lane("availability"), vec![shared]),
    ];
    let world = World::new(backend, lanes).await;
    world.call(ask("rates")).await;
    let blocked = world.join_line(Ask { priority: Priority::MOST_URGENT, ..ask("rates") }).await;
    let before = world.elapsed();
    for _ in 0..20 {
        let bounded = Ask { max_wait: Some(Duration::from_millis(5)), ..ask("availability") };
        granted(world.acquire(bounded).await).into_iter().for_each(Permit::answered);
    }
    assert_eq!(world.elapsed(), before);
    blocked.abort();
}

/// Askers ahead who are kept slow by a limit of their own do not make others' turns look further off.
pub async fn a_turn_is_not_reckoned_behind_those_blocked_elsewhere(backend: &dyn Backend) {
    let shared = limit("shared", bucket(10, secs(1), 1));
    let lanes = vec![
        LaneLimits::new(lane("rates"), vec![shared.clone(), limit("own", bucket(1, secs(3_600), 1))]),
        LaneLimits::new(lane("availability"), vec![shared]),
    ];
    let world = World::new(backend, lanes).await;
    world.call(ask("rates")).await;
    let mut blocked = Vec::new();
    for _ in 0..20 {
        blocked.push(world.join_line(ask("rates")).await);
    }
    world.at(secs(1)).await;
    world.call(ask("availability")).await;
    let bounded = Ask { max_wait: Some(Duration::from_millis(150)), ..ask("availability") };
    is_at(world.call(bounded).await, Duration::from_millis(1_100));
    for task in blocked {
        task.abort();
    }
}

/// Two limits that are each kept busy by others and never free at the same moment: the one who needs
/// both is not starved, because what it could not get back in time is kept for it.
pub async fn an_asker_that_needs_two_busy_limits_is_not_starved(backend: &dyn Backend) {
    let x = limit("x", bucket(1, secs(2), 1));
    let y = limit("y", bucket(1, secs(2), 1));
    let lanes = vec![
        LaneLimits::new(lane("rates"), vec![x.clone()]),
        LaneLimits::new(lane("availability"), vec![y.clone()]),
        LaneLimits::new(lane("restrictions"), vec![x, y]),
    ];
    let world = World::new(backend, lanes).await;
    world.call(ask("rates")).await;
    world.at(secs(1)).await;
    world.call(ask("availability")).await;
    let mut line = Vec::new();
    for _ in 0..5 {
        line.push(world.join_line(ask("rates")).await);
        line.push(world.join_line(ask("availability")).await);
    }
    let both = world.call(Ask { priority: Priority::MOST_URGENT, ..ask("restrictions") }).await;
    assert!(both <= secs(3).saturating_add(TICK), "{both:?}");
    for task in line {
        let at = task.await.expect("the asker is served");
        assert!(at < secs(20), "{at:?}");
    }
}

/// Given back unused, it is as if it had never been taken.
pub async fn an_unused_permit_costs_nothing(backend: &dyn Backend) {
    for rule in [bucket(1, secs(60), 1), window(1, secs(60), 1), Rule::Concurrency { max: count(1) }] {
        let world = World::new(backend, only(rule)).await;
        for _ in 0..3 {
            granted(world.acquire(at_once("rates")).await).into_iter().for_each(Permit::unused);
            in_line().await;
        }
        let held = granted(world.acquire(at_once("rates")).await);
        let next = world.join_line(ask("rates")).await;
        let before = world.elapsed();
        held.into_iter().for_each(Permit::unused);
        is_at(next.await.expect("the asker is served"), before);
    }
}

/// Who leaves the line takes no turn with him, and a turn that came while he left goes on.
pub async fn a_dropped_asker_costs_nothing(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(1, secs(10), 1))).await;
    world.call(ask("rates")).await;
    let leaver = world.join_line(ask("rates")).await;
    let next = world.join_line(ask("rates")).await;
    leaver.abort();
    is_at(next.await.expect("the asker is served"), secs(10));

    // One who waited for much holds up nobody once he has gone.
    let world = World::new(backend, only(bucket(1, secs(1), 5))).await;
    world.call(Ask { cost: 5, ..ask("rates") }).await;
    let leaver = world.join_line(Ask { cost: 5, ..ask("rates") }).await;
    let next = world.join_line(ask("rates")).await;
    leaver.abort();
    is_at(next.await.expect("the asker is served"), secs(1));

    // Dropped in the very moment of its turn.
    let world = World::new(backend, only(bucket(1, secs(10), 1))).await;
    world.call(ask("rates")).await;
    let mut waiting = Box::pin(world.acquire(ask("rates")));
    assert!(futures::poll!(&mut waiting).is_pending());
    let next = world.join_line(ask("rates")).await;
    world.at(Duration::from_millis(10_010)).await;
    drop(waiting);
    let at = next.await.expect("the asker is served");
    assert!(at <= Duration::from_millis(10_020), "the turn went on at once, not at {at:?}");
}
