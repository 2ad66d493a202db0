//! The limiter of one process.
//!
//! Lanes that share a budget, however indirectly, form a group with one lock and one timer. Whoever
//! asks, answers or is due walks the group's line there and then; nothing polls, and the lock is never
//! held over an `await`. Budgets start full; calls of a former process are replayed into them, so that
//! a restart gives no second burst.

mod book;
mod driver;
mod group;
mod holds;
mod line;
mod pump;
mod turn;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::name::PropertyId;

use self::group::{Group, Start};
use super::lanes::{BudgetKey, LaneLimits};
use super::{Ask, Grant, LimitStatus, Limiter, LimiterError, Outlook};
use crate::clock::Clock;
use crate::config::Config;
use crate::ledger::{Hold, PastCall};

/// Gives out the permits of one process.
///
/// ```
/// # use std::{num::NonZeroU64, time::Duration};
/// # use ota_governor::clock::Clock;
/// # use ota_governor::core::limit::{Each, Limit, Rule};
/// # use ota_governor::core::{lane::LaneKey, mutation::Priority, name::*};
/// # use ota_governor::limiter::{Ask, Grant, Limiter as _, lanes::LaneLimits, local::LocalLimiter};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lane = LaneKey {
///     channel: ChannelName::try_new("booking_com")?,
///     account: AccountName::default(),
///     endpoint: EndpointName::try_new("rates")?,
/// };
/// let max = NonZeroU64::new(90).ok_or("zero")?;
/// let rule = Rule::SlidingWindow { max, per: Duration::from_secs(60), burst: NonZeroU64::MIN };
/// let limit = Limit { name: LimitName::try_new("minute")?, rule, each: Each::Account };
/// let lanes = vec![LaneLimits::new(lane.clone(), vec![limit])];
/// let limiter = LocalLimiter::new(lanes, Clock::system(), Vec::new());
///
/// let ask = Ask {
///     lane,
///     priority: Priority::default(),
///     want: 1,
///     cost: 1,
///     properties: Vec::new(),
///     max_wait: Some(Duration::ZERO),
/// };
/// let Grant::Granted(permits) = limiter.acquire(ask.clone()).await? else { return Err("full".into()) };
/// for permit in permits {
///     // … make the call, then say that it was answered.
///     permit.answered();
/// }
/// let Grant::Refused { wait: Some(wait), by } = limiter.acquire(ask).await? else { return Err("free".into()) };
/// assert!(by == "minute" && wait <= Duration::from_micros(666_667));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LocalLimiter {
    groups: Vec<Arc<Group>>,
    lanes: HashMap<LaneKey, Place>,
}

/// Where a lane is: its group, and its number there.
#[derive(Debug, Clone, Copy)]
struct Place {
    group: usize,
    lane: usize,
}

impl LocalLimiter {
    /// A limiter of these lanes; `past` are the calls made earlier that may still count.
    ///
    /// A past call without an answer counts as answered now.
    #[expect(clippy::needless_pass_by_value, reason = "every group keeps the clock")]
    pub fn new(lanes: Vec<LaneLimits>, clock: Clock, past: Vec<PastCall>) -> Arc<Self> {
        let mut places = HashMap::new();
        let mut groups = Vec::new();
        let mut past_of: HashMap<LaneKey, Vec<PastCall>> = HashMap::new();
        for call in past {
            past_of.entry(call.lane.clone()).or_default().push(call);
        }
        for members in components(lanes) {
            let group = groups.len();
            let mut calls = Vec::new();
            for (lane, limits) in members.iter().enumerate() {
                places.insert(limits.lane.clone(), Place { group, lane });
                let of_lane = past_of.remove(&limits.lane).unwrap_or_default();
                calls.extend(of_lane.into_iter().map(|call| (lane, call)));
            }
            let id = u32::try_from(group).unwrap_or(u32::MAX);
            groups.push(Group::new(Start { id, lanes: members, past: calls }, clock.clone()));
        }
        Arc::new(Self { groups, lanes: places })
    }

    /// A limiter of every lane that is configured.
    pub fn from_config(config: &Config, clock: Clock, past: Vec<PastCall>) -> Arc<Self> {
        Self::new(LaneLimits::from_config(config), clock, past)
    }

    /// How often a timer woke to look at a line: about once per grant that had to be waited for.
    pub fn wakeups(&self) -> u64 {
        self.groups.iter().map(|group| group.wakeups()).sum()
    }

    fn place(&self, lane: &LaneKey) -> Result<(&Arc<Group>, usize), LimiterError> {
        self.lanes
            .get(lane)
            .and_then(|place| Some((self.groups.get(place.group)?, place.lane)))
            .ok_or_else(|| LimiterError::UnknownLane { lane: lane.clone() })
    }
}

#[async_trait]
impl Limiter for LocalLimiter {
    async fn acquire(&self, ask: Ask) -> Result<Grant, LimiterError> {
        let (group, lane) = self.place(&ask.lane)?;
        Ok(match group.ask(lane, ask) {
            group::Answer::Now(grant) => grant,
            group::Answer::Later(waiting) => waiting.turn().await,
        })
    }

    fn set_holds(&self, holds: Vec<Hold>) {
        for group in &self.groups {
            group.set_holds(&holds);
        }
    }

    async fn outlook(
        &self,
        lane: &LaneKey,
        property: Option<&PropertyId>,
    ) -> Result<Option<Outlook>, LimiterError> {
        let (group, lane) = self.place(lane)?;
        Ok(group.outlook(lane, property))
    }

    async fn status(&self) -> Result<Vec<LimitStatus>, LimiterError> {
        Ok(self.groups.iter().flat_map(|group| group.status()).collect())
    }
}

/// Lanes that share budgets, directly or through others, together; in the order given.
fn components(lanes: Vec<LaneLimits>) -> Vec<Vec<LaneLimits>> {
    let mut home: BTreeMap<BudgetKey, usize> = BTreeMap::new();
    let mut components: BTreeMap<usize, Vec<LaneLimits>> = BTreeMap::new();
    for (fresh, lane) in lanes.into_iter().enumerate() {
        let joined: Vec<usize> = lane.limits.iter().filter_map(|(_, key)| home.get(key).copied()).collect();
        let target = joined.iter().copied().min().unwrap_or(fresh);
        for other in joined {
            if other != target
                && let Some(moved) = components.remove(&other)
            {
                for key in moved.iter().flat_map(|lane| &lane.limits).map(|(_, key)| key) {
                    home.insert(key.clone(), target);
                }
                components.entry(target).or_default().extend(moved);
            }
        }
        for (_, key) in &lane.limits {
            home.insert(key.clone(), target);
        }
        components.entry(target).or_default().push(lane);
    }
    components.into_values().collect()
}
