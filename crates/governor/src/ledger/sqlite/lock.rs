//! The dispatcher's lock: one process at a time sends from a ledger file.
//!
//! The lock is the operating system's, on a file beside the ledger, so it ends with the process that
//! holds it however that process ends. What the file says is only for people.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::clock::Clock;
use crate::ledger::LedgerError;

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(super) struct DispatcherLock {
    _file: File,
}

impl DispatcherLock {
    /// Takes the lock of this ledger file, or says who holds it.
    pub(super) fn take(ledger: &Path, clock: &Clock) -> Result<Self, LedgerError> {
        let path = lock_path(ledger);
        let unusable = |rule: String, source: std::io::Error| LedgerError::Unusable {
            ledger: ledger.display().to_string(),
            rule,
            source: Some(Box::new(source)),
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| unusable(format!("the lock file {} must be writable", path.display()), e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LedgerError::InUse {
                    ledger: ledger.display().to_string(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(e)) => {
                return Err(unusable("its file system must support locks".to_owned(), e));
            }
        }
        // The lock is what counts; a disk too full for the note must not keep the dispatcher out.
        let _ = note(&mut file, clock);
        Ok(Self { _file: file })
    }
}

fn lock_path(ledger: &Path) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn note(file: &mut File, clock: &Clock) -> std::io::Result<()> {
    let command = std::env::args().take(2).collect::<Vec<_>>().join(" ");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "this host" } else { host.trim() };
    let text = format!("pid {} on {host} ({command}) since {}", std::process::id(), clock.wall());
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(1024).read_to_string(&mut text);
    match (read, text.trim()) {
        (Ok(_), said) if !said.is_empty() => said.to_owned(),
        _ => "another process".to_owned(),
    }
}
