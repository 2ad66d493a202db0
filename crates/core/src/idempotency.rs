//! Idempotency keys.

/// How a channel's idempotency keys are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recipe {
    /// Over the ledger's id, the whole content and the cell's revision.
    #[default]
    Revision,
    /// The recipe of channels that hash the price's content alone.
    Content,
}
