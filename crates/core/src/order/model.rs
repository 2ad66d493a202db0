//! The rules played against a receiver, at random and exhaustively.
//!
//! Every accepted value is its own id, so the receiver can tell an older value from a newer one. A lost
//! request arrives at any moment until its rest ends, or never.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const REST: Duration = Duration::from_secs(15);
const PLANS: [&str; 2] = ["AA", "BB"];

/// What the channel holds of one thing, and which mutation said so.
type Receiver = BTreeMap<(&'static str, &'static str), i64>;

#[derive(Debug, Clone)]
struct Item {
    member: Member,
    /// The id of the mutation whose inventory it carries.
    inventory: i64,
    sent: bool,
}

#[derive(Debug, Clone)]
struct Late {
    at: Timestamp,
    item: Item,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Fail,
    Return,
    /// Lost; arrives after so many seconds, if at all.
    Lose(Option<u8>),
    Bury,
}

#[derive(Debug, Clone)]
enum Step {
    Accept { kind: Kind, plan: Option<usize>, fields: u8, priority: u16 },
    Claim(usize),
    Settle(usize, End),
    Pass(u8),
    Cancel(usize),
    Replay(usize),
}

/// A store as small as it can be.
#[derive(Debug, Default)]
struct World {
    now: Timestamp,
    last: i64,
    open: Vec<Item>,
    dead: Vec<Item>,
    record: Vec<Member>,
    cancelled: Vec<i64>,
    rests: Vec<Rest>,
    stocks: Vec<Stock>,
    late: Vec<Late>,
    receiver: Receiver,
    wanted: Receiver,
}

fn things(item: &Item) -> Vec<((&'static str, &'static str), i64)> {
    let plans: Vec<&'static str> = match &item.member.plan {
        Some(plan) => PLANS.into_iter().filter(|known| *known == plan.as_str()).collect(),
        None => PLANS.to_vec(),
    };
    let id = item.member.id;
    let of_plan = |plan: &'static str| match item.member.kind {
        Kind::Rate => vec![((plan, "price"), id), ((plan, "inventory"), item.inventory)],
        Kind::Availability => vec![((plan, "inventory"), item.inventory)],
        Kind::Restriction => [(1, "min"), (2, "max"), (4, "stop")]
            .into_iter()
            .filter(|(bit, _)| item.member.fields & bit != 0)
            .map(|(_, field)| ((plan, field), id))
            .collect(),
    };
    plans.into_iter().flat_map(of_plan).collect()
}

impl World {
    fn members(&self) -> Vec<Member> {
        self.open.iter().map(|item| item.member.clone()).collect()
    }

    fn item(&mut self, id: i64) -> &mut Item {
        self.open.iter_mut().find(|item| item.member.id == id).unwrap()
    }

    fn promote(&mut self, promoted: &[(i64, Priority)]) {
        for (id, priority) in promoted {
            let item = self.item(*id);
            assert!(*priority < item.member.priority, "a promotion makes more urgent");
            item.member.priority = *priority;
        }
    }

    fn rewrite(&mut self, id: i64, inventory: i64) {
        let item = self.item(id);
        if item.inventory != inventory {
            item.inventory = inventory;
            self.rests.iter_mut().filter(|rest| rest.of == Some(id)).for_each(|rest| rest.of = None);
        }
    }

    fn arrive(&mut self, item: &Item) {
        for (thing, value) in things(item) {
            let held = self.receiver.insert(thing, value);
            // A value taken back while a rate carried it is no value any more.
            let held = held.filter(|held| !self.cancelled.contains(held));
            assert!(held <= Some(value), "{thing:?}: {value} overwrote {held:?}, sent by {item:?}");
        }
    }

    fn accept(&mut self, kind: Kind, plan: Option<usize>, fields: u8, priority: u16) {
        self.last += 1;
        let plan = plan.map(|plan| RatePlanCode::try_new(PLANS[plan]).unwrap());
        let priority = Priority::try_new(priority).unwrap();
        let id = self.last;
        let mut member = Member { id, kind, plan, fields, in_flight: false, priority, place: id, due: None };
        if kind == Kind::Availability {
            self.stocks.retain(|stock| stock.plan != member.plan);
            let inventory = Inventory::try_new(u16::try_from(id).unwrap()).unwrap();
            self.stocks.push(Stock { plan: member.plan.clone(), inventory, id });
        }
        let admitted = admit(&member, &self.members());
        (member.place, member.priority) = (admitted.place, admitted.priority);
        self.open.retain(|item| !admitted.superseded.contains(&item.member.id));
        let item = Item { member: member.clone(), inventory: id, sent: false };
        self.wanted.extend(things(&item));
        self.record.push(member);
        self.open.push(item);
        admitted.rewritten.iter().for_each(|rate| self.rewrite(*rate, id));
        self.promote(&admitted.promoted);
    }

    fn claim(&mut self, nth: usize) {
        let ready: Vec<i64> = arrange(&self.members(), &self.rests, self.now)
            .into_iter()
            .filter(|(_, standing)| *standing == Standing::Ready)
            .map(|(id, _)| id)
            .collect();
        let Some(id) = ready.get(nth % ready.len().max(1)) else { return };
        let item = self.item(*id);
        (item.member.in_flight, item.sent) = (true, true);
    }

    fn settle(&mut self, nth: usize, end: End) {
        let flying: Vec<i64> =
            self.open.iter().filter(|item| item.member.in_flight).map(|item| item.member.id).collect();
        let Some(id) = flying.get(nth % flying.len().max(1)).copied() else { return };
        let item = self.item(id).clone();
        if end == End::Commit {
            self.arrive(&item);
            self.open.retain(|item| item.member.id != id);
            return;
        }
        if let End::Lose(arrives) = end {
            let (kind, plan) = (item.member.kind, item.member.plan.clone());
            self.rests.retain(|rest| (rest.kind, &rest.plan) != (kind, &plan));
            self.rests.push(Rest { kind, plan, until: self.now + REST, of: Some(id) });
            if let Some(seconds) = arrives {
                let at = self.now + Duration::from_secs(u64::from(seconds)).min(REST);
                self.late.push(Late { at, item: item.clone() });
            }
        }
        if let Some(heir) = superseded_at_settle(&item.member, &self.members()) {
            let newer = self.item(heir.by);
            (newer.member.place, newer.member.priority) = (heir.place, heir.priority);
            self.open.retain(|item| item.member.id != id);
            self.promote(&heir.promoted);
            return;
        }
        let due = self.now + Duration::from_secs(1);
        let waiting = self.item(id);
        waiting.member.in_flight = false;
        if end != End::Return {
            waiting.member.due = Some(due);
        }
        if let Some(inventory) = inventory_for(&item.member, &self.stocks) {
            self.rewrite(id, i64::from(inventory.get()));
        }
        if end == End::Bury {
            let dead = self.item(id).clone();
            self.open.retain(|item| item.member.id != id);
            self.dead.push(dead);
        }
    }

    fn pass(&mut self, seconds: u8) {
        self.now = self.now + Duration::from_secs(u64::from(seconds));
        self.late.sort_by_key(|late| late.at);
        while self.late.first().is_some_and(|late| late.at <= self.now) {
            let late = self.late.remove(0);
            self.arrive(&late.item);
        }
    }

    /// Takes back one that was never sent: what was sent may have arrived.
    fn cancel(&mut self, nth: usize) {
        let waiting: Vec<i64> =
            self.open.iter().filter(|item| !item.sent).map(|item| item.member.id).collect();
        let Some(id) = waiting.get(nth % waiting.len().max(1)) else { return };
        self.open.retain(|item| item.member.id != *id);
        self.cancelled.push(*id);
    }

    fn replay(&mut self, nth: usize) {
        if self.dead.is_empty() {
            return;
        }
        let mut item = self.dead.remove(nth % self.dead.len());
        let others: Vec<Member> =
            self.record.iter().filter(|other| !self.cancelled.contains(&other.id)).cloned().collect();
        if newer_than(&item.member, &others).is_some() {
            return;
        }
        item.member.due = None;
        let id = item.member.id;
        let inventory = inventory_for(&item.member, &self.stocks);
        self.open.push(item);
        if let Some(inventory) = inventory {
            self.rewrite(id, i64::from(inventory.get()));
        }
        let promoted = promotions(&self.members());
        self.promote(&promoted);
    }

    /// What must hold after every step.
    fn check(&self) {
        let members = self.members();
        for (at, a) in members.iter().enumerate() {
            for b in &members[at + 1..] {
                assert!(!(a.in_flight && b.in_flight && a.excludes(b)), "in flight together: {a:?} {b:?}");
                let needless = b.supersedes(a) && !a.in_flight;
                assert!(!needless, "{b:?} makes {a:?} needless");
            }
        }
        let arranged = arrange(&members, &self.rests, self.now);
        let flying = members.iter().any(|member| member.in_flight);
        let moving = arranged.iter().any(|(_, standing)| !matches!(standing, Standing::Behind(_)));
        assert!(members.is_empty() || flying || moving, "nothing moves: {members:?}");
        for (id, standing) in arranged {
            let Standing::Behind(ahead) = standing else { continue };
            let find = |id| members.iter().find(|member| member.id == id).unwrap();
            let (ahead, behind) = (find(ahead), find(id));
            assert!(
                ahead.in_flight || ahead.priority <= behind.priority,
                "{behind:?} stuck behind {ahead:?}"
            );
        }
        assert_eq!(promotions(&members), vec![], "urgency was not passed on");
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Accept { kind, plan, fields, priority } => self.accept(*kind, *plan, *fields, *priority),
            Step::Claim(nth) => self.claim(*nth),
            Step::Settle(nth, end) => self.settle(*nth, *end),
            Step::Pass(seconds) => self.pass(*seconds),
            Step::Cancel(nth) => self.cancel(*nth),
            Step::Replay(nth) => self.replay(*nth),
        }
        self.check();
    }

    /// Lets everything go, the channel taking all of it.
    fn drain(&mut self) {
        let mut rounds = 0;
        while !self.open.is_empty() || !self.late.is_empty() {
            self.claim(0);
            self.check();
            self.settle(0, End::Commit);
            self.check();
            self.pass(1);
            rounds += 1;
            assert!(rounds < 1_000, "never done: {:?}", self.open);
        }
    }
}

fn play(steps: &[Step]) -> World {
    let mut world = World::default();
    for step in steps {
        world.step(step);
    }
    world.drain();
    let lossless = |step: &Step| !matches!(step, Step::Cancel(_) | Step::Settle(_, End::Bury));
    if steps.iter().all(lossless) {
        assert_eq!(world.receiver, world.wanted, "the newest value of each stands at the channel");
    }
    world
}

fn accept() -> impl Strategy<Value = Step> {
    let kinds = prop_oneof![
        (0..2_usize).prop_map(|plan| (Kind::Rate, Some(plan), 0)),
        proptest::option::of(0..2_usize).prop_map(|plan| (Kind::Availability, plan, 0)),
        (0..2_usize, 1..8_u8).prop_map(|(plan, fields)| (Kind::Restriction, Some(plan), fields)),
    ];
    (kinds, 0..4_u16).prop_map(|((kind, plan, fields), priority)| Step::Accept {
        kind,
        plan,
        fields,
        priority,
    })
}

fn settle(ends: impl Strategy<Value = End>) -> impl Strategy<Value = Step> {
    (0..4_usize, ends).prop_map(|(nth, end)| Step::Settle(nth, end))
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Commit),
        Just(End::Fail),
        Just(End::Return),
        proptest::option::of(0..16_u8).prop_map(End::Lose),
    ]
}

fn moves() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_usize).prop_map(Step::Claim),
        1 => (0..20_u8).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_newest_value_of_every_cell_ends_at_the_channel(
        steps in proptest::collection::vec(prop_oneof![accept(), settle(end()), moves()], 1..60)
    ) {
        play(&steps);
    }

    #[test]
    fn no_replay_and_no_cancel_puts_an_older_value_back(
        steps in proptest::collection::vec(prop_oneof![
            3 => accept(),
            3 => settle(prop_oneof![end(), Just(End::Bury)]),
            3 => moves(),
            1 => (0..4_usize).prop_map(Step::Cancel),
            1 => (0..4_usize).prop_map(Step::Replay),
        ], 1..60)
    ) {
        play(&steps);
    }
}

/// every sequence of five steps over what one room can meet.
#[test]
fn every_short_story_ends_with_the_newest_value() {
    let accept = |kind, plan, fields| Step::Accept { kind, plan, fields, priority: 1 };
    let alphabet = [
        accept(Kind::Rate, Some(0), 0),
        accept(Kind::Availability, None, 0),
        accept(Kind::Availability, Some(0), 0),
        Step::Claim(0),
        Step::Claim(1),
        Step::Settle(0, End::Fail),
        Step::Settle(0, End::Lose(Some(9))),
    ];
    let count = alphabet.len();
    for story in 0..count.pow(5) {
        let steps: Vec<Step> = (0_u32..5).map(|at| alphabet[story / count.pow(at) % count].clone()).collect();
        play(&steps);
    }
}
