//! The file: how it is opened, and how an older one is brought up to date.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ota_governor_core::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};
use uuid::Uuid;

use crate::ledger::LedgerError;

/// Marks a file as a ledger of this program: "OTAG".
const APPLICATION_ID: i64 = 0x4F54_4147;

/// The steps from an empty file to what this version reads; `user_version` counts those done.
pub(super) const MIGRATIONS: &[&str] =
    &[include_str!("../migrations/0001_ledger.sql"), include_str!("../migrations/0002_frame.sql")];

/// How long a statement waits for another process's short transaction.
const BUSY: Duration = Duration::from_secs(5);

/// Statements kept prepared per connection.
const STATEMENTS: usize = 96;

/// Opens the connection that writes, migrates the file, and tells the ledger's id.
pub(super) fn open_writer(path: &Path, now: Timestamp) -> Result<(Connection, String), LedgerError> {
    let said = |e| unusable(path, e);
    is_database(path)?;
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    // Before the first change: a file that is somebody else's stays as it is, its journal mode too.
    // In one snapshot: another process may be making the ledger at this moment.
    let looking = conn.transaction().map_err(said)?;
    is_ours(&looking, path)?;
    drop(looking);
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(said)?;
    if mode != "wal" {
        return Err(refused(
            path,
            format!("its file system must allow a write-ahead log, journal mode is {mode}"),
        ));
    }
    // FULL: "accepted" is said only of what survives a power cut.
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 16000; PRAGMA cache_size = -32768;",
    )
    .map_err(said)?;
    migrate(&mut conn, path, MIGRATIONS)?;
    let id = identify(&conn, now).map_err(said)?;
    Ok((conn, id))
}

/// Opens a connection that only reads a file that `open_writer` has opened before.
pub(super) fn open_reader(path: &Path) -> Result<Connection, LedgerError> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.execute_batch("PRAGMA query_only = 1; PRAGMA cache_size = -8192;").map_err(|e| unusable(path, e))?;
    Ok(conn)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, LedgerError> {
    let said = |e| unusable(path, e);
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(said)?;
    conn.busy_timeout(BUSY).map_err(said)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.execute_batch("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;").map_err(said)?;
    Ok(conn)
}

/// Runs the steps that the file has not seen, each in its own transaction.
pub(super) fn migrate(conn: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), LedgerError> {
    let said = |e| unusable(path, e);
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    loop {
        // Immediate: two processes that open an old file at once take turns, and the second finds it done.
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(said)?;
        let version = is_ours(&tx, path)?;
        if version > known {
            return Err(refused(
                path,
                format!(
                    "its schema is version {version}, this program reads up to {known}: use a newer program"
                ),
            ));
        }
        let Some(step) = usize::try_from(version).ok().and_then(|n| steps.get(n)) else {
            return Ok(());
        };
        tx.execute_batch(step).map_err(said)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(said)?;
        tx.pragma_update(None, "user_version", version + 1).map_err(said)?;
        tx.commit().map_err(said)?;
    }
}

/// Refuses a file that does not begin as a database: the library takes a file shorter than a page for
/// an empty one, and would write over it.
fn is_database(path: &Path) -> Result<(), LedgerError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    // A journal puts back what a crash has left of the first page.
    if Path::new(&journal).exists() {
        return Ok(());
    }
    let mut head = Vec::new();
    // What cannot be read here is told when it is opened.
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
    if read.is_err() || head.is_empty() || head == MAGIC {
        return Ok(());
    }
    Err(refused(path, "it must be a ledger, this file is not a database".to_owned()))
}

/// Refuses a database of another program; the version of the schema.
fn is_ours(conn: &Connection, path: &Path) -> Result<i64, LedgerError> {
    let said = |e| unusable(path, e);
    let version = pragma(conn, "user_version").map_err(said)?;
    let owner = pragma(conn, "application_id").map_err(said)?;
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(said)?;
    if owner != APPLICATION_ID && (tables > 0 || version != 0) {
        return Err(refused(path, "it must be a ledger, this is a database of another program".to_owned()));
    }
    Ok(version)
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}

fn identify(conn: &Connection, now: Timestamp) -> rusqlite::Result<String> {
    conn.execute(
        "INSERT INTO meta (id, ledger_id, created_us) VALUES (1, ?1, ?2) ON CONFLICT DO NOTHING",
        (Uuid::new_v4().simple().to_string(), now.as_micros()),
    )?;
    conn.query_row("SELECT ledger_id FROM meta WHERE id = 1", [], |row| row.get(0))
        .optional()?
        .ok_or(rusqlite::Error::QueryReturnedNoRows)
}

fn refused(path: &Path, rule: String) -> LedgerError {
    LedgerError::Unusable { ledger: path.display().to_string(), rule, source: None }
}

/// Says what a failure to open means for the person at the keyboard.
pub(super) fn unusable(path: &Path, error: rusqlite::Error) -> LedgerError {
    let rule = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "it must be a ledger, this file is not a database",
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged, restore it from a backup",
        Some(ErrorCode::CannotOpen) => "its directory must exist and be writable",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "the file and its directory must be writable by this user"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process keeps it locked, wait until that has ended"
        }
        Some(ErrorCode::DiskFull) => "the disk is full",
        Some(_) | None => "the file cannot be read as a ledger",
    };
    LedgerError::Unusable {
        ledger: path.display().to_string(),
        rule: rule.to_owned(),
        source: Some(Box::new(error)),
    }
}
