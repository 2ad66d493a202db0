//! What every limiter keeps: one suite of checks over the [`Limiter`] trait, for any backend.
//!
//! The checks run in virtual time (a paused runtime) and ask nothing of the backend but that it tells
//! time through the [`Clock`] it is given. [`limiter_conformance!`](crate::limiter_conformance) makes one test of each.

#![expect(clippy::missing_panics_doc, reason = "a check panics where the limiter breaks a promise")]

mod fairness;
mod holds;
mod throughput;
mod waits;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::limit::{Each, Limit, Rule};
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::{AccountName, ChannelName, EndpointName, LimitName, PropertyId};
use ota_governor_core::time::Timestamp;
use tokio::task::JoinHandle;

pub use self::fairness::*;
pub use self::holds::*;
pub use self::throughput::*;
pub use self::waits::*;
use super::lanes::LaneLimits;
use super::{Ask, Grant, Limiter, Permit};
use crate::clock::Clock;

/// A kind of limiter to be checked.
#[async_trait]
pub trait Backend: Send + Sync {
    /// A limiter with full budgets.
    async fn limiter(&self, lanes: Vec<LaneLimits>, clock: Clock) -> Arc<dyn Limiter>;

    /// How often timers woke since the last limiter was made, if the backend counts it.
    fn wakeups(&self) -> Option<u64>;
}

/// How late a turn may come: the runtime's timers go by whole milliseconds.
const TICK: Duration = Duration::from_millis(2);

/// A limiter under check and its clock.
#[derive(Debug, Clone)]
struct World {
    limiter: Arc<dyn Limiter>,
    clock: Clock,
    start: Timestamp,
}

impl World {
    /// 2026-09-20T10:00:00Z, a Sunday.
    async fn new(backend: &dyn Backend, lanes: Vec<LaneLimits>) -> Self {
        let start = Timestamp::from_micros(1_789_898_400_000_000);
        let clock = Clock::starting_at(start);
        Self { limiter: backend.limiter(lanes, clock.clone()).await, clock, start }
    }

    fn elapsed(&self) -> Duration {
        self.start.until(self.clock.now())
    }

    async fn at(&self, since_start: Duration) {
        self.clock.sleep_until(self.start + since_start).await;
    }

    async fn acquire(&self, ask: Ask) -> Grant {
        self.limiter.acquire(ask).await.expect("the limiter answers")
    }

    /// Asks, and sends what is granted; when that was.
    async fn call(&self, ask: Ask) -> Duration {
        let permits = granted(self.acquire(ask).await);
        let at = self.elapsed();
        permits.into_iter().for_each(Permit::answered);
        at
    }

    /// The same in a task of its own that is surely in line when this returns.
    async fn join_line(&self, ask: Ask) -> JoinHandle<Duration> {
        let world = self.clone();
        let task = tokio::spawn(async move { world.call(ask).await });
        in_line().await;
        task
    }

    async fn used(&self, limit: &str) -> u64 {
        let rows = self.limiter.status().await.expect("the limiter answers");
        rows.iter().find(|row| row.limit.as_str() == limit).map_or(0, |row| row.used)
    }
}

/// Lets whatever was spawned reach the line.
async fn in_line() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn count(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).expect("a count in a check is not zero")
}

fn lane(endpoint: &str) -> LaneKey {
    LaneKey {
        channel: ChannelName::try_new("ota_x").expect("a slug"),
        account: AccountName::default(),
        endpoint: EndpointName::try_new(endpoint).expect("a slug"),
    }
}

fn property(name: &str) -> PropertyId {
    PropertyId::try_new(name).expect("a property")
}

fn limit(name: &str, rule: Rule) -> Limit {
    Limit { name: LimitName::try_new(name).expect("a name"), rule, each: Each::Account }
}

fn bucket(rate: u64, per: Duration, burst: u64) -> Rule {
    Rule::TokenBucket { rate: count(rate), per, burst: count(burst) }
}

fn window(max: u64, per: Duration, burst: u64) -> Rule {
    Rule::SlidingWindow { max: count(max), per, burst: count(burst) }
}

/// One lane `rates` with one limit.
fn only(rule: Rule) -> Vec<LaneLimits> {
    vec![LaneLimits::new(lane("rates"), vec![limit("only", rule)])]
}

/// For one call of a lane, whenever.
fn ask(endpoint: &str) -> Ask {
    Ask {
        lane: lane(endpoint),
        priority: Priority::default(),
        want: 1,
        cost: 1,
        properties: Vec::new(),
        max_wait: None,
    }
}

fn at_once(endpoint: &str) -> Ask {
    Ask { max_wait: Some(Duration::ZERO), ..ask(endpoint) }
}

fn of(endpoint: &str, properties: &[&str]) -> Ask {
    Ask { properties: properties.iter().map(|name| property(name)).collect(), ..ask(endpoint) }
}

fn granted(grant: Grant) -> Vec<Permit> {
    let Grant::Granted(permits) = grant else { unreachable!("expected a grant, got {grant:?}") };
    assert!(!permits.is_empty(), "a grant holds a permit");
    permits
}

fn refused(grant: Grant) -> (Option<Duration>, String) {
    let Grant::Refused { wait, by } = grant else { unreachable!("expected a refusal, got {grant:?}") };
    (wait, by)
}

fn is_at(actual: Duration, expected: Duration) {
    assert!(actual >= expected, "at {actual:?}, before {expected:?}");
    assert!(actual <= expected.saturating_add(TICK), "at {actual:?}, after {expected:?}");
}

/// Makes one test on a paused runtime of every check, against the backend that the expression makes.
#[macro_export]
macro_rules! limiter_conformance {
    ($backend:expr) => {
        $crate::limiter_conformance! { $backend =>
            a_permit_is_taken_from_all_limits_or_from_none
            first_come_is_first_served
            an_urgent_asker_waits_at_most_one_slot
            the_more_urgent_lane_of_a_shared_limit_goes_first
            a_used_up_property_never_blocks_others
            each_candidate_gets_one_before_any_gets_a_second
            an_asker_blocked_elsewhere_holds_up_only_its_own_limit
            a_turn_is_not_reckoned_behind_those_blocked_elsewhere
            an_asker_that_needs_two_busy_limits_is_not_starved
            an_unused_permit_costs_nothing
            a_dropped_asker_costs_nothing
            a_slow_call_counts_until_its_answer
            a_refusal_names_the_exact_wait
            a_turn_too_far_off_is_refused_at_once_and_takes_nothing
            a_refused_asker_holds_up_nobody
            an_asker_behind_a_slow_call_is_refused_at_its_deadline
            a_cost_that_can_never_fit_is_refused_as_such
            an_unknown_lane_is_an_error_and_no_grant
            the_outlook_names_what_binds_and_until_when
            status_tells_what_the_next_calls_get
            a_hold_is_obeyed_by_those_already_in_line
            a_hold_without_an_end_waits_until_it_is_lifted
            a_bounded_wait_is_refused_with_the_hold_in_words
            a_held_property_leaves_the_others_going
            a_hold_of_one_account_leaves_others_alone
            many_tasks_get_what_the_limits_allow_and_no_less
            a_window_is_never_over_and_never_idle
            what_is_due_together_is_granted_together
            timers_wake_about_once_per_turn
            a_fast_pace_keeps_up
        }
    };
    ($backend:expr => $($check:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $check() {
                $crate::limiter::conformance::$check(&$backend).await;
            }
        )*
    };
}
