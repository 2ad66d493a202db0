//! Commands beside a running push.

use std::time::{Duration, Instant};

use ota_sim::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, prompt, rate, rates, signal, until, with};

const SLOW: &str = r#"{ kind = "sliding_window", max = 20, per = "1s", burst = 1 }"#;

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_and_explaining_a_running_push() {
    let desk = Desk::limited(prompt(), SLOW).await;
    desk.lines("rates.ndjson", rates(200));
    let push = desk.spawn("push rates.ndjson --report json");
    until("some calls", async || desk.received() >= 5).await;
    let status = desk.status().await;
    assert_eq!(status["accepted"], 200);
    let lanes = status["lanes"].as_array().unwrap();
    let lane = lanes.iter().find(|lane| lane["lane"] == "booking_com:default/rates").unwrap();
    assert!(lane["committed"].as_u64().unwrap() >= 4 && lane["queued"].as_u64().unwrap() > 100, "{lane}");
    let said = desk.run("explain m199").await;
    assert!(said.exits(0).out.contains("It waits for its turn at the limit"), "{}", said.out);
    desk.run("explain nobody").await.exits(1);
    let exported = desk.run("export committed --since 1h").await.exits(0).out.clone();
    let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!((&first["correlation_id"], &first["cell"]["ota"]), (&json!("m0"), &json!("booking_com")));
    assert!(first["confirmation_id"].as_str().unwrap().starts_with("booking_com-"), "{first}");
    signal(&push, "INT").await;
    desk.ended(push).await.exits(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_by_hand_is_obeyed_within_a_second_and_so_is_its_end() {
    let desk = Desk::limited(prompt(), SLOW).await;
    desk.lines("rates.ndjson", rates(60));
    // The pipe stays open: a push that is held ends otherwise, having nothing to wait for.
    let mut command = desk.command("push - --report json");
    let mut push = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut pipe = push.stdin.take().unwrap();
    let text = std::fs::read(desk.path("rates.ndjson")).unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut pipe, &text).await.unwrap();
    until("some calls", async || desk.received() >= 5).await;
    desk.run("pause booking_com/rates").await.exits(0);
    let paused = Instant::now();
    let mut last = (desk.received(), Instant::now());
    while last.1.elapsed() < Duration::from_millis(700) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if desk.received() != last.0 {
            last = (desk.received(), Instant::now());
        }
        assert!(paused.elapsed() < Duration::from_secs(3), "calls go on");
    }
    assert!(last.1.duration_since(paused) < Duration::from_secs(1), "seen after more than a second");
    assert!(desk.received() < 60);
    desk.run("resume booking_com").await.exits(0);
    let resumed = Instant::now();
    until("calls again", async || desk.received() > last.0).await;
    assert!(resumed.elapsed() < Duration::from_secs(1), "{:?}", resumed.elapsed());
    drop(pipe);
    desk.ended(push).await.exits(0);
    assert_eq!(desk.received(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_file_that_only_waits_for_a_person_ends_with_3() {
    let desk = Desk::limited(prompt(), SLOW).await;
    desk.lines("rates.ndjson", rates(10));
    desk.run("push").await.exits(0);
    desk.run("pause booking_com").await.exits(0);
    let report = desk.run("push rates.ndjson --report json").await.exits(3).report();
    assert_eq!((&report["queued"], desk.received()), (&json!(10), 0));
    desk.run("pause nowhere").await.exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_batch_is_not_sent_and_the_push_tells_so() {
    let desk = Desk::limited(prompt(), SLOW).await;
    desk.lines("rates.ndjson", rates(60).map(|line| with(line, json!({ "batch": "night" }))));
    let push = desk.spawn("push rates.ndjson --report json");
    until("some calls", async || desk.received() >= 5).await;
    let ran = desk.run("cancel --batch night").await;
    assert!(ran.exits(0).out.contains("of the batch night are cancelled"), "{}", ran.out);
    let report = desk.ended(push).await.exits(1).report();
    let (cancelled, committed) =
        (report["cancelled"].as_u64().unwrap(), report["committed"].as_u64().unwrap());
    assert_eq!(cancelled + committed, 60, "{report}");
    assert!(cancelled > 40, "{report}");
    assert_eq!(committed, desk.received());
    desk.run("cancel --batch nothing").await.exits(1);
    desk.run("cancel").await.exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_shown_replayed_and_discarded() {
    let desk = Desk::new(prompt().fault(Fault::status(422).times(3))).await;
    desk.lines("rates.ndjson", rates(3));
    let report = desk.run("push rates.ndjson --report json").await.exits(1).report();
    assert_eq!(report["dead_lettered"], 3);
    let listed = desk.run("dead-letters list --json").await.exits(0).out.clone();
    assert_eq!(listed.lines().count(), 3);
    let letter: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!((&letter["reason"], &letter["last_status"]), (&json!("client_rejection"), &json!(422)));
    let shown = desk.run("dead-letters show m0").await;
    assert!(shown.exits(0).out.contains("history"), "{}", shown.out);
    // A newer value of m0's cell stands in the way of its replay.
    desk.lines("newer.ndjson", [rate("newer", 0, 200)]);
    desk.run("push newer.ndjson").await.exits(0);
    let refused = desk.run("dead-letters replay m0").await;
    assert!(refused.exits(1).out.contains("a newer value of its cell exists"), "{}", refused.out);
    desk.run("dead-letters replay m1").await.exits(0);
    desk.run("push").await.exits(0);
    assert_eq!(desk.amount(1).as_deref(), Some("100.50"));
    assert_eq!(desk.amount(0).as_deref(), Some("200.50"), "the newer value stands");
    desk.run("dead-letters discard m0 m2").await.exits(0);
    desk.run("dead-letters show m2").await.exits(1);
    let status = desk.status().await;
    assert_eq!((&status["accepted"], &status["discarded"]), (&json!(4), &json!(2)), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_replayed_beside_a_running_push_goes_out_with_it() {
    let desk = Desk::limited(prompt().fault(Fault::status(422).times(1)), SLOW).await;
    desk.lines("rates.ndjson", rates(40));
    let push = desk.spawn("push rates.ndjson --report json");
    until("some calls", async || desk.received() >= 3).await;
    desk.run("dead-letters replay m0").await.exits(0);
    let report = desk.ended(push).await.exits(0).report();
    assert_eq!((&report["committed"], &report["requests"]), (&json!(40), &json!(41)), "{report}");
}
