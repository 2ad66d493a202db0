//! A file pushed end to end.

use std::time::Duration;

use ota_sim::{Channel, Config, Limit};
use serde_json::json;

use super::desk::{Desk, prompt, rate, rates, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_file_is_what_the_channels_books_say() {
    let desk = Desk::new(Channel::default()).await;
    desk.lines("rates.ndjson", rates(150));
    let ran = desk.run("push rates.ndjson --report json").await;
    let report = ran.exits(0).report();
    let books = desk.server.books();
    assert_eq!((books.total.committed, books.total.refused, books.total.malformed), (150, 0, 0), "{books:?}");
    assert_eq!(report["requests"], books.total.received);
    assert_eq!(report["channels"]["booking_com"]["committed"], 150);
    for (key, count) in [("accepted", 150), ("committed", 150), ("throttled", 0), ("earlier", 0)] {
        assert_eq!(report[key], count, "{key}: {report}");
    }
    let again = desk.run("push rates.ndjson --report json").await.exits(0).report();
    assert_eq!((&again["duplicates"], &again["committed"]), (&json!(150), &json!(150)), "{again}");
    assert_eq!(desk.received(), 150, "what is known is not sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_channels_run_at_their_own_pace_without_one_429() {
    let limits = [("booking_com", 60_u32), ("expedia", 40), ("agoda", 80)];
    let second = Duration::from_secs(1);
    let mut config = Config::default();
    for (slug, max) in limits {
        let channel = Channel::default().limit(Limit::sliding_window(max.into(), second));
        config = config.channel(slug, channel.latency(Duration::from_millis(2), Duration::from_millis(40)));
    }
    let desk = Desk::bare(config).await;
    let section = |(slug, max): (&str, u32)| {
        desk.channel(slug, &format!("{{ kind = \"sliding_window\", max = {max}, per = \"1s\" }}"))
    };
    desk.configure(&limits.map(section).concat());
    let of = |(slug, max): (&'static str, u32)| {
        (0..4 * max).map(move |n| with(rate(&format!("{slug}-{n}"), n, 100), json!({ "ota": slug })))
    };
    desk.lines("rates.ndjson", limits.into_iter().flat_map(of));
    let report = desk.run("push rates.ndjson --report json").await.exits(0).report();
    let books = desk.server.books();
    assert_eq!((books.total.refused, books.total.received), (0, 4 * 180), "{report}");
    assert!(!books.is_over());
    let arrivals = desk.server.ota().arrivals();
    for (slug, _) in limits {
        let of: Vec<_> = arrivals.iter().filter(|a| &*a.channel == slug).map(|a| a.at).collect();
        let span = of.last().unwrap().since(of[0]);
        // Four windows' worth, less what the burst gives at once, plus the answers' own time.
        assert!(span < Duration::from_millis(5_200), "{slug} took {span:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_pushed_like_lines() {
    let desk = Desk::new(prompt()).await;
    desk.write(
        "rates.csv",
        "ota,property_id,room_type_code,rate_plan_code,stay_date,amount,currency,inventory,correlation_id\n\
         booking_com,prop_00000000,DLX,BAR,2047-06-01,100.50,EUR,3,m0\n\
         booking_com,prop_00000001,\"DLX\",BAR,2047-06-01,7.5,EUR,3,m1\n",
    );
    let report = desk.run("push rates.csv --report json").await.exits(0).report();
    assert_eq!(report["committed"], 2);
    assert_eq!(desk.amount(0).as_deref(), Some("100.50"));
    assert_eq!(desk.amount(1).as_deref(), Some("7.5"), "as given");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_urgent_goes_first_and_equals_in_the_order_accepted() {
    // One at a time, and nothing before all of it is in.
    let desk =
        Desk::limited(prompt(), r#"{ kind = "sliding_window", max = 20, per = "1s", burst = 1 }"#).await;
    let line = |n: u32| with(rate(&format!("m{n}"), n, 100), json!({ "priority": 300 - 100 * (n % 3) }));
    desk.lines("rates.ndjson", (0..15).map(line));
    desk.run("push").await.exits(0);
    desk.run("pause booking_com").await.exits(0);
    desk.run("push rates.ndjson").await.exits(3);
    desk.run("resume booking_com").await.exits(0);
    desk.run("push").await.exits(0);
    let order: Vec<String> =
        desk.server.ota().arrivals().iter().map(|a| a.correlation_id.clone().unwrap().into()).collect();
    let wanted: Vec<String> =
        [2, 1, 0].iter().flat_map(|r| (0..5).map(move |k| format!("m{}", 3 * k + r))).collect();
    assert_eq!(order, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_is_no_failure_and_a_report_for_people_is_printed() {
    let desk = Desk::new(prompt()).await;
    desk.lines("rates.ndjson", rates(3));
    let ran = desk.run("push rates.ndjson").await;
    assert!(ran.exits(0).out.contains("0 refused, 0 known before"), "{}", ran.out);
    for line in ["completions bash", "status", "export committed --since 1h"] {
        let mut command = desk.command(line);
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let ran = desk.ended(child).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_good_files_from_bad_ones_and_bad_configurations_and_sends_nothing() {
    let desk = Desk::new(prompt()).await;
    desk.lines("good.ndjson", rates(3));
    desk.lines("bad.ndjson", [rate("a", 1, 1), with(rate("b", 2, 1), json!({ "currency": "EURO" }))]);
    desk.run("check").await.exits(0);
    desk.run("check good.ndjson").await.exits(0);
    let ran = desk.run("check bad.ndjson").await;
    assert!(ran.exits(1).out.contains("line 2: "), "{}", ran.out);
    desk.run("check none.ndjson").await.exits(2);
    desk.configure("[chanels]\n");
    desk.run("check good.ndjson").await.exits(2);
    assert_eq!(desk.received(), 0);
    assert!(!desk.path("governor.db").exists());
}
