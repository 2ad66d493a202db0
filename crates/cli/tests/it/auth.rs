//! Tokens that are refused.

use ota_sim::{Auth, Token};
use serde_json::json;

use super::desk::{Desk, TOKEN, prompt, rates};

/// Has the token come from a command that counts how often it was run.
fn with_command(desk: &Desk, tokens: &str) {
    let script = format!("echo x >> runs\nn=$(wc -l < runs)\nset -- {tokens}\nshift $((n - 1))\necho $1\n");
    desk.write("token.sh", &script);
    let text = std::fs::read_to_string(desk.path("governor.toml")).unwrap();
    desk.write(
        "governor.toml",
        &text.replace(r#"{ env = "TEST_TOKEN" }"#, r#"{ command = ["sh", "token.sh"] }"#),
    );
}

fn runs(desk: &Desk) -> usize {
    std::fs::read_to_string(desk.path("runs")).unwrap().lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_asked_for_once_and_every_mutation_goes() {
    let fresh = format!("{TOKEN}-2");
    let auth = Auth::tokens([Token::new(TOKEN).after_calls(20), Token::new(&fresh)]);
    let desk = Desk::new(prompt().auth(auth)).await;
    with_command(&desk, &format!("{TOKEN} {fresh} wrong wrong"));
    desk.lines("rates.ndjson", rates(60));
    let report = desk.run("push rates.ndjson --report json").await.exits(0).report();
    assert_eq!((&report["committed"], &report["dead_lettered"]), (&json!(60), &json!(0)), "{report}");
    assert_eq!(runs(&desk), 2, "once at the start and once after the 401s");
    assert!(desk.server.books().total.unauthorized >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_stays_refused_suspends_the_account_and_everything_stays_queued() {
    let desk = Desk::new(prompt().auth(Auth::tokens([Token::new("another")]))).await;
    desk.lines("rates.ndjson", rates(60));
    let ran = desk.run("push rates.ndjson --report json --deadline 10s").await;
    let report = ran.exits(3).report();
    assert_eq!((&report["committed"], &report["dead_lettered"]), (&json!(0), &json!(0)), "{report}");
    assert_eq!(ran.err.matches("account_suspended").count(), 1, "one alert: {}", ran.err);
    assert_eq!(desk.status().await["accepted"], 60);
}
