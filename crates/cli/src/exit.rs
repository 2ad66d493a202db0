//! What the command's exit code says.

use std::process::ExitCode;

use ota_governor::config::ConfigFaults;
use ota_governor::ledger::LedgerError;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Done,
    /// Some were refused, dead-lettered or cancelled.
    Refused,
    /// The command line or the configuration is wrong.
    Usage,
    /// Stopped with work left.
    WorkLeft,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::WorkLeft => 3,
        })
    }
}

impl Exit {
    /// How a command ended that failed: a ledger that fails at work leaves work, the rest is for the
    /// person who called it to put right.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<LedgerError>() {
            Some(LedgerError::Failed { .. } | LedgerError::Closed) => Self::WorkLeft,
            Some(LedgerError::InUse { .. } | LedgerError::Unusable { .. }) | None => Self::Usage,
        }
    }
}

/// Whether the reader of stdout has gone, which is its right.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// The error with all its causes, one a line; faults of the configuration one a line each.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    if let Some(faults) = error.downcast_ref::<ConfigFaults>() {
        return faults.to_string();
    }
    let mut lines = vec![format!("error: {error}")];
    lines.extend(error.chain().skip(1).map(|cause| format!("  caused by: {cause}")));
    lines.join("\n")
}
