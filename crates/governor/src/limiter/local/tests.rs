//! The conformance suite, and what only this limiter promises.

use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::Duration;

use ota_governor_core::limit::{Each, Limit, Rule};
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::{AccountName, ChannelName, EndpointName, LimitName};
use ota_governor_core::time::Timestamp;

use super::*;
use crate::limiter::conformance::Backend;

#[derive(Default)]
struct Local {
    last: Mutex<Option<Arc<LocalLimiter>>>,
}

#[async_trait]
impl Backend for Local {
    async fn limiter(&self, lanes: Vec<LaneLimits>, clock: Clock) -> Arc<dyn Limiter> {
        let limiter = LocalLimiter::new(lanes, clock, Vec::new());
        *self.last.lock().unwrap() = Some(limiter.clone());
        limiter
    }

    fn wakeups(&self) -> Option<u64> {
        self.last.lock().unwrap().as_ref().map(|limiter| limiter.wakeups())
    }
}

crate::limiter_conformance!(Local::default());

fn lane(channel: &str, account: &str, endpoint: &str) -> LaneKey {
    LaneKey {
        channel: ChannelName::try_new(channel).unwrap(),
        account: AccountName::try_new(account).unwrap(),
        endpoint: EndpointName::try_new(endpoint).unwrap(),
    }
}

fn limit(name: &str, max: u64, per: Duration, each: Each) -> Limit {
    let max = max.try_into().unwrap();
    Limit {
        name: LimitName::try_new(name).unwrap(),
        rule: Rule::SlidingWindow { max, per, burst: max },
        each,
    }
}

fn ask(lane: &LaneKey, property: Option<PropertyId>) -> Ask {
    Ask {
        lane: lane.clone(),
        priority: Priority::default(),
        want: 1,
        cost: 1,
        properties: property.into_iter().collect(),
        max_wait: Some(Duration::ZERO),
    }
}

fn clock() -> Clock {
    Clock::starting_at(Timestamp::from_micros(1_789_898_400_000_000))
}

const MINUTE: Duration = Duration::from_secs(60);

async fn grants(limiter: &LocalLimiter, lane: &LaneKey) -> usize {
    let mut grants = 0;
    while let Grant::Granted(permits) = limiter.acquire(ask(lane, None)).await.unwrap() {
        grants += permits.len();
        permits.into_iter().for_each(crate::limiter::Permit::answered);
    }
    grants
}

#[tokio::test(start_paused = true)]
async fn a_restart_gives_no_second_burst() {
    let rates = lane("ota_x", "default", "rates");
    let clock = clock();
    let now = clock.now();
    let past = |sent: u64, answered: Option<u64>| PastCall {
        lane: rates.clone(),
        property: PropertyId::try_new("P1").unwrap(),
        sent_at: now - Duration::from_secs(sent),
        answered_at: answered.map(|answered| now - Duration::from_secs(answered)),
    };
    // One has left the window, two are in it, one was in flight when the process died.
    let calls = vec![past(70, Some(65)), past(70, Some(50)), past(20, Some(20)), past(10, None)];
    let limits = LaneLimits::new(rates.clone(), vec![limit("only", 10, MINUTE, Each::Account)]);
    let limiter = LocalLimiter::new(vec![limits], clock.clone(), calls);
    assert_eq!(grants(&limiter, &rates).await, 7);
    tokio::time::advance(Duration::from_millis(10_007)).await;
    assert_eq!(grants(&limiter, &rates).await, 1);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(grants(&limiter, &rates).await, 1);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(grants(&limiter, &rates).await, 8, "the seven, and the one whose answer was never known");
}

#[tokio::test(start_paused = true)]
async fn a_restart_under_load_gives_a_bucket_no_second_burst_and_a_young_one_loses_nothing() {
    let rates = lane("ota_x", "default", "rates");
    let clock = clock();
    let now = clock.now();
    let past = |sent: u64| PastCall {
        lane: rates.clone(),
        property: PropertyId::try_new("P1").unwrap(),
        sent_at: now - Duration::from_secs(sent),
        answered_at: Some(now - Duration::from_secs(sent)),
    };
    let (one, five) = (NonZeroU64::MIN, NonZeroU64::new(5).unwrap());
    let rule = Rule::TokenBucket { rate: one, per: Duration::from_secs(3), burst: five };
    let bucket = || Limit { rule: rule.clone(), ..limit("only", 5, MINUTE, Each::Account) };
    let restart = |calls: Vec<PastCall>| {
        LocalLimiter::new(vec![LaneLimits::new(rates.clone(), vec![bucket()])], clock.clone(), calls)
    };
    // Drained and sent at its rate ever since, for as far back as is known.
    let drained = restart((0..10).rev().map(|n| past(1 + 3 * n)).collect());
    assert_eq!(grants(&drained, &rates).await, 0);
    let young = restart(vec![past(1)]);
    assert_eq!(grants(&young, &rates).await, 4);
}

#[tokio::test(start_paused = true)]
async fn no_live_budget_of_a_property_is_forgotten_and_idle_ones_are() {
    let rates = lane("ota_x", "default", "rates");
    let limits = LaneLimits::new(rates.clone(), vec![limit("each", 1, MINUTE, Each::Property)]);
    let limiter = LocalLimiter::new(vec![limits], clock(), Vec::new());
    let property = |number: usize| Some(PropertyId::try_new(&format!("P{number}")).unwrap());
    for round in 0..2 {
        for number in 0..10_001 {
            let grant = limiter.acquire(ask(&rates, property(number))).await.unwrap();
            assert_eq!(matches!(grant, Grant::Granted(_)), round == 0, "P{number} in round {round}");
        }
    }
    assert_eq!(limiter.groups[0].kept(), 10_001);
    tokio::time::advance(Duration::from_secs(120)).await;
    for number in 20_000..41_000 {
        limiter.acquire(ask(&rates, property(number))).await.unwrap();
    }
    assert!(limiter.groups[0].kept() <= 21_000, "{}", limiter.groups[0].kept());
}

#[tokio::test(start_paused = true)]
async fn lanes_share_exactly_the_budgets_whose_keys_are_equal() {
    let named = limit("partner", 3, MINUTE, Each::Account);
    let egress = limit("line", 100, MINUTE, Each::Egress);
    let of = |channel: &str, account: &str| {
        let lane = lane(channel, account, "rates");
        let limits = [(&named, true), (&egress, false)]
            .map(|(limit, named)| (limit.clone(), BudgetKey::new(limit, &lane, "host-1", named)));
        LaneLimits { lane, limits: limits.to_vec() }
    };
    let lanes = vec![of("ota_x", "default"), of("ota_y", "default"), of("ota_x", "hotel-7")];
    let limiter = LocalLimiter::new(lanes, clock(), Vec::new());
    assert_eq!(limiter.groups.len(), 1, "joined through the named limit and the egress");
    assert_eq!(grants(&limiter, &lane("ota_x", "default", "rates")).await, 3);
    assert_eq!(grants(&limiter, &lane("ota_y", "default", "rates")).await, 0, "one budget across channels");
    assert_eq!(grants(&limiter, &lane("ota_x", "hotel-7", "rates")).await, 3, "another account's own");
    let rows = limiter.status().await.unwrap();
    let line = rows.iter().filter(|row| row.limit.as_str() == "line").map(|row| (row.used, row.lanes.len()));
    assert_eq!(line.collect::<Vec<_>>(), [(6, 2), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn lanes_that_share_nothing_are_groups_of_their_own() {
    let lanes = ["rates", "availability"].map(|endpoint| {
        LaneLimits::new(lane("ota_x", "default", endpoint), vec![limit(endpoint, 3, MINUTE, Each::Account)])
    });
    assert_eq!(LocalLimiter::new(lanes.to_vec(), clock(), Vec::new()).groups.len(), 2);
}

/// Threads ask, drop their asks midway, answer and give back, all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_permit_is_lost_or_doubled_when_askers_come_and_go_on_many_threads() {
    let rates = lane("ota_x", "default", "rates");
    let max = 4u8;
    let rule = Rule::Concurrency { max: u64::from(max).try_into().unwrap() };
    let few = Limit { name: LimitName::try_new("few").unwrap(), rule, each: Each::Account };
    let lanes = vec![LaneLimits::new(rates.clone(), vec![few])];
    let limiter = LocalLimiter::new(lanes, Clock::system(), Vec::new());
    let out = Arc::new(std::sync::atomic::AtomicU8::new(0));
    let tasks: Vec<_> = (0..16u32)
        .map(|task| {
            let (limiter, out, rates) = (limiter.clone(), out.clone(), rates.clone());
            tokio::spawn(async move {
                for round in 0..300u32 {
                    let asked = Ask { want: 2, max_wait: None, ..ask(&rates, None) };
                    let mut waiting = Box::pin(limiter.acquire(asked));
                    if (task + round) % 3 == 0 {
                        if let std::task::Poll::Ready(grant) = futures::poll!(&mut waiting) {
                            drop(grant);
                        }
                        continue;
                    }
                    let Grant::Granted(permits) = waiting.await.unwrap() else { panic!("not granted") };
                    let mine = u8::try_from(permits.len()).unwrap();
                    let before = out.fetch_add(mine, std::sync::atomic::Ordering::SeqCst);
                    assert!(before + mine <= max, "{} calls in flight", before + mine);
                    tokio::task::yield_now().await;
                    out.fetch_sub(mine, std::sync::atomic::Ordering::SeqCst);
                    for permit in permits {
                        if round % 2 == 0 { permit.answered() } else { permit.unused() }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(limiter.status().await.unwrap()[0].used, 0);
}
