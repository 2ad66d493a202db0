//! Limits of every kind, as the channel sees them, over restarts too.

use std::time::Duration;

use ota_sim::{Channel, Limit, RetryAfter};
use serde_json::json;

use super::desk::{Desk, rate, rates, until, with};

const SECOND: Duration = Duration::from_secs(1);

/// Pushes a file and kills the push a few times on the way; the channel never refuses a call.
async fn holds_over_kills(limit: Limit, configured: &str, count: u32) {
    let desk = Desk::limited(Channel::default().limit(limit), configured).await;
    // Five prices a property, one stay date each.
    let line = |n: u32| {
        with(rate(&format!("m{n}"), n / 5, 100), json!({ "stay_date": format!("2047-06-{:02}", 1 + n % 5) }))
    };
    desk.lines("rates.ndjson", (0..count).map(line));
    for n in 1..=3 {
        let mut child = desk.spawn("push rates.ndjson");
        until("more calls", async || desk.received() >= u64::from(count) * n / 5).await;
        child.kill().await.unwrap();
    }
    desk.run("push rates.ndjson").await.exits(0);
    let books = desk.server.books();
    assert_eq!((books.total.refused, books.total.committed), (0, u64::from(count)), "{configured}");
    assert!(!books.is_over(), "{configured}: {:?}", books.channels["booking_com"].limits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bucket_is_not_full_again_after_a_kill() {
    let configured = r#"{ kind = "token_bucket", rate = 30, per = "1s", burst = 20 }"#;
    holds_over_kills(Limit::token_bucket(30, SECOND, 20), configured, 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_greedy_window_is_not_empty_again_after_a_kill() {
    let configured = r#"{ kind = "sliding_window", max = 30, per = "1s", burst = 30 }"#;
    holds_over_kills(Limit::sliding_window(30, SECOND), configured, 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_property_has_its_own_window() {
    let configured = r#"{ kind = "sliding_window", max = 2, per = "1s", each = "property" }"#;
    holds_over_kills(Limit::sliding_window(2, SECOND).each_property(), configured, 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_calls_are_in_flight_than_the_channel_allows() {
    let configured = r#"{ kind = "concurrency", max = 3 }"#;
    let channel = Channel::default().limit(Limit::concurrency(3));
    let desk = Desk::limited(channel, configured).await;
    desk.lines("rates.ndjson", rates(100));
    desk.run("push rates.ndjson").await.exits(0);
    let books = desk.server.books();
    assert_eq!((books.total.refused, books.total.in_flight_peak), (0, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_stricter_than_configured_is_left_alone_for_as_long_as_it_asks() {
    for form in [RetryAfter::Exact, RetryAfter::ImfFixdate(None), RetryAfter::Decimal(None)] {
        let channel = Channel::default().limit(Limit::sliding_window(20, SECOND)).retry_after([form]);
        let desk = Desk::limited(channel, r#"{ kind = "sliding_window", max = 60, per = "1s" }"#).await;
        desk.lines("rates.ndjson", rates(50));
        let report = desk.run("push rates.ndjson --report json").await.exits(0).report();
        let books = desk.server.books();
        assert_eq!((books.total.committed, books.total.into_pause), (50, 0), "{report}");
        assert!(books.total.refused > 0);
        assert_eq!(report["throttled"], books.total.refused);
    }
}
