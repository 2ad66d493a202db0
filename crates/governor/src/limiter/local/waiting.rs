//! One asker's wait in line.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::group::Group;
use super::line::Turn;
use crate::limiter::Grant;
use ota_governor_core::time::Timestamp;

/// A place in line. Dropped, it leaves the line and what was granted to it goes back.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) group: Arc<Group>,
    pub(super) lane: usize,
    pub(super) turn: Turn,
    pub(super) deadline: Option<Timestamp>,
    pub(super) told: oneshot::Receiver<Grant>,
    pub(super) over: bool,
}

impl Waiting {
    /// Waits until the turn comes, or until it is clear that it will not come in time.
    pub(super) async fn turn(mut self) -> Grant {
        let told = match self.deadline {
            None => (&mut self.told).await,
            Some(deadline) => {
                let clock = self.group.clock().clone();
                tokio::select! {
                    biased;
                    told = &mut self.told => told,
                    () = clock.sleep_until(deadline) => match self.group.give_up(self.lane, self.turn) {
                        Some(refused) => Ok(refused),
                        // The turn came at this very moment.
                        None => (&mut self.told).await,
                    },
                }
            }
        };
        self.over = true;
        // The line tells everyone in it before it lets go of them; silence is never a grant.
        told.unwrap_or_else(|_| Grant::Refused { wait: None, by: "the limiter is closed".to_owned() })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.group.leave(self.lane, self.turn);
        self.told.close();
        if let Ok(Grant::Granted(permits)) = self.told.try_recv() {
            for permit in permits {
                permit.unused();
            }
        }
    }
}
