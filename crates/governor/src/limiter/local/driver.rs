//! The one timer of a group.

use std::sync::Weak;

use super::group::Group;

/// Sleeps until the next turn and hands it out; told when an earlier one comes up. Ends with its group.
pub(super) async fn drive(group: Weak<Group>) {
    loop {
        let Some((due, clock, sooner)) =
            group.upgrade().map(|group| (group.due(), group.clock().clone(), group.sooner()))
        else {
            return;
        };
        match due {
            None => sooner.notified().await,
            Some(at) => {
                tokio::select! {
                    () = sooner.notified() => {}
                    () = clock.sleep_until(at) => {
                        let Some(group) = group.upgrade() else { return };
                        group.wake();
                    }
                }
            }
        }
    }
}
