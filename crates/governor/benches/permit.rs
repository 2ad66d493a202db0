//! What a permit costs when nobody waits: one round of asking and answering, and the decision alone,
//! beside the check of the `governor` crate.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use futures::FutureExt as _;
use governor_peer::{Quota, RateLimiter};
use ota_governor::clock::Clock;
use ota_governor::core::lane::LaneKey;
use ota_governor::core::limit::{Budget, Each, Limit, Rule};
use ota_governor::core::mutation::Priority;
use ota_governor::core::name::{AccountName, ChannelName, EndpointName, LimitName};
use ota_governor::core::time::Timestamp;
use ota_governor::limiter::lanes::LaneLimits;
use ota_governor::limiter::local::LocalLimiter;
use ota_governor::limiter::{Ask, Grant, Limiter as _, Permit};

const PLENTY: NonZeroU64 = NonZeroU64::new(1_000_000_000).expect("not zero");
const SECOND: Duration = Duration::from_secs(1);

fn bucket() -> Rule {
    Rule::TokenBucket { rate: PLENTY, per: SECOND, burst: PLENTY }
}

fn window() -> Rule {
    Rule::SlidingWindow { max: PLENTY, per: SECOND, burst: PLENTY }
}

fn decision(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("decision");
    for (name, rule) in [("token_bucket", bucket()), ("sliding_window", window())] {
        let mut budget = Budget::new(&rule);
        let mut now = Timestamp::from_micros(0);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                now = now + Duration::from_micros(1);
                let fits = budget.try_take(black_box(now), 1);
                budget.settle(now, 1);
                fits
            });
        });
    }
    group.finish();
}

fn permit(bench: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    let _inside = runtime.enter();
    let lane = LaneKey {
        channel: ChannelName::try_new("ota_x").expect("a slug"),
        account: AccountName::default(),
        endpoint: EndpointName::try_new("rates").expect("a slug"),
    };
    let mut group = bench.benchmark_group("permit");
    for (name, rules) in [
        ("one_limit", vec![bucket()]),
        ("three_limits", vec![bucket(), window(), Rule::Concurrency { max: PLENTY }]),
    ] {
        let limits = (0u8..).zip(rules).map(|(place, rule)| Limit {
            name: LimitName::try_new(&format!("limits[{place}]")).expect("a name"),
            rule,
            each: Each::Account,
        });
        let lanes = vec![LaneLimits::new(lane.clone(), limits.collect())];
        let limiter = LocalLimiter::new(lanes, Clock::system(), Vec::new());
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let ask = Ask {
                    lane: lane.clone(),
                    priority: Priority::default(),
                    want: 1,
                    cost: 1,
                    properties: Vec::new(),
                    max_wait: None,
                };
                if let Some(Ok(Grant::Granted(permits))) = limiter.acquire(ask).now_or_never() {
                    permits.into_iter().for_each(Permit::answered);
                }
            });
        });
    }
    let peer = RateLimiter::direct(Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX));
    group.bench_function("peer_governor_check", |bench| bench.iter(|| black_box(peer.check()).is_ok()));
    group.finish();
}

criterion_group!(benches, decision, permit);
criterion_main!(benches);
