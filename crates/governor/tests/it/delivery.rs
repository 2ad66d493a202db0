//! Order, doubt, urgency and the end of it: what becomes of a mutation when things go wrong.

use std::time::Duration;

use ota_governor::core::state::State;
use ota_governor::governor::Drained;
use ota_sim::{Act, Auth, Fault, Limit, Outage, OutageKind, Token};
use serde_json::json;

use crate::process::{Process, otax};
use crate::retry_after::{TEN_A_SECOND, only, prompt, rate};
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);

fn ids(applied: &std::collections::BTreeMap<String, Vec<String>>) -> Vec<&str> {
    applied.values().flatten().map(String::as_str).collect()
}

#[tokio::test(start_paused = true)]
async fn the_bucket_caps_throughput() {
    let limit = Limit::token_bucket(10, SECOND, 10);
    let world = World::near(only(prompt().endpoint_limit("rates", limit)));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept_all(&(1..=110).map(rate).collect::<Vec<_>>()).await;
    process.drain().await;
    let last = world.sent().last().unwrap().at;
    assert!(last >= SECOND * 10 && last <= SECOND * 10 + Duration::from_millis(150), "{last:?}");
    let books = world.books();
    assert!(!books.is_over() && books.total.refused == 0 && books.total.committed == 110);
}

#[tokio::test(start_paused = true)]
async fn the_idempotency_key_is_stable_across_retries_and_restarts() {
    let world = World::near(only(prompt().fault(Fault::status(503).times(3))));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept(&rate(1)).await;
    world.until(Duration::from_millis(500)).await;
    let process = process.kill().restart().await;
    process.drain().await;
    let sent = world.sent_of("m1");
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|call| call.idempotency_key == sent[0].idempotency_key));
    assert!(sent.iter().all(|call| call.body == sent[0].body));
    assert_eq!(process.record("m1").await.idempotency_key, sent[0].idempotency_key);
    assert_eq!(world.books().total.replays, 0, "a failure is not remembered: the next try is really made");
}

#[tokio::test(start_paused = true)]
async fn a_parked_old_value_never_comes_back_over_a_newer_one() {
    let world = World::near(only(prompt().fault(Fault::status(503).nth(1))));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept(&rate(1)).await;
    world.until(Duration::from_millis(200)).await;
    let mut newer = rate(1);
    (newer["correlation_id"], newer["amount"]) = (json!("newer"), json!("130.00"));
    process.accept(&newer).await;
    process.drain().await;
    assert_eq!(process.state("m1").await, State::Superseded);
    assert_eq!((ids(&world.applied()), world.sent_of("m1").len()), (vec!["newer"], 1));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_comes_while_another_is_sent_goes_as_a_call_of_its_own() {
    let world = World::near(only(prompt().latency(SECOND, SECOND)));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept(&rate(1)).await;
    world.until(Duration::from_millis(500)).await;
    let mut newer = rate(1);
    (newer["correlation_id"], newer["inventory"]) = (json!("newer"), json!(6));
    process.accept(&newer).await;
    process.drain().await;
    assert_eq!(ids(&world.applied()), ["m1", "newer"]);
    assert_eq!(world.sent()[0].body["inventory"], json!(3), "what is on the wire is frozen");
    assert_eq!(world.books().total.cell_overlaps, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_landed_without_an_answer_is_made_again_with_its_key_and_applied_once() {
    let world = World::near(only(prompt().fault(Fault::new(Act::CommitThenCut).nth(1))));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept(&rate(1)).await;
    process.drain().await;
    assert_eq!(process.state("m1").await, State::Committed);
    assert_eq!((ids(&world.applied()), world.books().total.replays), (vec!["m1"], 1));
}

#[tokio::test(start_paused = true)]
async fn an_urgent_stop_sell_takes_the_next_slot_of_a_long_backlog() {
    let world = World::near(only(prompt()));
    let limit = "[[channels.otax.limits]]\nkind = \"sliding_window\"\nmax = 10\nper = \"1m\"\n";
    let process = Process::start(&world, otax(limit)).await;
    process.accept_all(&(1..=100).map(rate).collect::<Vec<_>>()).await;
    world.until(SECOND * 60).await;
    let mut stop =
        json!({ "kind": "restriction", "stop_sell": true, "priority": 0, "correlation_id": "stop" });
    for field in ["ota", "property_id", "room_type_code", "rate_plan_code", "stay_date"] {
        stop[field] = rate(77)[field].clone();
    }
    process.accept(&stop).await;
    world.until(SECOND * 68).await;
    assert_eq!(process.state("stop").await, State::Committed);
    assert!(world.sent_of("stop")[0].at <= SECOND * 67);
    process.drain().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_without_connections_uses_up_no_attempt_however_long_it_lasts() {
    let outage = Outage { at: Duration::ZERO, lasts: SECOND * 1_800, kind: OutageKind::Refuse };
    let world = World::near(only(prompt().outage(outage)));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept_all(&(1..=24).map(rate).collect::<Vec<_>>()).await;
    process.drain().await;
    for n in 1..=24 {
        let record = process.record(&format!("m{n}")).await;
        assert_eq!((record.state, record.attempts), (State::Committed, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_good_is_sent_once_and_kept_with_its_answer() {
    let world = World::near(only(prompt().fault(Fault::status(400).nth(1))));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept_all(&[rate(1), rate(2)]).await;
    process.drain().await;
    let dead = process.record("m1").await;
    assert_eq!((dead.state, dead.last_status, dead.requests), (State::DeadLettered, Some(400), 1));
    assert_eq!(process.state("m2").await, State::Committed);
}

#[tokio::test(start_paused = true)]
async fn equal_refusals_in_a_row_suspend_the_lane_and_keep_the_rest() {
    let world = World::near(only(prompt().fault(Fault::status(403))));
    let process = Process::start(&world, otax(&format!("max_in_flight = 1\n{TEN_A_SECOND}"))).await;
    process.accept_all(&(1..=50).map(rate).collect::<Vec<_>>()).await;
    assert_eq!(process.governor.drained().await.unwrap(), Drained::Held);
    assert_eq!(world.sent().len(), 20);
    assert_eq!(process.state("m21").await, State::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_stops_the_account_and_costs_no_mutation_anything() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "old").unwrap();
    let auth = Auth::tokens([Token::new("new")]);
    let slow = prompt().latency(Duration::from_millis(50), Duration::from_millis(50));
    let world = World::near(only(slow.auth(auth)));
    let toml = format!("max_in_flight = 5\n{TEN_A_SECOND}");
    let token = format!("token = {{ file = {:?} }}", file.path().to_str().unwrap());
    let channel = "[channels.otax]\nbase_url = \"https://otax.example\"\n";
    let process = Process::start(&world, crate::process::config(&format!("{channel}{token}\n{toml}"))).await;
    process.accept_all(&(1..=30).map(rate).collect::<Vec<_>>()).await;
    assert_eq!(process.governor.drained().await.unwrap(), Drained::Held);
    world.until(SECOND * 600).await;
    assert_eq!(world.sent().len(), 5, "no storm: those in flight, and none after them");
    std::fs::write(file.path(), "new").unwrap();
    // The source is asked again after five minutes at most.
    world.until(SECOND * 1_000).await;
    process.drain().await;
    let books = world.books().total;
    assert_eq!((books.committed, books.unauthorized), (30, 5));
    for n in 1..=30 {
        assert_eq!(process.record(&format!("m{n}")).await.attempts, 1);
    }
    assert!(world.sent().iter().skip(5).all(|call| call.authorization == "Bearer new"));
}
