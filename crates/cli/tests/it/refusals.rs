//! What is refused, and how it is said.

use serde_json::json;

use super::desk::{Desk, prompt, rate, rates, with};

#[tokio::test(flavor = "multi_thread")]
async fn wrong_lines_are_refused_with_line_and_every_fault_while_the_rest_goes_on() {
    let desk = Desk::new(prompt()).await;
    let wrong = with(
        rate("wrong", 1, 1),
        json!({ "amount": "-1", "currency": "eur", "inventory": 1000, "colour": "red", "stay_date": "2020-01-01" }),
    );
    let unknown = with(rate("unknown", 2, 1), json!({ "ota": "nowhere" }));
    let text = format!(
        "{}\n{wrong}\nnonsense\n\n{unknown}\n{}\n{{\"a\":\u{0}}}\n{}\n",
        rate("a", 1, 10),
        rate("b", 2, 10),
        rate("a", 1, 99),
    );
    desk.write("rates.ndjson", &text);
    let ran = desk.run("push rates.ndjson --report json").await;
    let report = ran.exits(1).report();
    assert_eq!((&report["committed"], &report["rejected"]), (&json!(2), &json!(5)), "{}", ran.err);
    let line = |n: u32| ran.err.lines().find(|line| line.contains(&format!("line={n} "))).unwrap_or_default();
    for field in ["amount", "currency", "inventory", "colour", "stay_date"] {
        assert!(line(2).contains(field), "{field}: {}", ran.err);
    }
    assert!(line(5).contains("nowhere"), "{}", ran.err);
    assert!(line(8).contains("accepted before with other content"), "{}", ran.err);
    assert!(!line(3).is_empty() && !line(7).is_empty(), "{}", ran.err);
    assert_eq!(desk.amount(1).as_deref(), Some("10.50"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_tells_all_its_faults_at_once_with_file_line_and_key() {
    let desk = Desk::new(prompt()).await;
    desk.lines("rates.ndjson", rates(1));
    desk.write(
        "governor.toml",
        "[ledger]\nurl = \"mysql:x\"\n[channels.booking_com]\nbase_url = \"ftp://x\"\n\
         token = { env = \"TEST_TOKEN\" }\ntimeuot = \"2s\"\nlimits = [{ kind = \"sliding_window\", max = 0, per = \"1s\" }]\n",
    );
    for command in ["push rates.ndjson", "check", "status"] {
        let ran = desk.run(command).await;
        assert_eq!(ran.exits(2).out, "");
        for at in ["governor.toml:2: ", "governor.toml:4: ", "governor.toml:6: ", "governor.toml:7: "] {
            assert!(ran.err.lines().any(|line| line.contains(at)), "{command} {at}\n{}", ran.err);
        }
        for key in ["ledger.url", "base_url", "timeuot", "max"] {
            assert!(ran.err.contains(key), "{key}: {}", ran.err);
        }
    }
    assert!(!desk.path("governor.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_exits_2_before_anything_is_sent() {
    let desk = Desk::new(prompt()).await;
    desk.lines("rates.ndjson", rates(1));
    let child = desk.command("push rates.ndjson").env_remove("TEST_TOKEN").spawn().unwrap();
    let ran = desk.ended(child).await;
    assert!(ran.exits(2).err.contains("TEST_TOKEN is not set"), "{}", ran.err);
    let ran = desk.run("push none.ndjson").await;
    assert!(ran.exits(2).err.contains("none.ndjson"), "{}", ran.err);
    // A directory can be opened and not read.
    let ran = desk.run("push .").await;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    let ran = desk.run("--config none.toml push rates.ndjson").await;
    assert!(ran.exits(2).err.contains("none.toml"), "{}", ran.err);
    for line in ["push rates.ndjson --deadline soon", "pish", "pause UPPER/CASE/x", "explain"] {
        desk.run(line).await.exits(2);
    }
    assert_eq!(desk.received(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_ledger_is_left_alone() {
    let desk = Desk::new(prompt()).await;
    desk.lines("rates.ndjson", rates(1));
    for bytes in ["not a database at all, and long enough to be read as one".repeat(200), "x".to_owned()] {
        desk.write("governor.db", &bytes);
        for command in ["push rates.ndjson", "status"] {
            let ran = desk.run(command).await;
            assert!(ran.exits(2).err.contains("governor.db"), "{command}: {}", ran.err);
        }
        assert_eq!(std::fs::read_to_string(desk.path("governor.db")).unwrap(), bytes);
    }
    assert_eq!(desk.received(), 0);
}
