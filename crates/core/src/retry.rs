//! When to try again: back-off, and the wait a channel asks for.

use std::time::Duration;

/// How an endpoint's failed mutations are tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first wait.
    pub initial: Duration,
    /// What each further wait is multiplied by.
    pub factor: u32,
    /// At most so much is added at random.
    pub jitter: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// Attempts before a mutation is dead-lettered.
    pub max_attempts: u32,
    /// The longest `Retry-After` that is obeyed as it stands.
    pub retry_after_horizon: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            factor: 2,
            jitter: Duration::from_secs(2),
            cap: Duration::from_secs(60),
            max_attempts: 5,
            retry_after_horizon: Duration::from_secs(24 * 60 * 60),
        }
    }
}
