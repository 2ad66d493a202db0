//! The suite every ledger passes, on files that crash.

use std::path::PathBuf;
use std::sync::Mutex;

use super::*;
use crate::ledger::conformance::Factory;

/// Files in a directory of their own; the last one is the living one.
struct Files {
    dir: TempDir,
    opened: Mutex<usize>,
}

impl Files {
    fn new() -> Self {
        Self { dir: dir(), opened: Mutex::new(0) }
    }

    /// The path before and the path from now on.
    fn next(&self) -> (PathBuf, PathBuf) {
        let mut opened = self.opened.lock().unwrap();
        *opened += 1;
        let path = |n: usize| self.dir.path().join(format!("{n}.db"));
        (path(*opened - 1), path(*opened))
    }
}

#[async_trait]
impl Factory for Files {
    async fn open(&self) -> Arc<dyn Ledger> {
        open_as(&self.next().1, true).unwrap()
    }

    /// Takes the files as they are while the ledger lives: what a kill or a power cut leaves behind.
    async fn reopen(&self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        let (before, after) = self.next();
        std::fs::copy(&before, &after).unwrap();
        std::fs::copy(before.with_extension("db-wal"), after.with_extension("db-wal")).unwrap();
        drop(ledger);
        open_as(&after, true).unwrap()
    }
}

crate::ledger_conformance!(Files::new());
