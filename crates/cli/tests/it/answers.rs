//! Channels that answer as they should not.

use std::time::{Duration, Instant};

use ota_sim::{Act, Fault};
use serde_json::json;

use super::desk::{Desk, prompt, rates};

/// Pushes five prices of which the first meets `act`; all end committed, applied once.
async fn meets(act: Act, requests: u64) -> Duration {
    let desk = Desk::new(prompt().fault(Fault::new(act.clone()).times(1))).await;
    desk.lines("rates.ndjson", rates(5));
    let began = Instant::now();
    let ran = desk.run("push rates.ndjson --report json").await;
    let report = ran.exits(0).report();
    assert_eq!(
        (&report["committed"], &report["requests"]),
        (&json!(5), &json!(requests)),
        "{act:?}: {report}"
    );
    let books = desk.server.books();
    assert_eq!((books.total.committed, books.total.key_conflicts), (5, 0), "{act:?}");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_http_is_an_unknown_outcome() {
    meets(Act::Garbage, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_gigabyte_is_read_up_to_a_bound_only() {
    let took = meets(Act::Huge { bytes: 1 << 30 }, 5).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dripped_answer_holds_nothing_up_for_longer_than_the_timeout() {
    let took = meets(Act::Drip { interval: Duration::from_millis(1) }, 5).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let desk =
        Desk::new(prompt().fault(Fault::new(Act::Drip { interval: Duration::from_secs(1) }).times(1))).await;
    desk.lines("rates.ndjson", rates(5));
    let began = Instant::now();
    desk.run("push rates.ndjson").await.exits(0);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(desk.server.books().total.committed, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_never_comes_is_given_up_and_sent_again_with_the_same_key() {
    for act in [Act::Hang, Act::CommitThenHang] {
        let took = meets(act, 6).await;
        assert!(took > Duration::from_secs(2) && took < Duration::from_secs(8), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_cut_or_refused_or_answered_late_are_made_again() {
    for act in [Act::Cut, Act::CommitThenCut, Act::CommitThenStatus { status: 500 }] {
        meets(act, 6).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_parks_the_mutation() {
    let location = "http://127.0.0.1:9/elsewhere".to_owned();
    let desk = Desk::new(prompt().fault(Fault::new(Act::Redirect { location }).times(1))).await;
    desk.lines("rates.ndjson", rates(3));
    let report = desk.run("push rates.ndjson --report json").await.exits(1).report();
    assert_eq!((&report["dead_lettered"], &report["committed"]), (&json!(1), &json!(2)), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_refusals_in_a_row_suspend_the_lane_and_the_rest_stays_queued() {
    let desk = Desk::new(prompt().fault(Fault::status(404))).await;
    desk.lines("rates.ndjson", rates(200));
    let ran = desk.run("push rates.ndjson --report json").await;
    let report = ran.exits(3).report();
    let dead = report["dead_lettered"].as_u64().unwrap();
    // Those in flight when the twentieth came are refused too.
    assert!((20..=36).contains(&dead), "{report}");
    assert_eq!(report["queued"].as_u64().unwrap() + dead, 200, "{report}");
    assert_eq!(desk.received(), dead);
    assert!(ran.err.contains("lane_suspended"), "{}", ran.err);
    desk.run("push").await.exits(3);
    assert_eq!(desk.received(), dead, "a suspension survives");
}
