use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_789_898_400_000_000) + Duration::from_secs(seconds)
}

fn answer(status: u16, sent: u64, answered: u64, after: Option<u64>) -> Answer {
    Answer {
        verdict: Verdict::of_status(status),
        status: Some(status),
        retry_after: after.map(|wait| RetryAfter { wait: Duration::from_secs(wait), beyond_horizon: false }),
        sent_at: at(sent),
        at: at(answered),
        of_property: false,
    }
}

struct Lane {
    health: Health,
    policy: RetryPolicy,
    chance: StdRng,
}

impl Lane {
    fn new() -> Self {
        Self { health: Health::default(), policy: RetryPolicy::default(), chance: StdRng::seed_from_u64(1) }
    }

    fn hears(&mut self, answer: Answer) -> Effect {
        self.health.record(answer, &self.policy, &mut self.chance)
    }
}

#[test]
fn a_pause_ends_exactly_when_the_channel_said() {
    let mut lane = Lane::new();
    let effect = lane.hears(answer(429, 0, 1, Some(300)));
    assert_eq!(effect.pause_until, Some(at(301)));
    assert!(lane.health.probing, "the first call after it goes alone");
    assert!(lane.hears(answer(200, 301, 302, None)).recovered);
    assert!(!lane.health.probing);
}

#[test]
fn a_volley_of_refusals_is_waited_for_once() {
    let mut lane = Lane::new();
    let first = lane.hears(answer(429, 0, 1, None)).pause_until.unwrap();
    for _ in 0..3 {
        assert_eq!(lane.hears(answer(429, 0, 1, None)).pause_until, None);
    }
    assert!(first <= at(1) + Duration::from_secs(3));
    assert_eq!(lane.health.throttles, 1);
}

#[test]
fn zero_means_at_once_but_not_twice_in_a_row() {
    let mut lane = Lane::new();
    assert_eq!(lane.hears(answer(429, 0, 1, Some(0))).pause_until, Some(at(1)));
    assert_eq!(lane.hears(answer(429, 1, 2, Some(0))).pause_until, Some(at(3)));
    assert_eq!(lane.hears(answer(429, 3, 4, Some(0))).pause_until, Some(at(6)));
}

#[test]
fn five_failures_open_the_breaker_and_probes_cost_no_attempt() {
    let mut lane = Lane::new();
    for second in 0..4 {
        let effect = lane.hears(answer(503, second, second, None));
        assert!(effect.counted && effect.breaker_until.is_none());
    }
    let opened = lane.hears(answer(503, 4, 4, None));
    assert!(opened.counted && opened.breaker_until.is_some());
    let mut last = Duration::ZERO;
    for probe in 0..6u64 {
        let sent = 100 * (probe + 1);
        let effect = lane.hears(answer(503, sent, sent, None));
        assert!(!effect.counted);
        let wait = effect.breaker_until.unwrap().since(at(sent));
        assert!(
            wait >= last.min(lane.policy.cap) || wait >= lane.policy.floor(u32::try_from(probe).unwrap())
        );
        last = wait;
    }
    assert!(lane.hears(answer(200, 2000, 2000, None)).recovered);
    assert_eq!(lane.health.failures, 0);
}

#[test]
fn calls_in_flight_as_the_breaker_opens_do_not_lengthen_it() {
    let mut lane = Lane::new();
    let effects: Vec<Effect> = (0..16).map(|_| lane.hears(answer(503, 0, 1, None))).collect();
    assert_eq!(effects.iter().filter(|effect| effect.breaker_until.is_some()).count(), 1);
    assert!(effects.iter().all(|effect| effect.counted));
    assert_eq!(lane.health.failed_probes, 0);
}

#[test]
fn twenty_equal_refusals_suspend_once_and_a_commit_starts_over() {
    let mut lane = Lane::new();
    for _ in 0..19 {
        assert!(!lane.hears(answer(404, 0, 0, None)).suspend);
    }
    lane.hears(answer(200, 0, 0, None));
    let suspended = (0..25).filter(|_| lane.hears(answer(404, 0, 0, None)).suspend).count();
    assert_eq!(suspended, 1);
    lane.health.resumed();
    assert!(!lane.hears(answer(422, 0, 0, None)).suspend);
}

#[test]
fn a_throttled_property_says_nothing_about_its_lane() {
    let mut lane = Lane::new();
    for _ in 0..10 {
        let effect = lane.hears(Answer { of_property: true, ..answer(429, 0, 1, Some(60)) });
        assert_eq!(effect, Effect { counted: true, ..Effect::default() });
    }
    assert_eq!(lane.health, Health::default());
}

#[test]
fn a_refused_token_counts_for_nothing() {
    let mut lane = Lane::new();
    assert_eq!(lane.hears(answer(401, 0, 1, None)), Effect::default());
    assert_eq!(lane.health, Health::default());
}
