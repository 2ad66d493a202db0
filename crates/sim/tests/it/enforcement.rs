//! Limits against brute force: no grace, and nothing refused that fits.

use std::time::Duration;

use jiff::tz::TimeZone;
use ota_sim::{At, Config, Limit, Ota, Patch};
use proptest::prelude::*;

use super::calls::{availability, make, prompt, rate, secs, status};

fn with(limit: Limit) -> Ota {
    Ota::new(Config::default().channel("booking_com", prompt().limit(limit)))
}

/// Arrival times: bursts, near misses of a window, long rests.
fn times() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![4 => Just(0_u64), 4 => 0..3_000_u64, 2 => 9_999..10_002_u64, 1 => 0..40_000_u64];
    prop::collection::vec(gap, 1..120).prop_map(|gaps| {
        let sum = |at: &mut u64, gap| {
            *at += gap;
            Some(*at)
        };
        gaps.into_iter().scan(0, sum).collect()
    })
}

const PER: u64 = 10_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_sliding_window_admits_exactly_what_brute_force_admits(times in times(), max in 1..8_u64, penal: bool) {
        let mut limit = Limit::sliding_window(max, Duration::from_micros(PER));
        limit.count_refused = penal;
        let ota = with(limit);
        let mut counted: Vec<u64> = Vec::new();
        let (mut admitted, mut all): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for (number, at) in times.iter().enumerate() {
            let inside = counted.iter().filter(|t| **t + PER > *at).count();
            let fits = inside < usize::try_from(max).unwrap();
            let got = status(&ota, At::from_micros(*at), &rate(u64::try_from(number).unwrap()));
            prop_assert_eq!(got, if fits { 200 } else { 429 }, "call {} at {}", number, at);
            if fits || penal { counted.push(*at); }
            if fits { admitted.push(*at); }
            all.push(*at);
        }
        let books = ota.books(At::ZERO);
        let limit = &books.channels["booking_com"].limits[0];
        let worst = |times: &[u64]| {
            let within = |end: &u64| times.iter().filter(|t| *t <= end && **t + PER > *end).count();
            u64::try_from(times.iter().map(within).max().unwrap_or(0)).unwrap()
        };
        prop_assert_eq!(limit.worst_window.admitted.calls, worst(&admitted));
        prop_assert_eq!(limit.worst_window.arrivals.calls, worst(&all));
        prop_assert!(limit.worst_window.admitted.calls <= max);
        prop_assert_eq!(limit.over, worst(&all) > max);
    }

    #[test]
    fn a_bucket_admits_exactly_what_exact_fractions_admit(times in times(), rate_ in 1..9_u64, burst in 1..6_u64) {
        let ota = with(Limit::token_bucket(rate_, Duration::from_micros(PER), burst));
        // Tokens times PER, by the time since the last look; nothing is lost to rounding.
        let (mut level, mut last) = (burst * PER, 0);
        for (number, at) in times.iter().enumerate() {
            level = (level + (at - last) * rate_).min(burst * PER);
            last = *at;
            let fits = level >= PER;
            if fits { level -= PER; }
            let got = status(&ota, At::from_micros(*at), &rate(u64::try_from(number).unwrap()));
            prop_assert_eq!(got, if fits { 200 } else { 429 }, "call {} at {}", number, at);
        }
    }

    #[test]
    fn a_fixed_window_admits_exactly_max_per_window_of_the_clock(times in times(), max in 1..8_u64) {
        let epoch: jiff::Timestamp = "2026-09-20T10:00:00.003Z".parse().unwrap();
        let limit = Limit::fixed_window(max, Duration::from_micros(PER), TimeZone::UTC);
        let ota = Ota::new(Config::default().epoch(epoch).channel("booking_com", prompt().limit(limit)));
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        for (number, at) in times.iter().enumerate() {
            let count = counts.entry((at + 3_000) / PER).or_default();
            *count += 1;
            let got = status(&ota, At::from_micros(*at), &rate(u64::try_from(number).unwrap()));
            prop_assert_eq!(got, if *count <= max { 200 } else { 429 }, "call {} at {}", number, at);
        }
        let books = ota.books(At::ZERO);
        let worst = books.channels["booking_com"].limits[0].worst_clock_window.as_ref().unwrap();
        prop_assert_eq!(worst.arrivals.calls, counts.values().copied().max().unwrap());
    }

    #[test]
    fn a_concurrency_limit_admits_exactly_what_is_not_in_flight(
        steps in prop::collection::vec((0..3_u8, 0..2_u8, 0..8_usize), 1..80),
        max in 1..4_usize,
    ) {
        let ota = with(Limit::concurrency(u64::try_from(max).unwrap()).each_property());
        // Of each property: what is in flight, and whether it was admitted.
        let mut flights: [Vec<(ota_sim::Ticket, bool)>; 2] = [Vec::new(), Vec::new()];
        let mut most = 0;
        for (number, (step, property, which)) in steps.iter().enumerate() {
            let flights = &mut flights[usize::from(*property)];
            let at = At::from_micros(u64::try_from(number).unwrap());
            if *step == 0 && !flights.is_empty() {
                let (ticket, _) = flights.remove(which % flights.len());
                ota.finish(at, ticket);
                continue;
            }
            let fits = flights.iter().filter(|(_, admitted)| *admitted).count() < max;
            let push = rate(u64::try_from(number).unwrap()).property(&format!("prop_0000000{property}"));
            let reaction = ota.receive(at, &push.call());
            prop_assert_eq!(reaction.then.status(), Some(if fits { 200 } else { 429 }), "step {}", number);
            flights.push((reaction.ticket, fits));
            most = most.max(flights.len());
        }
        let limit = &ota.books(At::ZERO).channels["booking_com"].limits[0];
        prop_assert_eq!(limit.worst_window.arrivals.calls, u64::try_from(most).unwrap());
        prop_assert!(limit.worst_window.admitted.calls <= u64::try_from(max).unwrap());
    }

    #[test]
    fn two_limits_admit_exactly_what_both_admit_and_a_refused_call_takes_from_neither(
        times in times(), short in 1..4_u64, long in 2..9_u64,
    ) {
        let channel = prompt()
            .limit(Limit::sliding_window(long, Duration::from_micros(4 * PER)))
            .endpoint_limit("rates", Limit::sliding_window(short, Duration::from_micros(PER)));
        let ota = Ota::new(Config::default().channel("booking_com", channel));
        let mut admitted: Vec<u64> = Vec::new();
        for (number, at) in times.iter().enumerate() {
            let inside = |per: u64| admitted.iter().filter(|t| **t + per > *at).count();
            let fits = inside(PER) < usize::try_from(short).unwrap() && inside(4 * PER) < usize::try_from(long).unwrap();
            let got = status(&ota, At::from_micros(*at), &rate(u64::try_from(number).unwrap()));
            prop_assert_eq!(got, if fits { 200 } else { 429 }, "call {} at {}", number, at);
            if fits { admitted.push(*at); }
        }
    }

    #[test]
    fn the_wait_a_429_tells_is_the_first_instant_that_is_admitted(times in times(), max in 1..5_u64) {
        let ota = with(Limit::sliding_window(max, secs(10)));
        for (number, at) in times.iter().enumerate() {
            let at = At::from_micros(at * 1_000);
            let reaction = make(&ota, at, &rate(u64::try_from(number).unwrap()));
            let wait = reaction.then.answer().unwrap().header("retry-after").map(|text| text.parse::<u64>().unwrap());
            if let Some(wait) = wait {
                prop_assert!((1..=10).contains(&wait));
                // Another OTA with the same past, asked at that instant: yes; one second earlier or more: no.
                let fork = |later: At| {
                    let ota = with(Limit::sliding_window(max, secs(10)));
                    for (number, at) in times.iter().take(number).enumerate() {
                        make(&ota, At::from_micros(at * 1_000), &rate(u64::try_from(number).unwrap()));
                    }
                    status(&ota, later, &rate(u64::MAX))
                };
                prop_assert_eq!(fork(at + secs(wait)), 200);
                if wait > 1 { prop_assert_eq!(fork(at + secs(wait - 1)), 429); }
                break;
            }
        }
    }
}

#[test]
fn the_window_is_open_at_its_old_end_and_closed_at_its_new_one() {
    let ota = with(Limit::sliding_window(1, secs(60)));
    assert_eq!(status(&ota, At::ZERO, &rate(1)), 200);
    assert_eq!(status(&ota, At::from_micros(59_999_999), &rate(2)), 429);
    assert_eq!(status(&ota, At::from_micros(60_000_000), &rate(3)), 200);
}

#[test]
fn a_double_burst_over_a_minute_edge_is_refused_by_a_sliding_window_only() {
    let run = |limit| {
        let ota = with(limit);
        let burst = |at: u64, from: u64| -> usize {
            (from..from + 10).filter(|n| status(&ota, At::from_millis(at), &rate(*n)) == 200).count()
        };
        (burst(59_500, 0), burst(60_500, 10))
    };
    assert_eq!(run(Limit::sliding_window(10, secs(60))), (10, 0));
    assert_eq!(run(Limit::fixed_window(10, secs(60), TimeZone::UTC)), (10, 10));
}

#[test]
fn a_day_of_25_hours_has_one_budget() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let epoch: jiff::Timestamp = "2026-10-24T22:00:00Z".parse().unwrap();
    let limit = Limit::fixed_window(1, secs(86_400), zone);
    let ota = Ota::new(Config::default().epoch(epoch).channel("booking_com", prompt().limit(limit)));
    assert_eq!(status(&ota, At::ZERO, &rate(1)), 200, "local midnight, still summer time");
    assert_eq!(status(&ota, At::from_secs(25 * 3_600 - 1), &rate(2)), 429, "23:59:59 of the same day");
    assert_eq!(status(&ota, At::from_secs(25 * 3_600), &rate(3)), 200, "the next midnight");
}

#[test]
fn a_drained_bucket_refills_to_its_burst_and_not_one_more() {
    let ota = with(Limit::token_bucket(5, secs(1), 5));
    let grants = |at: At, from: u64| (from..from + 10).filter(|n| status(&ota, at, &rate(*n)) == 200).count();
    assert_eq!(grants(At::ZERO, 0), 5);
    assert_eq!(grants(At::from_secs(2), 10), 5);
}

#[test]
fn a_refused_call_does_not_cost_the_bucket_its_fractions() {
    let ota = with(Limit::token_bucket(1, secs(1), 1));
    let granted = (0..20_u64).filter(|n| status(&ota, At::from_millis(n * 500), &rate(*n)) == 200).count();
    assert_eq!(granted, 10);
}

#[test]
fn a_bucket_that_counts_refused_calls_goes_into_debt_by_one_burst_at_most() {
    let ota = with(Limit::token_bucket(1, secs(1), 2).count_refused());
    for n in 0..50 {
        status(&ota, At::ZERO, &rate(n));
    }
    assert_eq!(
        status(&ota, At::from_millis(2_999), &rate(60)),
        429,
        "two of debt and one to spend take three seconds"
    );
    assert_eq!(status(&ota, At::from_millis(3_999), &rate(61)), 429, "the call before cost one more");
    assert_eq!(status(&ota, At::from_millis(4_999), &rate(62)), 429);
    assert_eq!(status(&ota, At::from_millis(6_000), &rate(63)), 200, "exactly one again");
}

#[test]
fn several_limits_admit_together_or_not_at_all() {
    let channel = prompt()
        .limit(Limit::sliding_window(3, secs(60)).named("minute"))
        .endpoint_limit("rates", Limit::sliding_window(2, secs(1)).named("second"));
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    let at = At::ZERO;
    assert_eq!(
        (status(&ota, at, &rate(1)), status(&ota, at, &rate(2)), status(&ota, at, &rate(3))),
        (200, 200, 429)
    );
    assert_eq!(status(&ota, at, &availability(4, 1)), 200, "the refused call took nothing of the minute");
    let refused = make(&ota, At::from_secs(2), &availability(5, 1));
    let body = String::from_utf8(refused.then.answer().unwrap().body.to_vec()).unwrap();
    assert!(body.contains("minute"), "{body}");
}

#[test]
fn a_hidden_limit_is_kept_but_not_named() {
    let ota = with(Limit::sliding_window(1, secs(60)).named("secret-quota").hidden());
    make(&ota, At::ZERO, &rate(1));
    let refused = make(&ota, At::ZERO, &rate(2));
    assert_eq!(refused.then.status(), Some(429));
    assert!(
        !String::from_utf8(refused.then.answer().unwrap().body.to_vec()).unwrap().contains("secret-quota")
    );
}

#[test]
fn properties_have_budgets_of_their_own() {
    let ota = with(Limit::sliding_window(1, secs(60)).each_property());
    assert_eq!(status(&ota, At::ZERO, &rate(1)), 200);
    assert_eq!(status(&ota, At::ZERO, &rate(2).property("prop_00000002")), 200);
    assert_eq!(status(&ota, At::ZERO, &rate(3)), 429);
    let books = ota.books(At::ZERO);
    let limit = &books.channels["booking_com"].limits[0];
    assert_eq!((limit.worst_window.arrivals.calls, limit.over), (2, true));
    assert_eq!(limit.worst_window.property.as_deref(), Some("prop_00000001"));
}

#[test]
fn calls_in_flight_count_from_their_arrival_until_their_answer_leaves() {
    let ota = with(Limit::concurrency(2));
    let first = ota.receive(At::ZERO, &rate(1).call());
    let second = ota.receive(At::ZERO, &rate(2).call());
    assert_eq!((first.then.status(), second.then.status()), (Some(200), Some(200)));
    assert_eq!(status(&ota, At::ZERO, &rate(3)), 429);
    ota.finish(At::from_millis(5), first.ticket);
    ota.finish(At::from_millis(5), first.ticket);
    assert_eq!(ota.receive(At::from_millis(5), &rate(4).call()).then.status(), Some(200));
    assert_eq!(status(&ota, At::from_millis(5), &rate(5)), 429, "a ticket given back twice frees one place");
    let books = ota.books(At::from_millis(5));
    assert_eq!(books.total.in_flight_peak, 3);
    let limit = &books.channels["booking_com"].limits[0];
    assert_eq!((limit.worst_window.admitted.calls, limit.worst_window.arrivals.calls), (2, 3));
}

#[test]
fn a_tightened_limit_counts_what_came_before() {
    let ota = with(Limit::sliding_window(4, secs(60)));
    for n in 0..3 {
        assert_eq!(status(&ota, At::ZERO, &rate(n)), 200);
    }
    ota.patch(At::from_secs(1), "booking_com", &Patch::limits(vec![Limit::sliding_window(2, secs(60))]))
        .unwrap();
    assert_eq!(status(&ota, At::from_secs(2), &rate(5)), 429);
    assert_eq!(status(&ota, At::from_secs(60), &rate(6)), 200);
    let books = ota.books(At::from_secs(60));
    let limits = &books.channels["booking_com"].limits;
    let of =
        |n: usize| (limits[n].max, limits[n].until, limits[n].worst_window.arrivals.calls, limits[n].over);
    assert_eq!(of(0), (4, Some(At::from_secs(1)), 3, false));
    assert_eq!(of(1), (2, None, 2, false), "what was allowed before is no fault after");
}

#[test]
fn a_new_concurrency_limit_counts_the_calls_already_in_flight() {
    let ota = Ota::new(Config::default().channel("booking_com", prompt()));
    let early = ota.receive(At::ZERO, &rate(1).call());
    ota.patch(At::ZERO, "booking_com", &Patch::limits(vec![Limit::concurrency(1)])).unwrap();
    assert_eq!(status(&ota, At::ZERO, &rate(2)), 429);
    ota.finish(At::from_secs(1), early.ticket);
    assert_eq!(status(&ota, At::from_secs(1), &rate(3)), 200);
}

#[test]
fn time_that_goes_back_counts_as_standing_still() {
    let ota = with(Limit::sliding_window(1, secs(60)));
    assert_eq!(status(&ota, At::from_secs(100), &rate(1)), 200);
    assert_eq!(status(&ota, At::from_secs(10), &rate(2)), 429);
    assert_eq!(ota.arrivals()[1].at, At::from_secs(100));
}
