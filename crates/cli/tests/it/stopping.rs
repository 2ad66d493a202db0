//! Pushes that end before their work does.

use std::time::Duration;

use ota_sim::{Channel, Limit};
use serde_json::{Value, json};

use super::desk::{Desk, prompt, rate, rates, signal, until, with};

/// A channel that allows 60 calls in any second.
async fn sixty() -> Desk {
    let channel = Channel::default().limit(Limit::sliding_window(60, Duration::from_secs(1)));
    Desk::limited(channel, r#"{ kind = "sliding_window", max = 60, per = "1s" }"#).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_six_times_in_mid_drain_nothing_is_lost_and_no_limit_is_broken() {
    let desk = sixty().await;
    desk.lines("rates.ndjson", rates(300));
    for n in 1..=6 {
        let mut child = desk.spawn("push rates.ndjson --report json");
        until("more calls", async || desk.received() >= n * 30).await;
        child.kill().await.unwrap();
        let status = desk.status().await;
        assert_eq!(status["accepted"], 300, "{status}");
        let lane = &status["lanes"][1];
        assert_eq!(states(lane), 300, "{status}");
    }
    let report = desk.run("push rates.ndjson --report json").await.exits(0).report();
    assert_eq!((&report["accepted"], &report["committed"]), (&json!(300), &json!(300)), "{report}");
    let books = desk.server.books();
    assert_eq!((books.total.refused, books.total.committed), (0, 300));
    assert_eq!((books.total.key_conflicts, books.is_over()), (0, false));
    for cell in 0..300 {
        assert_eq!(desk.amount(cell).as_deref(), Some("100.50"), "cell {cell}");
    }
}

fn states(lane: &Value) -> u64 {
    let names = ["queued", "in_flight", "deferred", "committed", "dead_lettered", "superseded", "cancelled"];
    names.iter().map(|name| lane[name].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_a_push_cleanly_and_the_next_goes_on() {
    for name in ["INT", "TERM"] {
        let desk = sixty().await;
        desk.lines("rates.ndjson", rates(120));
        let child = desk.spawn("push rates.ndjson --report json");
        until("some calls", async || desk.received() >= 10).await;
        signal(&child, name).await;
        let report = desk.ended(child).await.exits(3).report();
        let (queued, committed) = (report["queued"].as_u64().unwrap(), report["committed"].as_u64().unwrap());
        assert_eq!((queued + committed, &report["in_flight"]), (120, &json!(0)), "{report}");
        assert_eq!(committed, desk.server.books().total.committed);
        let report = desk.run("push --report json").await.exits(0).report();
        assert_eq!((&report["accepted"], &report["earlier"]), (&json!(0), &json!(queued)), "{report}");
        assert_eq!(desk.server.books().total.committed, 120);
        assert_eq!(desk.received(), 120);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_push_is_told_who_holds_the_ledger_and_sends_nothing() {
    let desk = sixty().await;
    desk.lines("rates.ndjson", rates(200));
    desk.lines("other.ndjson", [rate("other", 9_999, 1)]);
    let first = desk.spawn("push rates.ndjson --report json");
    until("some calls", async || desk.received() >= 5).await;
    let holder = first.id().unwrap().to_string();
    let second = desk.run("push other.ndjson --report json").await;
    assert_eq!(second.exits(2).out, "");
    assert!(second.err.contains(&holder), "{}", second.err);
    signal(&first, "INT").await;
    desk.ended(first).await.exits(3);
    assert_eq!(desk.status().await["accepted"], 200);
    assert_eq!(desk.amount(9_999), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_out_of_reach_keeps_everything_queued_until_the_deadline() {
    let desk = sixty().await;
    desk.lines("rates.ndjson", rates(20));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = std::fs::read_to_string(desk.path("governor.toml")).unwrap();
    desk.write("governor.toml", &text.replace(&desk.server.url(), &format!("http://{closed}")));
    let report = desk.run("push rates.ndjson --report json --deadline 1500ms").await.exits(3).report();
    assert_eq!((&report["dead_lettered"], &report["requests"]), (&json!(0), &json!(0)), "{report}");
    assert_eq!(report["queued"].as_u64().unwrap() + report["deferred"].as_u64().unwrap(), 20, "{report}");
    desk.write("governor.toml", &text);
    desk.run("push").await.exits(0);
    assert_eq!(desk.server.books().total.committed, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_line_from_a_pipe_overtakes_the_backlog() {
    use tokio::io::AsyncWriteExt;
    let desk =
        Desk::limited(prompt(), r#"{ kind = "sliding_window", max = 20, per = "1s", burst = 1 }"#).await;
    let mut command = desk.command("push - --report json");
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bulk: String = rates(60).map(|line| format!("{line}\n")).collect();
    pipe.write_all(bulk.as_bytes()).await.unwrap();
    until("a few calls", async || desk.received() >= 5).await;
    let before = desk.received();
    let urgent = with(rate("urgent", 5_000, 1), json!({ "priority": 0 }));
    pipe.write_all(format!("{urgent}\n").as_bytes()).await.unwrap();
    until("the urgent one", async || desk.amount(5_000).is_some()).await;
    let slots = desk.received() - before;
    assert!(slots <= 5, "{slots} calls until the urgent one was there");
    drop(pipe);
    let report = desk.ended(child).await.exits(0).report();
    assert_eq!(report["committed"], 61);
}
