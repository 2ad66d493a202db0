//! What can go wrong inside the store, before it is said in the words of the seam.

use std::sync::Arc;

use crate::ledger::LedgerError;

/// A statement failed, or a row does not hold what this version writes.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// A row is not what this version writes.
    #[error("the {what} of a row is damaged")]
    Damaged {
        /// Which column.
        what: &'static str,
    },
    /// The transaction that several calls were to share failed.
    #[error(transparent)]
    Shared(Arc<Fault>),
}

pub(super) type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn failed(self, doing: &'static str) -> LedgerError {
        LedgerError::Failed { doing, source: Box::new(self) }
    }
}

/// The error of a column that holds what this version never writes.
pub(super) const fn damaged(what: &'static str) -> Fault {
    Fault::Damaged { what }
}
