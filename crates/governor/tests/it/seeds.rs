//! Whole runs from one number each: limits, faults, producers and crashes by chance, and checkers that
//! know what must be true however it went.
//!
//! A seed that failed is run again with `SEED=… cargo test -p ota-governor --test it fresh`.

#[path = "seeds/check.rs"]
mod check;
#[path = "seeds/scenario.rs"]
mod scenario;

use std::time::Duration;

use ota_governor::governor::Drained;
use ota_governor::ledger::{Admission, Filter, Ledger};
use rand::RngExt;

use crate::process::Process;
use crate::world::{FARTHEST, World};
use check::Ran;
use scenario::{Op, Scenario};

/// Longer than any run needs.
const PATIENCE: Duration = Duration::from_secs(6 * 60 * 60);

/// Says which seed it was, should its run panic.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again with: SEED={} cargo test -p ota-governor --test it fresh", self.0);
        }
    }
}

/// Runs one seed; panics with everything that was not as it must be.
fn run(seed: u64) {
    let _named = Named(seed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let scenario = Scenario::from_seed(seed);
    let ran = runtime.block_on(act(&scenario));
    let faults = check::faults(&scenario, &ran);
    assert!(faults.is_empty(), "{}\n{}", faults.join("\n"), scenario.toml);
}

async fn act(scenario: &Scenario) -> Ran {
    let world = World::far(scenario.ota.clone(), scenario.seed);
    let mut process = Process::start(&world, crate::process::config(&scenario.toml)).await;
    let mut unknown = 0;
    for (at, op) in &scenario.ops {
        world.until(*at).await;
        match op {
            Op::Accept(mutations) => {
                for admission in process.accept_all(mutations).await {
                    assert!(matches!(admission, Admission::Accepted { .. }), "{admission:?}");
                }
            }
            Op::Kill { away } => {
                let killed = process.kill();
                unknown += killed.in_flight().await;
                tokio::time::sleep(*away).await;
                process = killed.restart().await;
            }
        }
    }
    let drained = tokio::time::timeout(PATIENCE, process.governor.drained()).await;
    let in_time = matches!(drained, Ok(Ok(Drained::Empty)));
    let Process { governor, ledger, .. } = process;
    governor.stop().await;
    world.quiet().await;
    let records = ledger.list(&Filter::default(), None, usize::MAX).await.unwrap();
    let tallies = ledger.tallies().await.unwrap();
    Ran { in_time, unknown, records, tallies, world }
}

/// Runs them all, also after one that failed, so that one look shows how many did.
fn run_all(seeds: std::ops::Range<u64>) {
    let failed: Vec<u64> = seeds.filter(|seed| std::panic::catch_unwind(|| run(*seed)).is_err()).collect();
    assert!(failed.is_empty(), "these seeds failed: {failed:?}");
}

// In four parts, so that every core has something to do.

#[test]
fn nothing_is_lost_reordered_or_over_a_limit_in_the_first_fifty_seeds() {
    run_all(0..50);
}

#[test]
fn nothing_is_lost_reordered_or_over_a_limit_in_the_second_fifty_seeds() {
    run_all(50..100);
}

#[test]
fn nothing_is_lost_reordered_or_over_a_limit_in_the_third_fifty_seeds() {
    run_all(100..150);
}

#[test]
fn nothing_is_lost_reordered_or_over_a_limit_in_the_fourth_fifty_seeds() {
    run_all(150..200);
}

#[test]
fn nothing_is_lost_reordered_or_over_a_limit_in_a_fresh_seed() {
    let given = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = given.unwrap_or_else(|| rand::rng().random());
    println!("again with: SEED={seed} cargo test -p ota-governor --test it fresh");
    run(seed);
}

/// Long enough for what was on its way when a process died to have arrived.
const AWAY: (Duration, Duration) = (FARTHEST, Duration::from_secs(20));
