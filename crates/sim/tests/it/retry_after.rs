//! How a 429 says when to come back, and what the books make of callers that do not listen.

use std::time::Duration;

use ota_sim::{At, Channel, Config, Fault, Limit, Ota, Pauses, RetryAfter};

use super::calls::{availability, make, prompt, rate, secs, status};

/// An OTA of 2026-09-20T10:00:00Z that admits one call a minute.
fn ota(change: impl Fn(Channel) -> Channel) -> Ota {
    let epoch = "2026-09-20T10:00:00Z".parse().unwrap();
    let channel = change(prompt().limit(Limit::sliding_window(1, secs(60))));
    Ota::new(Config::default().epoch(epoch).channel("booking_com", channel))
}

/// `Retry-After` and `Date` of a refusal half a second past the hour.
fn said(form: RetryAfter, skew: i64) -> (Option<String>, String) {
    let ota = ota(|channel| Channel { date_skew: skew, ..channel.retry_after([form.clone()]) });
    make(&ota, At::from_millis(100), &rate(1));
    let refused = make(&ota, At::from_millis(500), &rate(2));
    let answer = refused.then.answer().unwrap();
    assert_eq!(answer.status, 429);
    (answer.header("retry-after").map(str::to_owned), answer.header("date").unwrap().to_owned())
}

#[test]
fn every_form_says_the_first_whole_second_at_which_the_limit_admits() {
    let text = |form| said(form, 0).0.unwrap();
    assert_eq!(text(RetryAfter::Exact), "60", "59.6 s rounded up");
    assert_eq!(text(RetryAfter::ImfFixdate(None)), "Sun, 20 Sep 2026 10:01:01 GMT");
    assert_eq!(text(RetryAfter::Rfc850(None)), "Sunday, 20-Sep-26 10:01:01 GMT");
    assert_eq!(text(RetryAfter::Asctime(None)), "Sun Sep 20 10:01:01 2026");
    assert_eq!(text(RetryAfter::Decimal(None)), "59.6");
}

#[test]
fn fixed_and_foul_forms_are_sent_as_they_are() {
    let text = |form| said(form, 0).0;
    assert_eq!(text(RetryAfter::Absent), None);
    assert_eq!(text(RetryAfter::Seconds(7)).as_deref(), Some("7"));
    assert_eq!(text(RetryAfter::Past).as_deref(), Some("Sun, 20 Sep 2026 09:00:00 GMT"));
    assert_eq!(
        text(RetryAfter::ImfFixdate(Some(secs(120)))).as_deref(),
        Some("Sun, 20 Sep 2026 10:02:01 GMT")
    );
    for raw in ["soon", "", "-3", "+3", "1.5", "0", "9999999999", "99999999999999999999999"] {
        assert_eq!(text(RetryAfter::Raw(raw.to_owned())).as_deref(), Some(raw));
    }
}

#[test]
fn a_skewed_clock_is_wrong_in_the_date_and_in_the_dates_it_names_alike() {
    let (date, now) = said(RetryAfter::ImfFixdate(None), 3_600);
    assert_eq!(now, "Sun, 20 Sep 2026 11:00:00 GMT");
    assert_eq!(date.as_deref(), Some("Sun, 20 Sep 2026 11:01:01 GMT"));
    assert_eq!(said(RetryAfter::Exact, -60).1, "Sun, 20 Sep 2026 09:59:00 GMT");
}

#[test]
fn forms_are_taken_in_turn() {
    let ota = ota(|channel| {
        channel.retry_after([RetryAfter::Seconds(1), RetryAfter::Absent, RetryAfter::Seconds(3)])
    });
    make(&ota, At::ZERO, &rate(0));
    let header =
        |n| make(&ota, At::ZERO, &rate(n)).then.answer().unwrap().header("retry-after").map(str::to_owned);
    let seen: Vec<_> = (1..5).map(header).collect();
    assert_eq!(seen, [Some("1".into()), None, Some("3".into()), Some("1".into())]);
}

/// `(into_pause, into_pause_grace)` for calls at these milliseconds after a refusal that left at 0.
fn intruders(form: RetryAfter, at: &[u64]) -> (u64, u64) {
    let ota = ota(|channel| channel.retry_after([form.clone()]));
    make(&ota, At::ZERO, &rate(0));
    make(&ota, At::ZERO, &rate(1));
    for (n, at) in at.iter().enumerate() {
        ota.receive(At::from_millis(*at), &rate(10 + u64::try_from(n).unwrap()).call());
    }
    let total = ota.books(At::MAX).total;
    (total.into_pause, total.into_pause_grace)
}

#[test]
fn calls_into_a_pause_are_counted_to_the_very_end_of_it() {
    assert_eq!(intruders(RetryAfter::Seconds(5), &[49, 50, 4_999, 5_000]), (2, 1));
    assert_eq!(intruders(RetryAfter::Decimal(Some(Duration::from_millis(1_500))), &[1_499, 1_500]), (1, 0));
    assert_eq!(intruders(RetryAfter::Rfc850(Some(secs(3))), &[2_999, 3_000]), (1, 0));
    assert_eq!(
        intruders(RetryAfter::Raw("9999999999".to_owned()), &[86_399_999, 86_400_000]),
        (1, 0),
        "the horizon"
    );
}

#[test]
fn what_says_nothing_asks_for_nothing() {
    for raw in ["soon", "", "-3", "+3", "0"] {
        assert_eq!(intruders(RetryAfter::Raw(raw.to_owned()), &[60, 1_000]), (0, 0), "{raw}");
    }
    assert_eq!(intruders(RetryAfter::Past, &[60]), (0, 0));
    assert_eq!(intruders(RetryAfter::Absent, &[60]), (0, 0));
}

#[test]
fn a_call_that_was_there_before_the_refusal_left_is_no_intruder() {
    let ota = ota(|channel| channel.latency(secs(1), secs(1)));
    make(&ota, At::ZERO, &rate(0));
    let refused = ota.receive(At::from_secs(1), &rate(1).call());
    ota.receive(At::from_millis(1_500), &rate(2).call());
    ota.finish(At::from_secs(2), refused.ticket);
    assert_eq!(ota.books(At::from_secs(2)).total.into_pause, 0);
    ota.receive(At::from_millis(2_500), &rate(3).call());
    assert_eq!(ota.books(At::from_secs(3)).total.into_pause, 1);
}

#[test]
fn a_refusal_whose_caller_was_gone_asked_nobody() {
    let ota = ota(|channel| channel.latency(secs(1), secs(1)));
    make(&ota, At::ZERO, &rate(0));
    let refused = ota.receive(At::from_secs(1), &rate(1).call());
    ota.finish(At::from_millis(1_100), refused.ticket);
    ota.receive(At::from_secs(3), &rate(3).call());
    let total = ota.books(At::from_secs(3)).total;
    assert_eq!((total.into_pause, total.gone, total.lost_answers), (0, 1, 0));
}

#[test]
fn a_pause_is_of_the_endpoint_the_property_or_the_channel() {
    let with = |pauses| {
        let ota = ota(|channel| Channel { pauses, ..channel });
        make(&ota, At::ZERO, &rate(0));
        make(&ota, At::ZERO, &rate(1));
        make(&ota, At::from_secs(1), &rate(2).property("prop_00000002"));
        make(&ota, At::from_secs(1), &availability(3, 1));
        ota.books(At::from_secs(1)).total.into_pause
    };
    assert_eq!((with(Pauses::Endpoint), with(Pauses::Property), with(Pauses::Channel)), (1, 0, 2));
}

#[test]
fn a_503_may_ask_for_a_pause_too() {
    let act = ota_sim::Act::Status { status: 503, retry_after: Some(RetryAfter::Seconds(9)), body: None };
    let channel = prompt().fault(Fault::new(act).times(1));
    let ota = Ota::new(Config::default().channel("booking_com", channel));
    let first = make(&ota, At::ZERO, &rate(1));
    assert_eq!(first.then.answer().unwrap().header("retry-after"), Some("9"));
    assert_eq!(status(&ota, At::from_secs(8), &rate(1)), 200);
    assert_eq!(ota.books(At::from_secs(8)).total.into_pause, 1);
}
