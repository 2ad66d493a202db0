//! The most calls in any window of a length, exactly and as they come.

use std::collections::VecDeque;

use serde::Serialize;

use crate::at::At;

/// The most calls that any trailing window held: `(until - length, until]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Worst {
    /// How many calls.
    pub calls: u64,
    /// When the window ended, which is the arrival of its last call.
    pub until: At,
}

/// Counts trailing windows of one length. Any window's content is that of the window which ends with
/// its last call, so looking at each arrival is looking everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Trailing {
    length: u64,
    times: VecDeque<u64>,
    worst: Worst,
}

impl Trailing {
    pub(crate) fn new(length: u64) -> Self {
        Self { length, times: VecDeque::new(), worst: Worst::default() }
    }

    /// Counts a call; times must not go back.
    pub(crate) fn push(&mut self, now: At) {
        let time = now.as_micros();
        while self.times.front().is_some_and(|front| front.saturating_add(self.length) <= time) {
            self.times.pop_front();
        }
        self.times.push_back(time);
        let calls = u64::try_from(self.times.len()).unwrap_or(u64::MAX);
        if calls > self.worst.calls {
            self.worst = Worst { calls, until: now };
        }
    }

    pub(crate) fn worst(&self) -> &Worst {
        &self.worst
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_worst_window_is_the_worst_of_all_windows(
            gaps in prop::collection::vec(prop_oneof![Just(0_u64), 0..8_u64, 0..200_u64], 1..80),
            length in 1..100_u64,
        ) {
            let times: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let mut trailing = Trailing::new(length);
            for time in &times {
                trailing.push(At::from_micros(*time));
            }
            // Every integer end point, not only the arrivals.
            let last = times.last().copied().unwrap();
            let most = (0..=last + length)
                .map(|end| times.iter().filter(|t| **t <= end && **t + length > end).count())
                .max()
                .unwrap();
            prop_assert_eq!(trailing.worst().calls, u64::try_from(most).unwrap());
            let until = trailing.worst().until.as_micros();
            let there = times.iter().filter(|t| **t <= until && **t + length > until).count();
            prop_assert_eq!(there, most);
        }
    }
}
