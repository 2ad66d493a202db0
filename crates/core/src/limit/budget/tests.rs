//! The promises of every rule, and the faults that other limiters had.

use std::num::NonZeroU64;
use std::time::Duration;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

fn n(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

fn secs(value: u64) -> Duration {
    Duration::from_secs(value)
}

fn start() -> Timestamp {
    Timestamp::from_jiff("2026-09-20T10:00:00Z".parse().unwrap())
}

fn bucket(rate: u64, per: Duration, burst: u64) -> Rule {
    Rule::TokenBucket { rate: n(rate), per, burst: n(burst) }
}

fn sliding(max: u64, per: Duration, burst: u64) -> Rule {
    Rule::SlidingWindow { max: n(max), per, burst: n(burst) }
}

fn fixed(max: u64, per: Duration, zone: &str) -> Rule {
    Rule::FixedWindow { max: n(max), per, time_zone: TimeZone::get(zone).unwrap() }
}

/// Takes and settles at once, as many as fit now.
fn drain(budget: &mut Budget, now: Timestamp) -> u64 {
    let mut granted = 0;
    while granted < 100_000 && budget.try_take(now, 1) {
        budget.settle(now, 1);
        granted += 1;
    }
    granted
}

/// Grants as early as `next_at` allows, answered at once, until `end`.
fn busy(budget: &mut Budget, end: Timestamp) -> Vec<Timestamp> {
    let mut now = start();
    let mut grants = Vec::new();
    while now < end {
        if budget.try_take(now, 1) {
            budget.settle(now, 1);
            grants.push(now);
        } else {
            let next = budget.next_at(now, 1);
            assert!(next > now, "a refusal with nothing in flight names a later time");
            now = next;
        }
    }
    grants
}

#[test]
fn after_a_drain_and_a_rest_exactly_the_burst_is_granted() {
    let mut budget = Budget::new(&bucket(5, secs(1), 5));
    assert_eq!(drain(&mut budget, start()), 5);
    assert_eq!(drain(&mut budget, start() + secs(2)), 5);
}

#[test]
fn what_is_left_as_reported_is_what_the_next_calls_get() {
    let mut budget = Budget::new(&bucket(1, secs(1), 2));
    assert!(budget.try_take(start(), 1));
    assert_eq!(budget.left(start()), 1);
    budget.settle(start(), 1);
    assert_eq!(budget.left(start()), 1);
    assert_eq!(budget.used(start()), 1);
    let later = start() + secs(2);
    assert_eq!(budget.left(later), 2);
    assert_eq!(drain(&mut budget, later), 2);
}

#[test]
fn a_clock_that_steps_back_refuses_nothing_inside_the_burst_and_refills_nothing() {
    let mut budget = Budget::new(&bucket(1, secs(1), 5));
    let base = start();
    for now in [base, base + Duration::from_millis(1), base - Duration::from_millis(3), base] {
        assert!(budget.try_take(now, 1));
        budget.settle(now, 1);
    }
    assert!(budget.steps_back() > 0);
    assert_eq!(drain(&mut budget, base - secs(3600)), 1);
    assert_eq!(drain(&mut budget, base), 0);
}

#[test]
fn refused_attempts_never_move_the_refill() {
    let mut budget = Budget::new(&bucket(1, secs(1), 1));
    let granted =
        (0..20).map(|half| drain(&mut budget, start() + Duration::from_millis(500) * half)).sum::<u64>();
    assert_eq!(granted, 10);
}

#[test]
fn a_bucket_is_full_again_after_its_whole_refill_time() {
    let mut budget = Budget::new(&bucket(1, Duration::from_millis(1_500), 10));
    assert_eq!(drain(&mut budget, start()), 10);
    assert_eq!(budget.left(start() + Duration::from_micros(14_999_999)), 9);
    assert!(!budget.is_idle(start() + Duration::from_micros(14_999_999)));
    assert!(budget.is_idle(start() + secs(15)));
    assert_eq!(drain(&mut budget, start() + secs(15)), 10);
}

#[test]
fn a_refused_take_of_several_leaves_the_balance_alone() {
    let mut budget = Budget::new(&bucket(100, secs(300), 100));
    assert!(budget.try_take(start(), 98));
    budget.settle(start(), 98);
    assert!(!budget.try_take(start(), 5));
    assert_eq!(budget.left(start()), 2);
    assert!(budget.try_take(start(), 1));
}

#[test]
fn a_cost_above_the_capacity_never_fits() {
    let mut budget = Budget::new(&bucket(10, secs(1), 10));
    assert_eq!(budget.capacity(), 10);
    assert!(!budget.fits(start() + secs(1_000_000), 12));
    assert_eq!(Budget::new(&sliding(90, secs(60), 3)).capacity(), 3);
    assert_eq!(Budget::new(&sliding(90, secs(60), 90)).capacity(), 90);
}

#[test]
fn no_trailing_minute_holds_more_than_the_limit_after_a_quiet_spell() {
    for burst in [1, 3, 10] {
        let mut budget = Budget::new(&sliding(10, secs(60), burst));
        let grants = busy(&mut budget, start() + secs(300));
        assert_eq!(grants.iter().take_while(|at| **at == start()).count(), usize::try_from(burst).unwrap());
        never_more_in_any_window(&grants, 10, secs(60));
    }
}

#[test]
fn no_burst_straddles_a_boundary() {
    let mut budget = Budget::new(&sliding(10, secs(60), 10));
    let edge = start() + Duration::from_millis(59_500);
    assert_eq!(drain(&mut budget, edge), 10);
    assert_eq!(drain(&mut budget, edge + secs(1)), 0);
    let mut clock = Budget::new(&fixed(10, secs(60), "UTC"));
    assert_eq!(drain(&mut clock, edge), 10);
    assert_eq!(drain(&mut clock, edge + secs(1)), 0, "so near the edge a call counts on both sides");
    let after = clock.next_at(edge, 1);
    assert_eq!(drain(&mut clock, after), 10);
}

#[test]
fn two_limits_at_once_both_hold_and_the_later_one_names_the_wait() {
    let mut limits = [
        Budget::new(&sliding(15, secs(1), 15)),
        Budget::new(&sliding(120, secs(60), 120)),
        Budget::new(&sliding(5_000, secs(3_600), 5_000)),
    ];
    let mut now = start();
    let mut grants = Vec::new();
    while grants.len() < 130 {
        if limits.iter_mut().all(|limit| limit.fits(now, 1)) {
            for limit in &mut limits {
                limit.take(now, 1);
                limit.settle(now, 1);
            }
            grants.push(now);
        } else {
            now = limits.iter_mut().map(|limit| limit.next_at(now, 1)).max().unwrap();
        }
    }
    never_more_in_any_window(&grants, 15, secs(1));
    never_more_in_any_window(&grants, 120, secs(60));
    assert!(start().until(*grants.last().unwrap()) <= secs(70));
}

#[test]
fn a_daily_quota_resets_at_local_midnight_on_a_day_of_25_hours() {
    let mut budget = Budget::new(&fixed(3, secs(86_400), "Europe/Berlin"));
    let morning = Timestamp::from_jiff("2026-10-25T06:00:00Z".parse().unwrap());
    assert_eq!(drain(&mut budget, morning), 3);
    let midnight = Timestamp::from_jiff("2026-10-25T23:00:00Z".parse().unwrap());
    assert_eq!(budget.next_at(morning, 1), midnight + secs(2));
    assert_eq!(drain(&mut budget, midnight), 0);
    assert_eq!(drain(&mut budget, midnight + secs(2)), 3);
}

#[test]
fn a_slow_call_counts_in_every_window_it_may_have_reached() {
    let mut budget = Budget::new(&fixed(2, secs(60), "UTC"));
    assert!(budget.try_take(start() + secs(30), 1));
    let next_window = start() + secs(70);
    assert_eq!(budget.left(next_window), 1);
    budget.settle(next_window, 1);
    assert_eq!(budget.left(next_window), 1);
    assert_eq!(budget.left(start() + secs(122)), 2);
}

#[test]
fn rates_under_one_a_minute_are_exact() {
    let mut budget = Budget::new(&bucket(7, secs(86_400), 1));
    let grants = busy(&mut budget, start() + secs(86_400 * 10));
    assert_eq!(grants.len(), 70);
    assert_eq!(start().until(grants[1]), Duration::from_micros(12_342_857_143), "the next whole µs");
    assert!(start().until(grants[63]) <= secs(9 * 86_400) + Duration::from_micros(63));
    let mut bursty = Budget::new(&bucket(7, secs(86_400), 2));
    let grants = busy(&mut bursty, start() + secs(86_400 * 10));
    assert_eq!(start().until(grants[64]), secs(9 * 86_400), "nothing is lost to rounding in nine days");
}

#[test]
fn an_unused_permit_is_as_if_never_taken() {
    for rule in [
        bucket(1, secs(10), 3),
        sliding(10, secs(60), 3),
        sliding(10, secs(60), 10),
        fixed(4, secs(60), "UTC"),
        Rule::Concurrency { max: n(3) },
    ] {
        let mut budget = Budget::new(&rule);
        let before = budget.left(start());
        assert!(budget.try_take(start(), 2));
        assert_eq!(budget.left(start()), before - 2);
        budget.give_back(start(), 2);
        assert_eq!(budget.left(start()), before, "{rule:?}");
        assert!(budget.is_idle(start()));
    }
}

#[test]
fn a_window_of_many_calls_keeps_few_times_and_errs_to_the_late_side() {
    let mut window = Sliding::new(n(1_000_000), secs(60), n(1_000_000));
    for step in 0..1_000_000u64 {
        let now = start() + Duration::from_micros(step * 60);
        window.advance(now);
        assert!(window.fits(now, 1));
        window.take(now, 1);
        window.settle(now, 1);
    }
    assert!(window.kept() <= 4_100, "{}", window.kept());
    window.advance(start() + secs(60) + Duration::from_millis(7));
    assert!(window.left(start() + secs(60) + Duration::from_millis(7)) <= 1, "only the first may have left");
}

#[test]
fn the_line_ahead_is_counted_beyond_one_window() {
    let mut greedy = Budget::new(&sliding(10, secs(60), 10));
    assert_eq!(drain(&mut greedy, start()), 10);
    let first = greedy.next_at(start(), 1);
    assert_eq!(greedy.next_at(start(), 10), first);
    assert!(first.until(greedy.next_at(start(), 11)) > secs(60));
    let mut paced = Budget::new(&bucket(1, secs(1), 2));
    assert_eq!(drain(&mut paced, start()), 2);
    assert_eq!(paced.next_at(start(), 5), start() + secs(5));
    let mut clock = Budget::new(&fixed(10, secs(60), "UTC"));
    assert_eq!(clock.next_at(start() + secs(5), 25), start() + secs(122));
}

fn never_more_in_any_window(arrivals: &[Timestamp], max: usize, per: Duration) {
    for (index, last) in arrivals.iter().enumerate() {
        let count = arrivals[..=index].iter().filter(|at| at.until(*last) < per).count();
        assert!(count <= max, "{count} > {max} in the {per:?} before {last}");
    }
}

/// One step of a storm: time passes, a call is asked for, one in flight is answered or given back.
#[derive(Debug, Clone)]
struct Step {
    pass_us: u64,
    cost: u64,
    answer: Option<(usize, u8)>,
    unused: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..400_000u64, 1..3u64, prop::option::of((0..8usize, 0..=100u8)), prop::bool::weighted(0.1))
        .prop_map(|(pass_us, cost, answer, unused)| Step { pass_us, cost, answer, unused });
    prop::collection::vec(step, 1..250)
}

/// Drives a budget through the storm; returns when each call reached the channel, in order: at
/// any instant between grant and answer, as the storm has it.
fn arrivals(rule: &Rule, steps: &[Step]) -> Vec<Timestamp> {
    let mut budget = Budget::new(rule);
    let mut now = start();
    let mut flying: Vec<(Timestamp, u64)> = Vec::new();
    let mut arrived = Vec::new();
    let mut land = |granted: Timestamp, cost: u64, now: Timestamp, part: u8| {
        let at = granted + granted.until(now) * u32::from(part) / 100;
        arrived.extend(std::iter::repeat_n(at, usize::try_from(cost).unwrap()));
    };
    for step in steps {
        now = now + Duration::from_micros(step.pass_us);
        if let Some((which, part)) = step.answer
            && !flying.is_empty()
        {
            let (granted, cost) = flying.remove(which % flying.len());
            if step.unused {
                budget.give_back(granted, cost);
            } else {
                budget.settle(now, cost);
                land(granted, cost, now, part);
            }
        }
        let left = budget.left(now);
        let fits = budget.try_take(now, step.cost);
        assert_eq!(fits, left >= step.cost, "what is left is what fits");
        if fits {
            flying.push((now, step.cost));
        } else if flying.is_empty() && step.cost <= budget.capacity() {
            let next = budget.next_at(now, step.cost);
            assert!(!budget.clone().fits(next - Duration::from_micros(1), step.cost), "not a moment earlier");
            assert!(budget.clone().fits(next, step.cost), "refused until exactly then");
        }
    }
    for (granted, cost) in flying {
        land(granted, cost, now, 100);
    }
    arrived.sort();
    arrived
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_trailing_window_ever_admits_more(max in 1..12u64, burst in 1..12u64, per_ms in 50..3_000u64, storm in steps()) {
        let per = Duration::from_millis(per_ms);
        let arrived = arrivals(&sliding(max, per, burst.min(max)), &storm);
        never_more_in_any_window(&arrived, usize::try_from(max).unwrap(), per);
    }

    #[test]
    fn a_bucket_never_admits_more_than_its_burst_and_refill(rate in 1..12u64, burst in 1..12u64, per_ms in 50..3_000u64, storm in steps()) {
        let arrived = arrivals(&bucket(rate, Duration::from_millis(per_ms), burst), &storm);
        for (first, from) in arrived.iter().enumerate() {
            for (last, to) in arrived.iter().enumerate().skip(first) {
                let calls = u128::try_from(last - first + 1).unwrap();
                let refill = from.until(*to).as_micros() * u128::from(rate);
                prop_assert!((calls - u128::from(burst).min(calls)) * u128::from(per_ms) * 1_000 <= refill);
            }
        }
    }

    #[test]
    fn no_window_of_the_clock_ever_admits_more(max in 1..12u64, per_s in 5..30u64, storm in steps()) {
        let arrived = arrivals(&fixed(max, secs(per_s), "Europe/Berlin"), &storm);
        // The receiver's clock may be 2 s off either way.
        for skew in [-2_000_000i64, 0, 2_000_000] {
            let mut windows = std::collections::BTreeMap::new();
            for at in &arrived {
                let local = at.as_micros() + 7_200_000_000 + skew;
                *windows.entry(local.div_euclid(i64::try_from(per_s).unwrap() * 1_000_000)).or_insert(0u64) += 1;
            }
            prop_assert!(windows.values().all(|count| *count <= max), "{windows:?}");
        }
    }

    #[test]
    fn calls_in_flight_never_exceed_their_limit(max in 1..6u64, storm in steps()) {
        let mut budget = Budget::new(&Rule::Concurrency { max: n(max) });
        let mut flying = Vec::new();
        for step in &storm {
            if step.answer.is_some() && let Some(cost) = flying.pop() {
                budget.settle(start(), cost);
            }
            if budget.try_take(start(), step.cost) {
                flying.push(step.cost);
            }
            prop_assert!(flying.iter().sum::<u64>() <= max);
            prop_assert_eq!(budget.used(start()), flying.iter().sum::<u64>());
        }
    }

    #[test]
    fn it_is_never_idle_while_calls_wait(max in 1..200u64, burst in 1..200u64, per_s in 1..100u64) {
        let per = secs(per_s);
        let grants = busy(&mut Budget::new(&sliding(max, per, burst.min(max))), start() + per * 10);
        prop_assert!(u64::try_from(grants.len()).unwrap() * 100 >= max * 10 * 99, "{} of {}", grants.len(), max * 10);
        let grants = busy(&mut Budget::new(&bucket(max, per, burst)), start() + per * 10);
        prop_assert!(u64::try_from(grants.len()).unwrap() >= max * 10);
    }
}
