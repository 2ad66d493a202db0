//! When to try again: our own back-off. The wait a channel asks for is read in [`after`].

pub mod after;

use std::time::Duration;

use rand::{Rng, RngExt};

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

impl RetryPolicy {
    /// The wait after the `failures`-th failure in a row (1, 2, 3…), without jitter.
    pub fn floor(&self, failures: u32) -> Duration {
        let mut wait = self.initial;
        for _ in 1..failures {
            if wait >= self.cap {
                break;
            }
            wait = wait.saturating_mul(self.factor);
        }
        wait.min(self.cap)
    }

    /// The wait after the `failures`-th failure in a row, jitter included, never above the cap.
    pub fn wait(&self, failures: u32, chance: &mut impl Rng) -> Duration {
        let most = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX);
        let jitter = Duration::from_micros(chance.random_range(0..=most));
        self.floor(failures).saturating_add(jitter).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_cap_and_never_overflows() {
        let policy = RetryPolicy::default();
        let floors: Vec<u64> = (1..=8).map(|n| policy.floor(n).as_secs()).collect();
        assert_eq!(floors, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(policy.floor(u32::MAX), Duration::from_secs(60));
    }

    #[test]
    fn jitter_only_adds_and_never_passes_the_cap() {
        let policy = RetryPolicy::default();
        let mut chance = StdRng::seed_from_u64(7);
        for failures in 1..100 {
            let wait = policy.wait(failures, &mut chance);
            assert!(wait >= policy.floor(failures) && wait <= policy.cap);
        }
    }
}
