//! The newest value of each cell stands, whatever happens on the way.

use std::time::Duration;

use ota_sim::{Act, Fault, Share};
use serde_json::json;

use super::desk::{Desk, prompt, rate};

#[tokio::test(flavor = "multi_thread")]
async fn under_faults_of_every_kind_the_newest_value_of_each_cell_stands() {
    let mut channel = prompt().latency(Duration::from_millis(1), Duration::from_millis(20));
    let commit_then_500 = Act::CommitThenStatus { status: 500 };
    for fault in [
        Fault::status(500),
        Fault::status(503),
        Fault::new(Act::Cut),
        Fault::new(commit_then_500),
        Fault::new(Act::CommitThenCut),
    ] {
        channel = channel.fault(fault.share(Share::percent(3)));
    }
    let desk = Desk::new(channel).await;
    let text = std::fs::read_to_string(desk.path("governor.toml")).unwrap();
    // What is unknown rests one timeout.
    desk.write("governor.toml", &text.replace("timeout = \"2s\"", "timeout = \"300ms\""));
    // Four hundred cells, of which every other is set again by a later line.
    let first = (0..400).map(|n| rate(&format!("a{n}"), n, 100 + n));
    let again = (0..400).step_by(2).map(|n| rate(&format!("b{n}"), n, 1_000 + n));
    desk.lines("rates.ndjson", first.chain(again));
    let ran = desk.run("push rates.ndjson --report json").await;
    let report = ran.exits(0).report();
    assert_eq!((&report["accepted"], &report["dead_lettered"]), (&json!(600), &json!(0)), "{report}");
    for n in 0..400 {
        let wanted = if n % 2 == 0 { 1_000 + n } else { 100 + n };
        assert_eq!(desk.amount(n), Some(format!("{wanted}.50")), "cell {n}");
    }
    let books = desk.server.books();
    assert_eq!((books.total.cell_overlaps, books.total.key_conflicts), (0, 0));
    assert!(!books.is_over());
}
