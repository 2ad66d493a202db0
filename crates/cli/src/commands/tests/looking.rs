//! Status, explain and export.

use ota_governor::core::state::{DeadReason, DeferReason};

use super::*;

async fn explained(desk: &Desk, id: &str) -> String {
    let (_, said) = desk.run(&format!("explain {id}")).await;
    said.lines().take(2).collect::<Vec<_>>().join(" | ")
}

#[tokio::test(start_paused = true)]
async fn explain_says_in_one_sentence_what_a_mutation_waits_for_and_until_when() {
    let mut desk = Desk::new();
    desk.enqueue("first", 1, 5).await;
    insta::assert_snapshot!(explained(&desk, "first").await, @"first is queued since 2026-09-20T10:00:00.000Z (0s ago) | It may go with the next permit; it waits for a push to be running, if none is.");

    let due = desk.now + Duration::from_secs(120);
    let throttled = Disposition::Deferred { reason: DeferReason::Throttled, due };
    desk.settle(429, throttled).await;
    insta::assert_snapshot!(explained(&desk, "first").await, @"first is deferred since 2026-09-20T10:00:00.000Z (0s ago) | It waits until 2026-09-20T10:02:00.000Z (in 2m): the channel answered 429.");

    desk.run("pause booking_com").await;
    let said = explained(&desk, "first").await;
    assert!(
        said.contains("until a person or a fresh token lifts a hold on booking_com: paused by hand by"),
        "{said}"
    );
    desk.run("resume booking_com").await;

    desk.now = due;
    desk.claim().await;
    insta::assert_snapshot!(explained(&desk, "first").await, @"first is in_flight since 2026-09-20T10:02:00.000Z (0s ago) | Its request is on the wire; the answer is waited for until 2026-09-20T10:02:15.000Z (in 15s) at the latest.");
}

#[tokio::test(start_paused = true)]
async fn explain_bounds_the_wait_for_a_turn_by_those_ahead_and_the_limits_pace() {
    let desk = Desk::new();
    for property in 1..=30 {
        desk.enqueue(&format!("m{property}"), property, 5).await;
    }
    for property in 31..=33 {
        desk.enqueue_at(&format!("m{property}"), property, 5, 1).await;
    }
    // 3 more urgent and 29 earlier go first; it is the 33rd: 3 at once as the burst, the others 667 ms apart.
    insta::assert_snapshot!(explained(&desk, "m30").await, @"m30 is queued since 2026-09-20T10:00:00.000Z (0s ago) | It waits for its turn at the limit booking_com.limits[0] (sliding_window 90 per 1m, burst 3): not before 2026-09-20T10:00:20.000Z (in 20s).");
    let (_, said) = desk.run("explain m30").await;
    assert!(said.contains("ahead          32 queued in its lane go first"), "{said}");
    assert!(
        said.contains("limit          booking_com.limits[0]: sliding_window 90 per 1m, burst 3"),
        "{said}"
    );
    let urgent = explained(&desk, "m31").await;
    assert!(urgent.contains("It may go with the next permit"), "{urgent}");
}

#[tokio::test(start_paused = true)]
async fn explain_says_how_a_final_one_ended() {
    let desk = Desk::new();
    desk.enqueue("m1", 1, 5).await;
    desk.settle(200, Disposition::Committed { confirmation_id: "C-7".to_owned() }).await;
    desk.enqueue("m2", 2, 5).await;
    desk.settle(400, Disposition::DeadLettered { reason: DeadReason::ClientRejection }).await;
    desk.enqueue("m3", 3, 5).await;
    desk.enqueue("m4", 3, 6).await;
    assert!(explained(&desk, "m1").await.ends_with("The channel took it: C-7."));
    assert!(explained(&desk, "m2").await.contains("It was given up: client_rejection, last status 400."));
    assert!(explained(&desk, "m3").await.ends_with("A newer value of its cell took its place: m4."));
    assert_eq!(desk.run("explain m9").await.0, Exit::Refused);
}

#[tokio::test(start_paused = true)]
async fn status_counts_every_lane_in_table_and_json_by_the_same_names() {
    let mut desk = Desk::new();
    desk.enqueue("m1", 1, 5).await;
    desk.settle(200, Disposition::Committed { confirmation_id: "C-7".to_owned() }).await;
    desk.enqueue("m2", 2, 5).await;
    desk.run("pause booking_com/availability --for 30m").await;
    desk.now = desk.now + Duration::from_secs(30);
    let (_, table) = desk.run("status").await;
    let lines: Vec<&str> = table.lines().collect();
    insta::assert_snapshot!(lines[..2].join("\n"), @r"
    lane                              queued  in_flight  deferred  committed  dead_lettered  superseded  cancelled  oldest waiting  limits
    booking_com:default/availability       1          0         0          1              0           0          0  30s             sliding_window 90 per 1m, burst 3, 1 used
    ");
    assert!(
        table.contains("held: booking_com:default/availability by booking_com/availability: manual until"),
        "{table}"
    );
    let (_, json) = desk.run("status --json").await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["accepted"], &json["lanes"][0]["endpoint"]), (&2.into(), &"availability".into()));
    for (name, count) in [("queued", 1), ("committed", 1), ("deferred", 0), ("dead_lettered", 0)] {
        assert_eq!(json["lanes"][0][name], count, "{name}");
    }
    assert_eq!(json["lanes"][0]["holds"][0]["cause"], "manual");
    assert_eq!(json["lanes"][0]["limits"][0]["pace"], "one every 667ms");
    // The limit is the channel's: a call of one lane counts in the others, until the window has passed.
    assert_eq!(json["lanes"][1]["limits"][0]["used"], 1);
    desk.now = desk.now + Duration::from_secs(31);
    let (_, json) = desk.run("status --json").await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["lanes"][0]["limits"][0]["used"], 0);
}

#[tokio::test(start_paused = true)]
async fn confirmations_are_exported_one_json_object_a_line() {
    let mut desk = Desk::new();
    desk.enqueue("m1", 1, 5).await;
    desk.settle(200, Disposition::Committed { confirmation_id: "C-7".to_owned() }).await;
    desk.now = desk.now + Duration::from_secs(3600);
    desk.enqueue("m2", 2, 5).await;
    desk.settle(200, Disposition::Committed { confirmation_id: "C-8".to_owned() }).await;
    let (_, all) = desk.run("export committed --since 24h").await;
    assert_eq!(all.lines().count(), 2);
    let (_, late) = desk.run("export committed --since 30m").await;
    let line: serde_json::Value = serde_json::from_str(late.trim_end()).unwrap();
    assert_eq!((&line["correlation_id"], &line["confirmation_id"]), (&"m2".into(), &"C-8".into()));
    assert_eq!(
        (&line["cell"]["kind"], &line["cell"]["rate_plan_code"]),
        (&"availability".into(), &serde_json::Value::Null)
    );
    assert_eq!(line["time"], "2026-09-20T11:00:00.000Z");
}
