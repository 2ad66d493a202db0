//! Random operations on two ledgers, every answer compared.

use std::time::Duration;

use jiff::civil::date;
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::mutation::{Kind, Mutation, Restriction, Value};
use ota_governor_core::name::{BatchName, ChannelName};
use ota_governor_core::state::{DeadReason, DeferReason, State};
use ota_governor_core::time::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::desk::{START, at, availability, lane, name, plan, priority, property, rate, restriction};
use crate::ledger::{
    Attempt, Claim, Claimed, Disposition, Entry, Filter, Hold, HoldCause, Job, Ledger, MutationId, Outcome,
    Record, Settlement,
};

/// Operations of one run.
const STEPS: u32 = 120;

/// Plays the operations of this seed on both ledgers, which must be new, and compares every answer and,
/// after each, everything they know.
///
/// Idempotency keys are compared only if the ledgers have one id, due times only while they are to come.
///
/// # Panics
/// At the first difference, with the seed and the step.
pub async fn differential(seed: u64, a: &dyn Ledger, b: &dyn Ledger) {
    let mut run = Run {
        a,
        b,
        rng: StdRng::seed_from_u64(seed),
        now: START,
        accepted: 0,
        jobs: Vec::new(),
        place: String::new(),
    };
    for step in 0..STEPS {
        run.place = format!("seed {seed}, step {step}");
        run.step().await;
        run.compare().await;
    }
}

struct Run<'a> {
    a: &'a dyn Ledger,
    b: &'a dyn Ledger,
    rng: StdRng,
    now: Timestamp,
    accepted: u32,
    jobs: Vec<Job>,
    place: String,
}

/// Asks both and compares; gives the first one's answer.
macro_rules! both {
    ($run:expr, |$ledger:ident| $call:expr) => {{
        let $ledger = $run.a;
        let from_a = $call.await.unwrap();
        let $ledger = $run.b;
        let from_b = $call.await.unwrap();
        assert_eq!(from_a, from_b, "{}: {}", $run.place, stringify!($call));
        from_a
    }};
}

impl Run<'_> {
    fn below(&mut self, bound: u32) -> u32 {
        self.rng.random_range(0..bound)
    }

    fn number(&mut self, bound: u16) -> u16 {
        self.rng.random_range(0..bound)
    }

    fn kind(&mut self) -> Kind {
        [Kind::Rate, Kind::Availability, Kind::Restriction][usize::from(self.number(3))]
    }

    fn seconds(&mut self, bound: u32) -> Duration {
        Duration::from_secs(u64::from(self.below(bound)))
    }

    fn lane(&mut self) -> LaneKey {
        let channel = ["ota_x", "ota_x", "ota_x", "ota_y"][usize::from(self.number(4))];
        LaneKey { channel: ChannelName::try_new(channel).unwrap(), ..lane(self.kind()) }
    }

    fn ids(&mut self) -> Vec<MutationId> {
        let known = self.accepted + 2;
        (0..self.below(4)).map(|_| MutationId(i64::from(self.below(known)))).collect()
    }

    async fn step(&mut self) {
        match self.below(30) {
            0..8 => self.enqueue().await,
            8..15 => self.claim().await,
            15..22 => self.settle().await,
            22 => {
                let filter = self.filter();
                both!(self, |ledger| ledger.cancel(&filter, self.now));
            }
            23 | 24 => {
                let ids = self.ids();
                both!(self, |ledger| ledger.replay(ids.clone(), self.now));
            }
            25 => {
                let ids = self.ids();
                both!(self, |ledger| ledger.discard(ids.clone()));
            }
            26 => self.keep().await,
            27 => self.hold().await,
            _ => {
                let length = self.seconds(30);
                self.now = self.now + length;
            }
        }
    }

    fn entry(&mut self) -> Entry {
        // Now and then a name that was used before.
        let fresh = self.accepted > 0 && self.below(10) > 0;
        let number = if fresh || self.accepted == 0 { self.accepted } else { self.below(self.accepted) };
        self.accepted = self.accepted.max(number + 1);
        let id = format!("m{number}");
        let of_plan = if self.below(2) == 0 { plan("BAR") } else { plan("NRF") };
        let rooms = self.number(5);
        let mutation = match self.kind() {
            Kind::Rate => rate(&id, ["100", "100.00", "80.5"][usize::from(self.number(3))], rooms),
            Kind::Availability => availability(&id, rooms),
            Kind::Restriction => {
                let fields = self.number(7) + 1;
                let rules = Restriction {
                    min_stay: (fields & 1 > 0).then_some(2),
                    max_stay: (fields & 2 > 0).then_some(9),
                    stop_sell: (fields & 4 > 0).then_some(rooms == 0),
                    ..Restriction::default()
                };
                restriction(&id, rules)
            }
        };
        let all_plans = matches!(mutation.value, Value::Availability { .. }) && self.below(2) == 0;
        let mutation = Mutation {
            rate_plan_code: if all_plans { None } else { of_plan },
            ota: self.lane().channel,
            stay_date: if self.below(6) == 0 { date(2026, 12, 25) } else { date(2026, 12, 24) },
            priority: priority(self.number(3) * 100),
            sequence: (self.below(6) == 0).then(|| u64::from(self.rng.random_range(0..9_u32))),
            batch: (self.below(4) == 0).then(|| BatchName::try_new("night").unwrap()),
            ..at(1 + self.below(2), mutation)
        };
        let recipe = if self.below(5) == 0 { Recipe::Content } else { Recipe::Revision };
        let expires = (self.below(6) == 0).then(|| self.now + self.seconds(60));
        Entry { mutation, recipe, expires }
    }

    async fn enqueue(&mut self) {
        let entries: Vec<Entry> = (0..=self.below(3)).map(|_| self.entry()).collect();
        both!(self, |ledger| ledger.enqueue(entries.clone(), self.now));
    }

    async fn claim(&mut self) {
        let picks =
            (0..=self.below(3)).map(|_| (self.below(3) == 0).then(|| property(1 + self.below(2)))).collect();
        let claim = Claim { lane: self.lane(), now: self.now, picks };
        let from_a = self.a.claim(claim.clone()).await.unwrap();
        let from_b = self.b.claim(claim).await.unwrap();
        assert_eq!(self.without_keys(from_a.clone()), self.without_keys(from_b), "{}: claim", self.place);
        self.jobs.extend(from_a.jobs);
    }

    async fn settle(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let at = self.rng.random_range(0..self.jobs.len());
        // Sometimes it stays, to be answered a second time, too late.
        let job = if self.below(8) == 0 { self.jobs[at].clone() } else { self.jobs.swap_remove(at) };
        let due = self.now + self.seconds(20);
        let reason = DeferReason::ALL[usize::from(self.number(5))];
        let disposition = match self.below(8) {
            0..2 => Disposition::Committed { confirmation_id: format!("conf-{due}") },
            2 => Disposition::Returned,
            3 => Disposition::DeadLettered { reason: DeadReason::RetryBudgetExhausted },
            4 => Disposition::DeadLettered { reason: DeadReason::ClientRejection },
            _ => Disposition::Deferred { reason, due },
        };
        let attempt = (disposition != Disposition::Returned).then(|| Attempt {
            sent_at: self.now - Duration::from_millis(100),
            answered_at: self.now,
            status: [None, Some(200), Some(429), Some(503)][usize::from(self.number(4))],
            answer: (self.below(2) == 0).then(|| "an answer".to_owned()),
            retry_after: (self.below(4) == 0).then(|| "30".to_owned()),
            counted: self.below(2) == 0,
        });
        let rest_until = (attempt.is_some() && self.below(3) == 0).then(|| self.now + self.seconds(30));
        let settlement = Settlement {
            lane: job.mutation.lane(),
            now: self.now,
            outcomes: vec![Outcome { id: job.id, attempt, disposition, rest_until }],
            health: (self.below(4) == 0).then(|| format!("{{\"failures\":{}}}", self.accepted)),
            holds: vec![],
            lifted: vec![],
        };
        both!(self, |ledger| ledger.settle(settlement.clone()));
    }

    async fn keep(&mut self) {
        match self.below(3) {
            0 => {
                let rest = self.seconds(30);
                both!(self, |ledger| ledger.recover(self.now, rest));
            }
            1 => {
                let before = self.now - self.seconds(100);
                both!(self, |ledger| ledger.prune(before, Duration::ZERO));
            }
            _ => {
                let keyed = if self.below(2) == 0 { vec![] } else { vec![self.lane()] };
                both!(self, |ledger| ledger.key_by_property(keyed.clone()));
            }
        }
    }

    async fn hold(&mut self) {
        let scope = Scope::Lane { lane: self.lane() };
        let cause = [HoldCause::Manual, HoldCause::Throttled][usize::from(self.number(2))];
        if self.below(2) == 0 {
            let cause = (self.below(2) == 0).then_some(cause);
            let sorted = |mut holds: Vec<Hold>| {
                holds.sort_by_key(|hold| hold.cause);
                holds
            };
            let from_a = sorted(self.a.lift(&scope, cause).await.unwrap());
            assert_eq!(from_a, sorted(self.b.lift(&scope, cause).await.unwrap()), "{}: lift", self.place);
        } else {
            let hold = Hold { scope, cause, since: self.now, until: None, detail: "for a test".to_owned() };
            both!(self, |ledger| ledger.hold(vec![hold.clone()]));
        }
    }

    fn filter(&mut self) -> Filter {
        let one = name(&format!("m{}", self.below(self.accepted + 1)));
        match self.below(6) {
            0 => Filter { batch: Some(BatchName::try_new("night").unwrap()), ..Filter::default() },
            1 => Filter { kind: Some(self.kind()), property_id: Some(property(2)), ..Filter::default() },
            2 => Filter { state: Some(State::Deferred), ota: Some(self.lane().channel), ..Filter::default() },
            _ => Filter { correlation_id: Some(one), ..Filter::default() },
        }
    }

    fn without_keys(&self, mut claimed: Claimed) -> Claimed {
        if self.a.id() != self.b.id() {
            claimed.jobs.iter_mut().for_each(|job| job.idempotency_key.clear());
        }
        claimed
    }

    /// A record without what may differ: keys of other ledgers, and times that have passed.
    fn comparable(&self, mut record: Record) -> Record {
        if self.a.id() != self.b.id() {
            record.idempotency_key.clear();
        }
        record.due = record.due.filter(|due| *due > self.now && record.behind.is_none());
        record
    }

    async fn records(&self, ledger: &dyn Ledger, filter: &Filter) -> Vec<Record> {
        let listed = ledger.list(filter, None, 10_000).await.unwrap();
        listed.into_iter().map(|record| self.comparable(record)).collect()
    }

    /// Compares everything the two know.
    async fn compare(&mut self) {
        let all = Filter::default();
        let records = self.records(self.a, &all).await;
        assert_eq!(records, self.records(self.b, &all).await, "{}", self.place);
        for id in records.iter().map(|record| &record.mutation.correlation_id) {
            let from_a = self.a.get(id).await.unwrap().map(|record| self.comparable(record));
            let from_b = self.b.get(id).await.unwrap().map(|record| self.comparable(record));
            assert_eq!(from_a, from_b, "{}: {id}", self.place);
        }
        let filter = self.filter();
        let from_b = self.records(self.b, &filter).await;
        assert_eq!(self.records(self.a, &filter).await, from_b, "{}: {filter:?}", self.place);
        let after = Some(MutationId(i64::from(self.below(self.accepted + 1))));
        let page = |records: Vec<Record>| records.iter().map(|record| record.id).collect::<Vec<_>>();
        let from_a = page(self.a.list(&all, after, 3).await.unwrap());
        assert_eq!(from_a, page(self.b.list(&all, after, 3).await.unwrap()), "{}: a page", self.place);
        both!(self, |ledger| ledger.tallies());
        both!(self, |ledger| ledger.lanes());
        let ids: Vec<MutationId> = records.iter().step_by(2).map(|record| record.id).collect();
        both!(self, |ledger| ledger.counts(&ids));
        let sorted = |mut holds: Vec<Hold>| {
            holds.sort_by(|a, b| (&a.scope, a.cause).cmp(&(&b.scope, b.cause)));
            holds
        };
        let from_a = sorted(self.a.holds().await.unwrap());
        assert_eq!(from_a, sorted(self.b.holds().await.unwrap()), "{}: holds", self.place);
        for kind in Kind::ALL {
            both!(self, |ledger| ledger.head(&lane(*kind), self.now));
            both!(self, |ledger| ledger.health(&lane(*kind)));
        }
    }
}
