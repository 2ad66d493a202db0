//! Where the suite works from: mutations to hand in, and a ledger with its time and its books checked.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::date;
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::{Inventory, Kind, Mutation, Priority, Restriction, Value};
use ota_governor_core::name::{
    AccountName, ChannelName, CorrelationId, EndpointName, PropertyId, RatePlanCode, RoomTypeCode,
};
use ota_governor_core::state::{DeadReason, DeferReason, State};
use ota_governor_core::time::Timestamp;

use super::Factory;
use crate::ledger::{
    Admission, Attempt, Claim, Claimed, Disposition, Entry, Filter, Job, Ledger, MutationId, Outcome, Record,
    Settled, Settlement,
};

/// 2026-09-20T10:00:00Z, when every test begins.
pub const START: Timestamp = Timestamp::from_micros(1_789_898_400_000_000);

/// A correlation id.
pub fn name(text: &str) -> CorrelationId {
    CorrelationId::try_new(text).unwrap()
}

/// A priority.
pub fn priority(number: u16) -> Priority {
    Priority::try_new(number).unwrap()
}

/// A number of rooms.
pub fn rooms(number: u16) -> Inventory {
    Inventory::try_new(number).unwrap()
}

/// A rate plan.
pub fn plan(code: &str) -> Option<RatePlanCode> {
    Some(RatePlanCode::try_new(code).unwrap())
}

/// A mutation of plan `BAR`, room `DBL`, at property 1 of `otaX` on 2026-12-24.
pub fn mutation(id: &str, value: Value) -> Mutation {
    Mutation {
        correlation_id: name(id),
        ota: ChannelName::try_new("ota_x").unwrap(),
        account: AccountName::default(),
        property_id: property(1),
        room_type_code: RoomTypeCode::try_new("DBL").unwrap(),
        rate_plan_code: plan("BAR"),
        stay_date: date(2026, 12, 24),
        value,
        priority: Priority::default(),
        time_zone: None,
        expires_at: None,
        sequence: None,
        batch: None,
    }
}

/// The property of this number.
pub fn property(number: u32) -> PropertyId {
    PropertyId::try_new(&format!("prop_{number:08x}")).unwrap()
}

/// A rate in euros.
pub fn rate(id: &str, amount: &str, inventory: u16) -> Mutation {
    let (amount, currency) = (amount.parse().unwrap(), "EUR".parse().unwrap());
    mutation(id, Value::Rate { amount, currency, inventory: rooms(inventory) })
}

/// An availability of every plan.
pub fn availability(id: &str, inventory: u16) -> Mutation {
    Mutation { rate_plan_code: None, ..mutation(id, Value::Availability { inventory: rooms(inventory) }) }
}

/// A restriction.
pub fn restriction(id: &str, rules: Restriction) -> Mutation {
    mutation(id, Value::Restriction(rules))
}

/// A restriction of the stay's length.
pub fn min_stay(id: &str, nights: u16) -> Mutation {
    restriction(id, Restriction { min_stay: Some(nights), ..Restriction::default() })
}

/// A restriction that stops the sale.
pub fn stop_sell(id: &str, stopped: bool) -> Mutation {
    restriction(id, Restriction { stop_sell: Some(stopped), ..Restriction::default() })
}

/// The same mutation at another property.
pub fn at(number: u32, mutation: Mutation) -> Mutation {
    Mutation { property_id: property(number), ..mutation }
}

/// The lane of a kind on `otaX`.
pub fn lane(kind: Kind) -> LaneKey {
    LaneKey {
        channel: ChannelName::try_new("ota_x").unwrap(),
        account: AccountName::default(),
        endpoint: EndpointName::try_new(kind.endpoint()).unwrap(),
    }
}

/// An entry that never expires.
pub fn entry(mutation: Mutation) -> Entry {
    Entry { mutation, recipe: Recipe::Revision, expires: None }
}

/// A ledger, its time, and a check of its books after every step.
pub struct Desk {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// What time it is.
    pub now: Timestamp,
}

impl Desk {
    /// A desk with a new ledger.
    pub async fn open(factory: &dyn Factory) -> Self {
        Self { ledger: factory.open().await, now: START }
    }

    /// Kills the process and starts another.
    pub async fn crash(self, factory: &dyn Factory) -> Self {
        let desk = Self { ledger: factory.reopen(self.ledger).await, now: self.now };
        desk.balance().await;
        desk
    }

    /// Lets seconds pass.
    pub fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    /// The time in so many seconds.
    pub fn later(&self, seconds: u64) -> Timestamp {
        self.now + Duration::from_secs(seconds)
    }

    /// Checks that everything ever accepted is in exactly one place.
    pub async fn balance(&self) {
        let tallies = self.ledger.tallies().await.unwrap();
        let counted: u64 = tallies.rows.iter().map(|row| row.count).sum();
        assert_eq!(tallies.accepted, counted + tallies.pruned + tallies.discarded, "{tallies:?}");
        assert!(tallies.rows.iter().all(|row| row.count > 0), "an empty row: {tallies:?}");
        let mut listed = self.ledger.list(&Filter::default(), None, 10_000).await.unwrap();
        assert_eq!(u64::try_from(listed.len()).unwrap(), counted);
        for row in &tallies.rows {
            let before = listed.len();
            listed.retain(|record| {
                let mutation = &record.mutation;
                (mutation.lane(), record.state, mutation.priority)
                    != (row.lane.clone(), row.state, row.priority)
            });
            assert_eq!(u64::try_from(before - listed.len()).unwrap(), row.count, "{row:?}");
        }
        assert_eq!(listed, vec![], "in no tally");
    }

    /// Hands in one entry.
    pub async fn enqueue(&self, entry: Entry) -> Admission {
        let mut answers = self.ledger.enqueue(vec![entry], self.now).await.unwrap();
        self.balance().await;
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    /// Hands in one mutation that must be accepted; its id and the names of those it superseded.
    pub async fn accept_over(&self, mutation: Mutation) -> (MutationId, Vec<CorrelationId>) {
        match self.enqueue(entry(mutation)).await {
            Admission::Accepted { id, superseded, .. } => (id, superseded),
            other => panic!("not accepted but {other:?}"),
        }
    }

    /// Hands in one mutation that must be accepted.
    pub async fn accept(&self, mutation: Mutation) -> MutationId {
        self.accept_over(mutation).await.0
    }

    /// Claims with these picks.
    pub async fn claim(&self, kind: Kind, picks: Vec<Option<PropertyId>>) -> Claimed {
        let claim = Claim { lane: lane(kind), now: self.now, picks };
        let claimed = self.ledger.claim(claim).await.unwrap();
        self.balance().await;
        claimed
    }

    /// Claims one mutation of a kind, if one may go.
    pub async fn next(&self, kind: Kind) -> Option<Job> {
        let mut jobs = self.claim(kind, vec![None]).await.jobs;
        assert!(jobs.len() < 2, "one pick brought {jobs:?}");
        jobs.pop()
    }

    /// Claims one mutation of a kind, which must be this one.
    pub async fn take(&self, kind: Kind, id: &str) -> Job {
        let job = self.next(kind).await;
        let job = job.unwrap_or_else(|| panic!("nothing may go where {id} should"));
        assert_eq!(job.mutation.correlation_id, name(id));
        job
    }

    /// Checks that nothing of a kind may go.
    pub async fn nothing(&self, kind: Kind) {
        let job = self.next(kind).await;
        assert!(job.is_none(), "this may not go: {job:?}");
    }

    /// An attempt that ends now with this status.
    pub fn attempt(&self, status: Option<u16>, counted: bool) -> Attempt {
        Attempt {
            sent_at: self.now - Duration::from_millis(50),
            answered_at: self.now,
            status,
            answer: status.map(|status| format!("answer {status}")),
            retry_after: None,
            counted,
        }
    }

    /// Settles one outcome.
    pub async fn settle(&self, kind: Kind, outcome: Outcome) -> Vec<Settled> {
        let settlement = Settlement {
            lane: lane(kind),
            now: self.now,
            outcomes: vec![outcome],
            health: None,
            holds: vec![],
            lifted: vec![],
        };
        let settled = self.ledger.settle(settlement).await.unwrap();
        self.balance().await;
        settled
    }

    /// Settles a job and tells its state.
    pub async fn end(&self, job: &Job, status: Option<u16>, disposition: Disposition) -> State {
        let sent = disposition != Disposition::Returned;
        let attempt = sent.then(|| self.attempt(status, true));
        let outcome = Outcome { id: job.id, attempt, disposition, rest_until: None };
        let settled = self.settle(job.mutation.kind(), outcome).await;
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0].id, job.id);
        settled[0].state
    }

    /// The channel takes it.
    pub async fn commit(&self, job: &Job) {
        let disposition = Disposition::Committed { confirmation_id: "accepted".to_owned() };
        assert_eq!(self.end(job, Some(200), disposition).await, State::Committed);
    }

    /// The channel answers 503; it is due again in so many seconds.
    pub async fn fail(&self, job: &Job, seconds: u64) -> State {
        let due = self.later(seconds);
        self.end(job, Some(503), Disposition::Deferred { reason: DeferReason::ServerError, due }).await
    }

    /// The channel refuses it for good.
    pub async fn refuse(&self, job: &Job) -> State {
        let reason = DeadReason::ClientRejection;
        self.end(job, Some(422), Disposition::DeadLettered { reason }).await
    }

    /// No answer came: due again in so many seconds, the cell rests for so many.
    pub async fn lose(&self, job: &Job, due: u64, rest: u64) -> State {
        let disposition = Disposition::Deferred { reason: DeferReason::UnknownOutcome, due: self.later(due) };
        let attempt = Some(self.attempt(None, true));
        let outcome = Outcome { id: job.id, attempt, disposition, rest_until: Some(self.later(rest)) };
        self.settle(job.mutation.kind(), outcome).await[0].state
    }

    /// What the ledger knows of a mutation.
    pub async fn record(&self, id: &str) -> Record {
        let record = self.ledger.get(&name(id)).await.unwrap();
        record.unwrap_or_else(|| panic!("{id} is not on record"))
    }

    /// Where a mutation stands.
    pub async fn state(&self, id: &str) -> State {
        self.record(id).await.state
    }
}
