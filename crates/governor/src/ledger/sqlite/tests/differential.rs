//! Any run of calls is answered by the file as it is by memory.

use jiff::civil::date;
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::mutation::{Inventory, Mutation, Priority, Restriction, Value};
use ota_governor_core::name::{AccountName, BatchName, PropertyId, RatePlanCode, RoomTypeCode};
use ota_governor_core::state::{DeadReason, DeferReason};
use proptest::prelude::*;

use super::crash::NOW;
use super::*;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Attempt, Disposition, Job, Outcome};

/// One call, with numbers that pick from what there is.
#[derive(Debug, Clone)]
enum Step {
    Enqueue(Vec<(u8, u8, u8, u8, u16)>),
    Claim(u8, u8),
    Settle(u8, u8, u8),
    Cancel(u8),
    Replay(u8),
    Discard(u8),
    Recover,
    Prune,
    Reopen,
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let entry = (0..3_u8, 0..4_u8, 0..8_u8, 0..6_u8, 0..200_u16);
    prop_oneof![
        6 => proptest::collection::vec(entry, 1..4).prop_map(Step::Enqueue),
        6 => (0..3_u8, 1..4_u8).prop_map(|(lane, picks)| Step::Claim(lane, picks)),
        8 => (any::<u8>(), 0..8_u8, 0..3_u8).prop_map(|(job, what, rest)| Step::Settle(job, what, rest)),
        1 => any::<u8>().prop_map(Step::Cancel),
        2 => any::<u8>().prop_map(Step::Replay),
        1 => any::<u8>().prop_map(Step::Discard),
        1 => Just(Step::Recover),
        1 => Just(Step::Prune),
        1 => Just(Step::Reopen),
        3 => (0..20_u8).prop_map(Step::Wait),
    ]
}

fn entry(n: usize, (kind, plan, value, extra, priority): (u8, u8, u8, u8, u16)) -> Entry {
    let inventory = Inventory::try_new(u16::from(value)).unwrap();
    let value = match kind {
        0 => Value::Rate {
            amount: format!("{}.50", value + 1).parse().unwrap(),
            currency: "EUR".parse().unwrap(),
            inventory,
        },
        1 => Value::Availability { inventory },
        _ => Value::Restriction(Restriction {
            min_stay: (value & 1 > 0 || value & 6 == 0).then_some(u16::from(extra) + 1),
            stop_sell: (value & 2 > 0).then_some(true),
            closed_to_arrival: (value & 4 > 0).then_some(false),
            ..Restriction::default()
        }),
    };
    let plan = (kind != 1 || plan > 0).then(|| RatePlanCode::try_new(&format!("P{}", plan % 2)).unwrap());
    let mutation = Mutation {
        correlation_id: CorrelationId::try_new(&format!("m-{n}")).unwrap(),
        ota: ChannelName::try_new("otax").unwrap(),
        account: AccountName::default(),
        property_id: PropertyId::try_new("prop_00000001").unwrap(),
        room_type_code: RoomTypeCode::try_new("DBL").unwrap(),
        rate_plan_code: plan,
        stay_date: date(2026, 12, 24),
        value,
        priority: Priority::try_new(priority).unwrap(),
        time_zone: None,
        expires_at: None,
        sequence: (extra == 4).then_some(u64::from(priority)),
        batch: (extra == 3).then(|| BatchName::try_new("night").unwrap()),
    };
    let recipe = if extra == 2 { Recipe::Content } else { Recipe::Revision };
    let expires = (extra == 5).then(|| NOW + Duration::from_secs(u64::from(priority)));
    Entry { mutation, recipe, expires }
}

struct Pair {
    path: std::path::PathBuf,
    file: Arc<SqliteLedger>,
    memory: Arc<MemoryLedger>,
    now: Timestamp,
    count: usize,
    jobs: Vec<Job>,
}

impl Pair {
    fn lane(kind: u8) -> LaneKey {
        entry(0, (kind, 1, 1, 0, 0)).mutation.lane()
    }

    fn pick(&self, n: u8) -> Vec<MutationId> {
        let n = i64::from(n) % i64::try_from(self.count.max(1)).unwrap() + 1;
        vec![MutationId(n)]
    }

    async fn go(&mut self, step: Step) {
        let (file, memory, now) = (Arc::clone(&self.file), Arc::clone(&self.memory), self.now);
        match step {
            Step::Enqueue(values) => {
                let first = self.count;
                self.count += values.len();
                // One in eight is a repeat of an earlier id.
                let name = |at: usize| if at % 8 == 7 { at / 2 } else { at };
                let entries: Vec<_> =
                    values.into_iter().enumerate().map(|(at, v)| entry(name(first + at), v)).collect();
                let by_memory = memory.enqueue(entries.clone(), now).await.unwrap();
                assert_eq!(file.enqueue(entries, now).await.unwrap(), by_memory);
            }
            Step::Claim(lane, picks) => {
                let claim = Claim { lane: Self::lane(lane), now, picks: vec![None; usize::from(picks)] };
                let claimed = memory.claim(claim.clone()).await.unwrap();
                assert_eq!(file.claim(claim).await.unwrap(), claimed);
                self.jobs.extend(claimed.jobs);
            }
            Step::Settle(job, what, rest) => self.settle(job, what, rest).await,
            Step::Cancel(n) => {
                let batch = (n % 2 == 0).then(|| BatchName::try_new("night").unwrap());
                let one = batch.is_none().then(|| CorrelationId::try_new(&format!("m-{n}")).unwrap());
                let filter = Filter { batch, correlation_id: one, ..Filter::default() };
                let by_memory = memory.cancel(&filter, now).await.unwrap();
                assert_eq!(file.cancel(&filter, now).await.unwrap(), by_memory);
            }
            Step::Replay(n) => {
                let by_memory = memory.replay(self.pick(n), now).await.unwrap();
                assert_eq!(file.replay(self.pick(n), now).await.unwrap(), by_memory);
            }
            Step::Discard(n) => {
                let by_memory = memory.discard(self.pick(n)).await.unwrap();
                assert_eq!(file.discard(self.pick(n)).await.unwrap(), by_memory);
            }
            Step::Recover => {
                let rest = Duration::from_secs(5);
                let by_memory = memory.recover(now, rest).await.unwrap();
                assert_eq!(file.recover(now, rest).await.unwrap(), by_memory);
                self.jobs.clear();
            }
            Step::Prune => {
                let before = now - Duration::from_secs(60);
                let by_memory = memory.prune(before, Duration::ZERO).await.unwrap();
                assert_eq!(file.prune(before, Duration::ZERO).await.unwrap(), by_memory);
            }
            Step::Reopen => {
                file.close().await.unwrap();
                drop(file);
                self.file = open_as(&self.path, true).unwrap();
            }
            Step::Wait(seconds) => self.now = now + Duration::from_secs(u64::from(seconds)),
        }
        self.compare().await;
    }

    async fn settle(&mut self, job: u8, what: u8, rest: u8) {
        if self.jobs.is_empty() {
            return;
        }
        let job = self.jobs.remove(usize::from(job) % self.jobs.len());
        let now = self.now;
        let due = now + Duration::from_secs(u64::from(what));
        let disposition = match what {
            0..3 => Disposition::Committed { confirmation_id: "yes".to_owned() },
            3 => Disposition::DeadLettered { reason: DeadReason::ClientRejection },
            4 => Disposition::Returned,
            _ => Disposition::Deferred { reason: DeferReason::UnknownOutcome, due },
        };
        let attempt = (what != 4).then(|| Attempt {
            sent_at: now - Duration::from_secs(1),
            answered_at: now,
            status: (what < 7).then_some(if what == 6 { 429 } else { 200 }),
            answer: (what == 3).then(|| "no".to_owned()),
            retry_after: None,
            counted: what != 5,
        });
        let rest_until = (what > 4 && rest > 0).then(|| now + Duration::from_secs(10 * u64::from(rest)));
        let settlement = Settlement {
            lane: job.mutation.lane(),
            now,
            outcomes: vec![Outcome { id: job.id, attempt, disposition, rest_until }],
            health: None,
            holds: Vec::new(),
            lifted: Vec::new(),
        };
        let by_memory = self.memory.settle(settlement.clone()).await.unwrap();
        assert_eq!(self.file.settle(settlement).await.unwrap(), by_memory);
    }

    /// A due time that has passed says nothing, and is cleared at leisure.
    fn still_due(&self, record: Record) -> Record {
        Record { due: record.due.filter(|due| *due > self.now), ..record }
    }

    async fn compare(&self) {
        let (file, memory) = (&self.file, &self.memory);
        let all = Filter::default();
        let records = memory.list(&all, None, 1_000).await.unwrap();
        let listed = file.list(&all, None, 1_000).await.unwrap();
        let still =
            |records: &[Record]| records.iter().map(|r| self.still_due(r.clone())).collect::<Vec<_>>();
        assert_eq!(still(&listed), still(&records));
        for record in &records {
            let id = &record.mutation.correlation_id;
            let by_memory = memory.get(id).await.unwrap().map(|record| self.still_due(record));
            assert_eq!(file.get(id).await.unwrap().map(|record| self.still_due(record)), by_memory);
        }
        assert_eq!(file.past_calls(NOW).await.unwrap().len(), memory.past_calls(NOW).await.unwrap().len());
        assert_eq!(file.tallies().await.unwrap(), memory.tallies().await.unwrap());
        assert_eq!(file.lanes().await.unwrap(), memory.lanes().await.unwrap());
        for kind in 0..3 {
            let lane = Self::lane(kind);
            assert_eq!(
                file.head(&lane, self.now).await.unwrap(),
                memory.head(&lane, self.now).await.unwrap()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_answers_as_memory_does(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = dir();
            let path = dir.path().join("governor.db");
            let file = open_as(&path, true).unwrap();
            let memory = MemoryLedger::with_id(file.id());
            let mut pair = Pair { path, file, memory, now: NOW, count: 0, jobs: Vec::new() };
            for step in steps {
                pair.go(step).await;
            }
        });
    }
}
