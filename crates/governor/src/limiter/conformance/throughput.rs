//! Never over, never idle, and no more timers than turns.

use super::{
    Ask, Backend, Duration, LaneLimits, Permit, World, ask, at_once, bucket, granted, is_at, lane, limit,
    only, refused, secs, window,
};

/// So many tasks ask as fast as they can for so long; when each call left.
async fn rush(world: &World, tasks: usize, length: Duration) -> Vec<Duration> {
    let askers: Vec<_> = (0..tasks)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut calls = Vec::new();
                loop {
                    let at = world.call(ask("rates")).await;
                    if at > length {
                        return calls;
                    }
                    calls.push(at);
                }
            })
        })
        .collect();
    let mut calls = Vec::new();
    for asker in askers {
        calls.extend(asker.await.expect("the asker ends"));
    }
    calls.sort();
    calls
}

fn most_in_any(calls: &[Duration], per: Duration) -> usize {
    let mut most = 0;
    let mut first = calls.iter();
    let mut inside = 0usize;
    for last in calls {
        inside = inside.saturating_add(1);
        while first.as_slice().first().is_some_and(|one| last.saturating_sub(*one) >= per) {
            first.next();
            inside = inside.saturating_sub(1);
        }
        most = most.max(inside);
    }
    most
}

/// A bucket lets its burst and its refill through, whoever asks.
pub async fn many_tasks_get_what_the_limits_allow_and_no_less(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(20, secs(1), 40))).await;
    let calls = rush(&world, 50, secs(60)).await;
    assert!(calls.len() <= 40 + 20 * 60, "{}", calls.len());
    assert!(calls.len() >= (40 + 20 * 60) * 99 / 100, "{}", calls.len());
}

/// Ten periods of a window: never more in any trailing one, and at least 99 % of it used.
pub async fn a_window_is_never_over_and_never_idle(backend: &dyn Backend) {
    for (max, burst) in [(90, 3), (90, 90), (60, 1)] {
        let world = World::new(backend, only(window(max, secs(60), burst))).await;
        let calls = rush(&world, 8, secs(600)).await;
        let max = usize::try_from(max).expect("small");
        assert!(most_in_any(&calls, secs(60)) <= max, "over {max}, burst {burst}");
        assert!(calls.len() >= max * 10 * 99 / 100, "{} of {} at burst {burst}", calls.len(), max * 10);
    }
}

/// Several permits that are due go to one asker together.
pub async fn what_is_due_together_is_granted_together(backend: &dyn Backend) {
    let limits = vec![limit("wide", bucket(100, secs(1), 100)), limit("narrow", window(8, secs(60), 8))];
    let world = World::new(backend, vec![LaneLimits::new(lane("rates"), limits)]).await;
    let first = granted(world.acquire(Ask { want: 5, ..at_once("rates") }).await);
    assert_eq!(first.len(), 5);
    let rest = granted(world.acquire(Ask { want: 5, ..at_once("rates") }).await);
    assert_eq!(rest.len(), 3, "what fits now, not more");
    refused(world.acquire(at_once("rates")).await);
    first.into_iter().chain(rest).for_each(Permit::answered);
    let again = granted(world.acquire(Ask { want: 100, ..ask("rates") }).await);
    assert_eq!(again.len(), 8);
    is_at(world.elapsed(), Duration::from_millis(60_007));
}

/// A waiter learns once when its turn is.
pub async fn timers_wake_about_once_per_turn(backend: &dyn Backend) {
    let world = World::new(backend, only(bucket(10, secs(1), 1))).await;
    let calls = rush(&world, 100, secs(60)).await;
    assert!(calls.len() >= 594, "{}", calls.len());
    if let Some(wakeups) = backend.wakeups() {
        // Every task had one turn more, after the time was up.
        let turns = u64::try_from(calls.len()).expect("small").saturating_add(100);
        assert!(wakeups <= turns, "{wakeups} for {turns} turns");
    }
}

/// Thousands a second, although the runtime's timers go by milliseconds.
pub async fn a_fast_pace_keeps_up(backend: &dyn Backend) {
    let world = World::new(backend, only(window(2_000, secs(1), 200))).await;
    let calls = rush(&world, 64, secs(10)).await;
    assert!(most_in_any(&calls, secs(1)) <= 2_000);
    assert!(calls.len() >= 19_800, "{}", calls.len());
}
