//! The one clock.
//!
//! Wall time is read once, at the start, and carried on by the monotonic clock of `tokio::time`: a
//! clock that is stepped while the governor runs moves no limit and no due time, and a paused test
//! clock drives everything. Only "which date is it" looks at the wall again ([`Clock::wall`]).

use std::sync::Arc;
use std::time::Duration;

use ota_governor_core::time::Timestamp;
use tokio::time::Instant;

/// Tells the time; cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {
    anchor: Arc<Anchor>,
}

#[derive(Debug)]
struct Anchor {
    wall: Timestamp,
    instant: Instant,
    virtual_wall: bool,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self {
            anchor: Arc::new(Anchor { wall: system_wall(), instant: Instant::now(), virtual_wall: false }),
        }
    }

    /// A clock that starts at `wall` and moves with `tokio::time`, for tests on a paused runtime.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { anchor: Arc::new(Anchor { wall, instant: Instant::now(), virtual_wall: true }) }
    }

    /// Now: never goes back while the process lives.
    pub fn now(&self) -> Timestamp {
        self.anchor.wall + self.anchor.instant.elapsed()
    }

    /// The wall clock, steps and all: for dates, never for limits.
    pub fn wall(&self) -> Timestamp {
        if self.anchor.virtual_wall { self.now() } else { system_wall() }
    }

    /// The runtime's instant of a time.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.since(self.anchor.wall).min(Duration::from_secs(60 * 60 * 24 * 365 * 30));
        self.anchor.instant + ahead
    }

    /// Sleeps until `at`; returns at once if it has passed. Cancel safe.
    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.instant(at)).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn system_wall() -> Timestamp {
    let now = std::time::SystemTime::now();
    match now.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => Timestamp::from_micros(0) + since,
        Err(before) => Timestamp::from_micros(0) - before.duration(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_runtime_drives_the_clock() {
        let start = Timestamp::from_micros(1_789_898_400_000_000);
        let clock = Clock::starting_at(start);
        clock.sleep_until(start + Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), start + Duration::from_secs(3600));
        assert_eq!(clock.wall(), clock.now());
    }
}
