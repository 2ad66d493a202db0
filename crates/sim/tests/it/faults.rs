//! Misbehaviour on order, and its traces in the books.

use std::time::Duration;

use ota_sim::{Act, At, Config, Fault, Limit, Ota, Outage, OutageKind, OverLimit, Share, Tail, Tally, Then};

use super::calls::{availability, make, prompt, rate, secs, status};

fn with(fault: Fault) -> Ota {
    Ota::new(Config::default().channel("booking_com", prompt().fault(fault)))
}

/// The first call's fate, the books after it, and the status of the same call made again.
fn once(act: Act) -> (Then, Tally, u16) {
    let ota = with(Fault::new(act).times(1));
    let then = make(&ota, At::ZERO, &rate(1)).then;
    let tally = ota.books(At::ZERO).total;
    let again = status(&ota, At::ZERO, &rate(1));
    assert_eq!(ota.cells()[0].applied.len(), 1, "applied once in the end");
    (then, tally, again)
}

#[test]
fn what_fails_is_not_applied_and_is_really_made_again() {
    for act in [Act::Cut, Act::Hang, Act::Garbage, Act::Redirect { location: "/x".to_owned() }] {
        let (then, tally, again) = once(act.clone());
        assert_eq!((tally.committed, tally.lost_answers, again), (0, 0, 200), "{act:?}");
        assert_ne!(then.status(), Some(200));
    }
    for code in [500, 503, 408, 400, 403, 404, 422] {
        let (then, tally, again) = once(Act::Status { status: code, retry_after: None, body: None });
        assert_eq!((then.status(), tally.committed, tally.statuses[&code], again), (Some(code), 0, 1, 200));
    }
}

#[test]
fn what_is_applied_and_not_told_is_a_lost_answer_and_a_replay_the_second_time() {
    for act in
        [Act::CommitThenCut, Act::CommitThenHang, Act::CommitThenStatus { status: 500 }, Act::CutInAnswer]
    {
        let (_, tally, again) = once(act.clone());
        assert_eq!((tally.committed, tally.lost_answers, again), (1, 1, 200), "{act:?}");
    }
    let (then, ..) = once(Act::CommitThenCut);
    assert!(matches!(then, Then::Cut));
}

#[test]
fn a_refused_connection_is_no_arrival_and_counts_in_no_limit() {
    let channel = prompt().limit(Limit::sliding_window(1, secs(60))).fault(Fault::new(Act::Refuse).times(3));
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    for n in 0..3 {
        assert!(matches!(make(&ota, At::ZERO, &rate(n)).then, Then::Refuse));
    }
    assert_eq!(status(&ota, At::ZERO, &rate(4)), 200);
    let total = ota.books(At::ZERO).total;
    assert_eq!((total.connections_refused, total.received), (3, 1));
}

#[test]
fn faults_strike_by_property_endpoint_number_and_time() {
    let ota = with(Fault::status(403).property("prop_0000bad0"));
    assert_eq!(
        (status(&ota, At::ZERO, &rate(1)), status(&ota, At::ZERO, &rate(2).property("prop_0000bad0"))),
        (200, 403)
    );

    let ota = with(Fault::status(500).endpoint("availability"));
    assert_eq!((status(&ota, At::ZERO, &rate(1)), status(&ota, At::ZERO, &availability(2, 1))), (200, 500));

    let ota = with(Fault::status(500).nth(2).nth(4));
    let seen: Vec<_> = (1..=5).map(|n| status(&ota, At::ZERO, &rate(n))).collect();
    assert_eq!(seen, [200, 500, 200, 500, 200]);

    let ota = with(Fault { every: Some(3), ..Fault::status(500) });
    assert_eq!((1..=7).filter(|n| status(&ota, At::ZERO, &rate(*n)) == 500).count(), 2);

    let ota = with(Fault::status(500).during(secs(10), secs(5)));
    let seen: Vec<_> = [9, 10, 14, 15].map(|at| status(&ota, At::from_secs(at), &rate(at))).into();
    assert_eq!(seen, [200, 500, 500, 200]);
}

#[test]
fn a_share_strikes_about_as_many_as_it_says() {
    let ota = with(Fault::status(500).share(Share::percent(10)));
    let struck = (0..2_000).filter(|n| status(&ota, At::ZERO, &rate(*n)) == 500).count();
    assert!((140..=260).contains(&struck), "{struck}");
}

#[test]
fn a_fault_is_not_spent_on_a_call_over_the_limit() {
    let channel = prompt().limit(Limit::sliding_window(1, secs(1))).fault(Fault::status(500).nth(2));
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    let seen: Vec<_> =
        [(0, 1), (0, 2), (1, 3)].map(|(at, n)| status(&ota, At::from_secs(at), &rate(n))).into();
    assert_eq!(seen, [200, 429, 500]);
}

#[test]
fn an_outage_begins_and_ends_on_time() {
    let away = |kind| Outage { at: secs(10), lasts: secs(5), kind };
    let ota =
        Ota::new(Config::default().channel("booking_com", prompt().outage(away(OutageKind::Unavailable))));
    let seen: Vec<_> = [9, 10, 14, 15].map(|at| status(&ota, At::from_secs(at), &rate(at))).into();
    assert_eq!(seen, [200, 503, 503, 200]);
    for (kind, cut) in [(OutageKind::Cut, true), (OutageKind::Hang, false)] {
        let ota = Ota::new(Config::default().channel("booking_com", prompt().outage(away(kind))));
        let then = make(&ota, At::from_secs(12), &rate(1)).then;
        assert_eq!(matches!(then, Then::Cut), cut);
        assert_eq!(matches!(then, Then::Hang), !cut);
    }
}

#[test]
fn an_outage_at_run_time_strikes_its_channel_only() {
    let ota = Ota::new(Config::default().any(prompt()));
    ota.outage(At::from_secs(1), Some("booking_com"), OutageKind::Unavailable, secs(5));
    let other = |n| {
        let mut push = rate(n);
        push.ota = "agoda";
        push
    };
    let at = At::from_secs(2);
    assert_eq!((status(&ota, at, &rate(1)), status(&ota, at, &other(2))), (503, 200));
    ota.outage(at, None, OutageKind::Unavailable, secs(1));
    assert_eq!(status(&ota, at, &other(3)), 503);
    assert_eq!(
        (status(&ota, At::from_secs(6), &rate(4)), status(&ota, At::from_secs(6), &other(5))),
        (200, 200)
    );
}

#[test]
fn over_the_limit_a_channel_may_slow_down_instead_of_refusing() {
    let mut channel = prompt().limit(Limit::sliding_window(50, secs(1)));
    channel.over_limit = OverLimit::Slow(secs(1));
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    let slow = (0..60).filter(|n| ota.receive(At::ZERO, &rate(*n).call()).delay >= secs(1)).count();
    let total = ota.books(At::from_secs(1)).total;
    assert_eq!((slow, total.slowed, total.refused, total.committed), (10, 10, 0, 60));
}

#[test]
fn the_slow_tail_has_its_share_and_its_range() {
    let mut channel = prompt();
    channel.latency.tail = Some(Tail { share: Share::percent(20), min: secs(2), max: secs(3) });
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    let delays: Vec<Duration> = (0..500).map(|n| make(&ota, At::from_secs(n), &rate(n)).delay).collect();
    let tail = delays.iter().filter(|delay| !delay.is_zero()).count();
    assert!((60..=140).contains(&tail), "{tail}");
    assert!(delays.iter().all(|d| d.is_zero() || (secs(2)..=secs(3)).contains(d)));
}
