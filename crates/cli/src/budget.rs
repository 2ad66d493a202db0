//! How much of a limit's budget is used, told from the calls on record.

use std::time::Duration;

use ota_governor::config::Config;
use ota_governor::core::lane::LaneKey;
use ota_governor::core::limit::{Each, Limit, Rule};
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Ledger, PastCall};

/// Windows longer than this are not counted: it would take reading too many calls.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// A call still counts a while after it was sent: until its answer, and then for the window.
const SLOWEST: Duration = Duration::from_secs(60 * 60);

/// The calls that still count against some sliding window.
pub(crate) struct Budgets<'c> {
    config: &'c Config,
    calls: Vec<PastCall>,
    now: Timestamp,
}

impl<'c> Budgets<'c> {
    /// Reads the calls of the longest window configured.
    pub(crate) async fn read(
        config: &'c Config,
        ledger: &dyn Ledger,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let lanes = config.lanes();
        let limits = lanes.iter().filter_map(|lane| config.lane_limits(lane).ok()).flatten();
        let longest = limits.filter_map(window).max();
        let calls = match longest {
            Some(longest) => ledger.past_calls(now - longest - SLOWEST).await?,
            None => Vec::new(),
        };
        Ok(Self { config, calls, now })
    }

    /// Calls that count against a lane's limit now; `None` for limits that are not counted so.
    pub(crate) fn used(&self, lane: &LaneKey, limit: &Limit) -> Option<usize> {
        let per = window(limit)?;
        let shared = self.config.limits.contains_key(&limit.name) || limit.each == Each::Egress;
        let counts = |call: &&PastCall| {
            let same = call.lane.channel == lane.channel && call.lane.account == lane.account;
            let lists = || {
                self.config.lane_limits(&call.lane).is_ok_and(|all| all.iter().any(|l| l.name == limit.name))
            };
            let fresh = call.answered_at.is_none_or(|answered| answered + per > self.now);
            fresh && (same || shared) && lists()
        };
        Some(self.calls.iter().filter(counts).count())
    }
}

/// The window of a limit whose use the calls on record tell.
fn window(limit: &Limit) -> Option<Duration> {
    match (&limit.rule, limit.each) {
        (Rule::SlidingWindow { per, .. }, Each::Account | Each::Egress) => (*per <= LONGEST).then_some(*per),
        (
            Rule::SlidingWindow { .. }
            | Rule::TokenBucket { .. }
            | Rule::FixedWindow { .. }
            | Rule::Concurrency { .. },
            Each::Account | Each::Egress | Each::Property,
        ) => None,
    }
}
