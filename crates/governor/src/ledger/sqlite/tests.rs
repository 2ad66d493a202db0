//! What the file promises beyond what every ledger does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ota_governor_core::lane::Scope;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

mod crash;
mod differential;
mod lanes;
mod suite;

fn open_as(path: &Path, dispatcher: bool) -> Result<Arc<SqliteLedger>, LedgerError> {
    SqliteLedger::open(path, OpenOptions { dispatcher, clock: Clock::system() })
}

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn rule(error: LedgerError) -> String {
    let LedgerError::Unusable { rule, .. } = error else {
        panic!("expected an unusable ledger, got {error:?}");
    };
    rule
}

fn by_hand() -> Hold {
    Hold {
        scope: Scope::Channel { channel: ChannelName::try_new("booking_com").unwrap() },
        cause: HoldCause::Manual,
        since: Timestamp::from_micros(1),
        until: None,
        detail: "paused by hand".to_owned(),
    }
}

#[tokio::test]
async fn a_second_dispatcher_is_told_who_holds_the_ledger() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let first = open_as(&path, true).unwrap();
    let Err(LedgerError::InUse { holder, .. }) = open_as(&path, true) else {
        panic!("two dispatchers on one ledger");
    };
    assert!(holder.contains(&format!("pid {}", std::process::id())), "{holder}");
    assert!(holder.contains("since 20"), "{holder}");
    let looker = open_as(&path, false).unwrap();
    assert_eq!(looker.id(), first.id());
    first.close().await.unwrap();
    open_as(&path, true).unwrap();
}

#[tokio::test]
async fn a_change_by_another_process_moves_the_marks_within_a_second() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let dispatcher = open_as(&path, true).unwrap();
    let other = open_as(&path, false).unwrap();
    let mut mark = dispatcher.lane_changes();
    mark.borrow_and_update();
    other.hold(vec![by_hand()]).await.unwrap();
    tokio::time::timeout(Duration::from_secs(1), mark.changed()).await.unwrap().unwrap();
    assert_eq!(dispatcher.holds().await.unwrap(), vec![by_hand()]);
    assert_eq!(dispatcher.lift(&by_hand().scope, None).await.unwrap(), vec![by_hand()]);
    assert_eq!(other.holds().await.unwrap(), vec![]);
}

#[test]
fn a_file_that_is_no_ledger_is_refused_with_the_rule() {
    let dir = dir();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "dear diary, ".repeat(500)).unwrap();
    assert!(rule(open_as(&text, true).unwrap_err()).contains("not a database"));
    assert!(std::fs::read_to_string(&text).unwrap().starts_with("dear diary"));

    let foreign = dir.path().join("shop.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE orders (id INTEGER)").unwrap();
    let before = std::fs::read(&foreign).unwrap();
    assert!(rule(open_as(&foreign, true).unwrap_err()).contains("another program"));
    assert_eq!(std::fs::read(&foreign).unwrap(), before, "not one byte changed, its journal mode neither");

    let short = dir.path().join("x");
    std::fs::write(&short, "x").unwrap();
    assert!(rule(open_as(&short, true).unwrap_err()).contains("not a database"));
    assert_eq!(std::fs::read_to_string(&short).unwrap(), "x");

    let nowhere = dir.path().join("missing").join("governor.db");
    assert!(rule(open_as(&nowhere, false).unwrap_err()).contains("directory must exist"));
}

#[test]
fn a_ledger_of_a_newer_program_is_left_alone() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    drop(open_as(&path, true).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let said = rule(open_as(&path, true).unwrap_err());
    assert!(said.contains("version 99") && said.contains("newer program"), "{said}");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_not_written_over() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    open_as(&path, true).unwrap().close().await.unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..4096].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    let said = rule(open_as(&path, true).unwrap_err());
    assert!(said.contains("damaged") || said.contains("cannot be read"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap()[100..4096], bytes[100..4096]);
}

#[tokio::test]
async fn a_ledger_of_the_first_version_is_brought_up_to_date() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let mut conn = Connection::open(&path).unwrap();
    let (first, _) = schema::MIGRATIONS.split_at(1);
    schema::migrate(&mut conn, &path, first).unwrap();
    assert_eq!(version(&conn), 1);
    conn.execute("INSERT INTO meta VALUES (1, 'c0ffee', 0)", []).unwrap();
    drop(conn);
    let ledger = open_as(&path, true).unwrap();
    assert_eq!(ledger.id(), "c0ffee");
    ledger.close().await.unwrap();
    let known = i64::try_from(schema::MIGRATIONS.len()).unwrap();
    assert_eq!(version(&Connection::open(&path).unwrap()), known);
}

#[test]
fn a_step_that_fails_leaves_the_file_at_the_version_before() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let mut conn = Connection::open(&path).unwrap();
    let steps =
        ["CREATE TABLE one (id INTEGER)", "CREATE TABLE two (id INTEGER); CREATE TABLE one (id INTEGER)"];
    assert!(schema::migrate(&mut conn, &path, &steps).is_err());
    assert_eq!(version(&conn), 1);
    let two: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'two'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(two, 0);
}

fn version(conn: &Connection) -> i64 {
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_closed_ledger_says_so() {
    let dir = dir();
    let ledger = open_as(&dir.path().join("governor.db"), true).unwrap();
    ledger.close().await.unwrap();
    assert!(matches!(ledger.hold(vec![by_hand()]).await, Err(LedgerError::Closed)));
    assert!(matches!(ledger.holds().await, Err(LedgerError::Closed)));
    ledger.close().await.unwrap();
}

#[tokio::test]
async fn a_wall_clock_stepped_between_two_runs_moves_no_pause() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let hour = Duration::from_secs(3600);
    let now = Clock::system().now();
    let ledger = open_as(&path, true).unwrap();
    ledger.hold(vec![Hold { until: Some(now + hour + hour), ..by_hand() }]).await.unwrap();
    ledger.close().await.unwrap();
    // As if that run had read the wall an hour later than it was: the clock has been set back since.
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE frame SET offset_us = offset_us + 3600000000", []).unwrap();
    drop(conn);
    let ledger = open_as(&path, true).unwrap();
    let until = ledger.holds().await.unwrap()[0].until.unwrap();
    // To within what reading two clocks one after the other can differ.
    let off = until.since(now + hour).max((now + hour).since(until));
    assert!(off < Duration::from_secs(1), "{off:?}");
    drop(ledger);
    let ledger = open_as(&path, true).unwrap();
    assert_eq!(ledger.holds().await.unwrap()[0].until.unwrap(), until, "no step, no move");
}
