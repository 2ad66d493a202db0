//! The demonstration as a person sees it.

use std::process::Command;

#[test]
fn the_demo_ends_with_the_books_of_both_sides_in_agreement() {
    let home = tempfile::tempdir().unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_ota-governor"))
        .arg("demo")
        .current_dir(home.path())
        .env("TMPDIR", home.path())
        .output()
        .unwrap();
    let (out, told) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert_eq!(ran.status.code(), Some(0), "{out}\n{told}");
    let line = |begins: &str| {
        out.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("no {begins}: {out}"))
    };
    assert!(line("ok     nothing is lost: 1115 handed in = 1115 accepted").contains("1 dead-lettered"));
    line("ok     requests: ");
    line("ok     last values: stand at the channel in 934 of 934 cells");
    line("ok     over limit: never");
    line("ok     Retry-After: asked for by ");
    line("ok     dead letters: expedia-unknown (422, 1 tries)");
    line("ok     urgent ones: passed the backlog");
    assert_eq!(out.lines().last(), Some("both sides' books agree"));
    for channel in ["agoda", "booking_com", "expedia"] {
        line(channel);
    }
    assert!(told.contains("A minute is played in 6s"), "{told}");
    assert!(!told.contains("level="), "the demo tells its story without log lines: {told}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "it leaves nothing behind");
}
