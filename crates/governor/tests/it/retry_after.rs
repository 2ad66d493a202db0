//! Reading the wait that a channel asked for, and keeping to it.

use std::time::Duration;

use ota_governor::core::state::State;
use ota_sim::{Act, Channel, Config, Fault, RetryAfter};
use serde_json::{Value, json};

use crate::process::{Process, config, otax};
use crate::world::World;

/// Ten calls a second on rates.
pub(crate) const TEN_A_SECOND: &str = "[[channels.otax.endpoints.rates.limits]]\nkind = \"token_bucket\"\nrate = 10\nper = \"1s\"\nburst = 10\n";

/// A rate of its own cell.
pub(crate) fn rate(n: u64) -> Value {
    json!({
        "ota": "otax", "property_id": format!("prop_{n:08x}"), "room_type_code": "DLX",
        "rate_plan_code": "BAR", "stay_date": "2026-12-24", "amount": "120.00", "currency": "EUR",
        "inventory": 3, "correlation_id": format!("m{n}"),
    })
}

/// A channel that answers at once.
pub(crate) fn prompt() -> Channel {
    Channel::default().latency(Duration::ZERO, Duration::ZERO)
}

pub(crate) fn only(channel: Channel) -> Config {
    Config::default().channel("otax", channel)
}

fn throttle(form: RetryAfter) -> Fault {
    Fault::new(Act::Status { status: 429, retry_after: Some(form), body: None })
}

/// The time between the first call, answered 429 with this `Retry-After`, and the second.
async fn wait_after(form: RetryAfter) -> Duration {
    let world = World::near(only(prompt().fault(throttle(form).nth(1))));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept(&rate(1)).await;
    process.drain().await;
    assert_eq!(process.state("m1").await, State::Committed);
    let sent = world.sent();
    assert_eq!(sent.len(), 2);
    sent[1].at.checked_sub(sent[0].at).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_429_with_retry_after_defers_for_the_stated_time_and_not_the_computed_one() {
    let exactly = |wait: Duration, secs: u64| {
        wait >= Duration::from_secs(secs) && wait <= Duration::from_secs(secs) + Duration::from_millis(2)
    };
    assert!(exactly(wait_after(RetryAfter::Seconds(7)).await, 7));
    assert!(exactly(wait_after(RetryAfter::Seconds(300)).await, 300), "nor capped");
    assert!(exactly(wait_after(RetryAfter::Raw("1.5".to_owned())).await, 2), "rounded up");
}

#[tokio::test(start_paused = true)]
async fn a_date_is_waited_for_whatever_its_form() {
    let two_minutes = Some(Duration::from_secs(120));
    for form in [
        RetryAfter::ImfFixdate(two_minutes),
        RetryAfter::Rfc850(two_minutes),
        RetryAfter::Asctime(two_minutes),
    ] {
        let wait = wait_after(form.clone()).await;
        assert!(wait >= Duration::from_secs(120) && wait < Duration::from_secs(122), "{form:?}: {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_cannot_be_read_is_neither_zero_nor_for_ever() {
    for text in ["Sun, 31 Feb 2026 99:00:00 GMT", "soon", "", "-3", "+3"] {
        let wait = wait_after(RetryAfter::Raw(text.to_owned())).await;
        assert!(wait >= Duration::from_secs(1) && wait <= Duration::from_secs(4), "{text:?}: {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_absurd_wait_is_clamped_to_the_horizon() {
    for text in ["9999999999", "99999999999999999999999"] {
        let wait = wait_after(RetryAfter::Raw(text.to_owned())).await;
        assert!(wait.as_secs() == 24 * 60 * 60, "{text}: {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_every_call_in_flight_and_ends_at_the_pace_of_the_bucket() {
    let slow = Channel::default().latency(Duration::from_millis(50), Duration::from_millis(50));
    let fault = throttle(RetryAfter::Seconds(600)).during(Duration::ZERO, Duration::from_secs(1));
    let world = World::near(only(slow.fault(fault)));
    let process = Process::start(&world, otax(TEN_A_SECOND)).await;
    process.accept_all(&(1..=60).map(rate).collect::<Vec<_>>()).await;
    process.drain().await;
    let arrivals = world.arrivals_ms();
    assert!(arrivals.iter().all(|at| *at < 100 || *at >= 600_000), "{arrivals:?}");
    let first_second = arrivals.iter().filter(|at| (600_050..601_050).contains(*at)).count();
    assert!(first_second <= 20, "{arrivals:?}");
    assert_eq!(world.books().total.committed, 60);
    assert_eq!(world.books().total.into_pause, 0);
}

#[tokio::test(start_paused = true)]
async fn one_channels_long_pause_survives_a_restart_and_delays_no_other() {
    let two = only(prompt().fault(throttle(RetryAfter::Seconds(3600)).nth(1))).channel("otay", prompt());
    let world = World::near(two);
    let limit = |slug: &str| {
        format!(
            "[channels.{slug}]\nbase_url = \"https://{slug}.example\"\ntoken = {{ env = \"FIXED\" }}\n{}",
            TEN_A_SECOND.replace("otax", slug)
        )
    };
    let process = Process::start(&world, config(&format!("{}{}", limit("otax"), limit("otay")))).await;
    process.accept(&rate(1)).await;
    world.until(Duration::from_secs(1)).await;
    let process = process.kill().restart().await;
    process.accept(&rate(2)).await;
    let other = (11..=20).map(|n| {
        let mut rate = rate(n);
        rate["ota"] = json!("otay");
        rate
    });
    process.accept_all(&other.collect::<Vec<_>>()).await;
    world.until(Duration::from_secs(2)).await;
    assert_eq!(world.ota.books(world.at()).channels["otay"].total.committed, 10);
    process.drain().await;
    let late: Vec<u64> = world.arrivals_ms().into_iter().filter(|at| *at > 2_000).collect();
    assert!(late.len() == 2 && late.iter().all(|at| *at >= 3_600_000), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn being_throttled_uses_up_the_attempts_of_the_one_that_was_sent_only() {
    let world = World::near(only(prompt().fault(throttle(RetryAfter::Seconds(2)).times(4))));
    let process = Process::start(&world, otax(&format!("max_in_flight = 1\n{TEN_A_SECOND}"))).await;
    process.accept_all(&(1..=50).map(rate).collect::<Vec<_>>()).await;
    process.drain().await;
    assert_eq!(world.books().total.committed, 50);
    assert_eq!(world.sent_of("m1").len(), 5);
    for n in 2..=50 {
        assert_eq!(process.record(&format!("m{n}")).await.attempts, 1);
    }
}
