//! The demonstration as a person sees it.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail it")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The demonstration, with all that it leaves behind under `home`.
fn demo(home: &Path) -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_ota-governor"));
    demo.arg("demo").current_dir(home).env("TMPDIR", home);
    demo
}

fn left_in(home: &Path) -> usize {
    std::fs::read_dir(home).unwrap().count()
}

#[test]
fn the_demo_ends_with_the_books_of_both_sides_in_agreement() {
    let home = tempfile::tempdir().unwrap();
    let ran = demo(home.path()).output().unwrap();
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
    line("ok     dead letters: 1 of 1 as meant: expedia-unknown (422, 1 request)");
    line("ok     urgent ones: the slowest went in ");
    assert_eq!(out.lines().last(), Some("both sides' books agree"));
    for channel in ["agoda", "booking_com", "expedia"] {
        line(channel);
    }
    assert!(told.contains("A minute is played in 6s"), "{told}");
    assert!(!told.contains("level="), "the demo tells its story without log lines: {told}");
    assert_eq!(left_in(home.path()), 0, "it leaves nothing behind");
}

#[test]
fn ctrl_c_stops_the_demo_and_it_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut running = demo(home.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(running.stderr.take().unwrap()).lines();
    told.find(|line| line.as_ref().unwrap().contains("prices in one burst")).unwrap().unwrap();
    let interrupt = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    // What it still tells is read, or it would wait for a reader.
    told.for_each(drop);
    assert_eq!(running.wait().unwrap().code(), Some(3));
    assert_eq!(left_in(home.path()), 0);
}
