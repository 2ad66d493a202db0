//! The rules of order inside one stock group: what supersedes what, what waits for what, what rests.
//!
//! A *stock group* is the open (queued, in flight, deferred) mutations of one channel, account,
//! property, room type and stay date; nothing outside it can overtake anything inside it. A store
//! loads the group, asks here, and applies the answer in the same transaction:
//!
//! | when | ask |
//! |---|---|
//! | accepting | [`admit`], with the new mutation's id as its place |
//! | a claimed one is not committed | [`superseded_at_settle`]; if nothing supersedes it, [`inventory_for`] |
//! | replaying a dead letter | [`newer_than`], then [`inventory_for`], then [`promotions`] |
//! | after every change | [`arrange`]: which may go, which must wait, and for what or until when |
//!
//! Ids are given in the order of acceptance, so an older mutation has a smaller id. A mutation waits
//! only for those in flight and for older values, so a group can never wait for itself: a rate is as
//! young as the inventory it was given, and no availability waits for a waiting rate.
//!
//! ```
//! use ota_governor_core::mutation::{Kind, Priority};
//! use ota_governor_core::name::RatePlanCode;
//! use ota_governor_core::order::{Member, Standing, admit, standing};
//!
//! let rate = |id| Member {
//!     id,
//!     kind: Kind::Rate,
//!     plan: RatePlanCode::try_new("BAR").ok(),
//!     fields: 0,
//!     in_flight: false,
//!     priority: Priority::default(),
//!     place: id,
//!     due: None,
//! };
//! // The older still waits: the newer takes its place.
//! let admitted = admit(&rate(8), &[rate(5)]);
//! assert_eq!((admitted.superseded, admitted.place), (vec![5], 5));
//! // The older is on the wire: the newer waits for its answer.
//! let sent = Member { in_flight: true, ..rate(5) };
//! assert_eq!(standing(&rate(8), &[sent, rate(8)], &[]), Standing::Behind(5));
//! ```
//!
//! Beside the group a store keeps two small things per group, also after their mutations are final:
//! the [`Rest`]s, one per cell, and the [`Stock`]s, the newest accepted inventory per plan scope. When
//! it gives a rate another inventory it recomputes the idempotency key, and a rest that was of this
//! rate becomes a rest of nobody ([`Rest::of`] is `None`): what would go now is no longer what was sent.

#[cfg(test)]
mod model;

use crate::mutation::{Inventory, Kind, Mutation, Priority, Value};
use crate::name::RatePlanCode;
use crate::time::Timestamp;

/// What the rules must know of one mutation of a stock group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id: the order of acceptance.
    pub id: i64,
    /// Its kind.
    pub kind: Kind,
    /// Its rate plan; absent only for an availability that covers every plan.
    pub plan: Option<RatePlanCode>,
    /// The restriction fields that it sets, one bit each; 0 for the other kinds.
    pub fields: u8,
    /// Whether its request is being sent.
    pub in_flight: bool,
    /// How urgent it is, inherited urgency included.
    pub priority: Priority,
    /// Its place in the queue: its own id, or one taken over.
    pub place: i64,
    /// When it is due, if it is deferred.
    pub due: Option<Timestamp>,
}

impl Member {
    /// The member that a just accepted mutation is.
    pub fn new(id: i64, mutation: &Mutation) -> Self {
        Self {
            id,
            kind: mutation.kind(),
            plan: mutation.rate_plan_code.clone(),
            fields: match &mutation.value {
                Value::Restriction(restriction) => restriction.fields(),
                Value::Rate { .. } | Value::Availability { .. } => 0,
            },
            in_flight: false,
            priority: mutation.priority,
            place: id,
            due: None,
        }
    }

    fn same_cell(&self, other: &Self) -> bool {
        self.kind == other.kind && self.plan == other.plan
    }

    /// Whether this one makes the older one needless.
    fn supersedes(&self, older: &Self) -> bool {
        self.same_cell(older) && older.id < self.id && older.fields & !self.fields == 0
    }

    /// Whether the two must never be in flight together.
    fn excludes(&self, other: &Self) -> bool {
        self.id != other.id && touches((self.kind, self.plan.as_ref()), (other.kind, other.plan.as_ref()))
    }

    /// Whether `other`, while both wait, goes only after this one; `age` is the other's [`age`](Self::age).
    ///
    /// An availability need not wait for an older rate: accepting it gave that rate its inventory.
    fn stands_before(&self, other: &Self, age: i64) -> bool {
        let may_be_overtaken = self.kind == Kind::Rate && other.kind == Kind::Availability;
        self.id < age && self.excludes(other) && !may_be_overtaken
    }

    /// The id of the newest mutation whose value it carries: that of the newest open availability that
    /// covers a rate, as it has its inventory; else its own.
    ///
    /// A rate with the inventory of a new availability must not overtake a somewhat older one that still
    /// waits, which would put its inventory over the newer.
    fn age(&self, group: &[Self]) -> i64 {
        let covers = |other: &&Self| {
            self.kind == Kind::Rate && other.kind == Kind::Availability && other.excludes(self)
        };
        group.iter().filter(covers).map(|other| other.id).fold(self.id, i64::max)
    }
}

/// A cell that rests after a request of unknown outcome, which may still reach the channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    /// The cell's kind.
    pub kind: Kind,
    /// The cell's rate plan.
    pub plan: Option<RatePlanCode>,
    /// Until when.
    pub until: Timestamp,
    /// The mutation whose request it was: it alone may go again earlier, as it says the same.
    /// `None` once its inventory was rewritten.
    pub of: Option<i64>,
}

/// The newest accepted inventory of one plan scope, kept after its availability is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// The availability's rate plan; absent if it covers every plan.
    pub plan: Option<RatePlanCode>,
    /// Its inventory.
    pub inventory: Inventory,
    /// Its id.
    pub id: i64,
}

/// What accepting a mutation does to its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The older ones that become superseded by it, oldest first.
    pub superseded: Vec<i64>,
    /// The waiting rates whose inventory becomes that of the accepted availability.
    pub rewritten: Vec<i64>,
    /// The new one's place.
    pub place: i64,
    /// The new one's priority.
    pub priority: Priority,
    /// Those that stand in front of it and inherit its urgency.
    pub promoted: Vec<(i64, Priority)>,
}

/// Who takes the place of a mutation that was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Succession {
    /// The newer one.
    pub by: i64,
    /// Its place from now on.
    pub place: i64,
    /// Its priority from now on.
    pub priority: Priority,
    /// Those that stand in front of it and inherit its urgency.
    pub promoted: Vec<(i64, Priority)>,
}

/// Whether a waiting mutation may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may go now.
    Ready,
    /// It may go from then on.
    At(Timestamp),
    /// That one must settle first.
    Behind(i64),
}

/// What accepting `new` does to the open members of its group.
///
/// An older waiting one of its cell is superseded (a restriction only if `new` sets every field it
/// sets); `new` takes over the smallest place and the most urgent priority. What stands in front of
/// it inherits its priority, so that an urgent one is not stuck behind a patient one.
pub fn admit(new: &Member, group: &[Member]) -> Admitted {
    let gone: Vec<&Member> = sorted(group.iter().filter(|old| !old.in_flight && new.supersedes(old)));
    let place = gone.iter().map(|old| old.place).fold(new.place, i64::min);
    let priority = gone.iter().map(|old| old.priority).fold(new.priority, Priority::min);
    let superseded: Vec<i64> = gone.iter().map(|old| old.id).collect();
    let rewritten = sorted(group.iter().filter(|old| {
        new.kind == Kind::Availability && old.kind == Kind::Rate && !old.in_flight && new.excludes(old)
    }));
    let mut after: Vec<Member> = group.iter().filter(|old| !superseded.contains(&old.id)).cloned().collect();
    after.push(Member { priority, place, ..new.clone() });
    Admitted {
        rewritten: rewritten.iter().map(|rate| rate.id).collect(),
        promoted: promotions(&after),
        superseded,
        place,
        priority,
    }
}

/// Who supersedes `settled`, a member in flight whose outcome is not a commit; `None` if nothing does.
///
/// `group` are the open members, with or without `settled` itself.
pub fn superseded_at_settle(settled: &Member, group: &[Member]) -> Option<Succession> {
    let newer = group.iter().filter(|newer| newer.supersedes(settled)).max_by_key(|newer| newer.id)?;
    let place = newer.place.min(settled.place);
    let priority = newer.priority.min(settled.priority);
    let after: Vec<Member> = group
        .iter()
        .filter(|member| member.id != settled.id)
        .map(|member| {
            if member.id == newer.id { Member { priority, place, ..member.clone() } } else { member.clone() }
        })
        .collect();
    Some(Succession { by: newer.id, place, priority, promoted: promotions(&after) })
}

/// The members that must become more urgent, because one more urgent waits behind them.
///
/// A member in flight that would be superseded if it failed inherits nothing: it never goes again.
pub fn promotions(group: &[Member]) -> Vec<(i64, Priority)> {
    let mut youngest_first: Vec<(i64, Member)> =
        group.iter().map(|member| (member.age(group), member.clone())).collect();
    youngest_first.sort_by_key(|(age, member)| std::cmp::Reverse((*age, member.id)));
    let mut promoted = Vec::new();
    let mut seen: Vec<(i64, Member)> = Vec::with_capacity(group.len());
    for (age, mut member) in youngest_first {
        let urgent = seen
            .iter()
            .filter(|(age, younger)| member.stands_before(younger, *age) && !younger.supersedes(&member))
            .map(|(_, younger)| younger.priority)
            .min();
        if let Some(urgent) = urgent.filter(|urgent| *urgent < member.priority) {
            member.priority = urgent;
            promoted.push((member.id, urgent));
        }
        seen.push((age, member));
    }
    promoted.sort_unstable();
    promoted
}

/// The inventory that a rate must carry from now on: that of the newest availability accepted after it.
///
/// `None`: its own is the newest. Asked when a rate goes back to waiting or is replayed, as those
/// waiting were rewritten when the availability was accepted.
pub fn inventory_for(rate: &Member, stocks: &[Stock]) -> Option<Inventory> {
    stocks
        .iter()
        .filter(|stock| {
            stock.id > rate.id
                && rate.kind == Kind::Rate
                && touches((rate.kind, rate.plan.as_ref()), (Kind::Availability, stock.plan.as_ref()))
        })
        .max_by_key(|stock| stock.id)
        .map(|stock| stock.inventory)
}

/// The newest of `others` whose value a replay of `dead` would overwrite; `None`: it may go again.
///
/// `others` are all mutations of the group on record, whatever became of them, without the cancelled
/// ones. A rate is not refused for a newer availability: it goes with that one's inventory.
pub fn newer_than(dead: &Member, others: &[Member]) -> Option<i64> {
    others
        .iter()
        .filter(|newer| {
            let overlaps = dead.kind != Kind::Restriction || dead.fields & newer.fields != 0;
            dead.stands_before(newer, newer.id) && overlaps
        })
        .map(|newer| newer.id)
        .max()
}

/// Whether a waiting member may go, whatever the time is.
pub fn standing(member: &Member, group: &[Member], rests: &[Rest]) -> Standing {
    let age = member.age(group);
    let ahead = group
        .iter()
        .filter(|other| other.stands_before(member, age) || (other.in_flight && other.excludes(member)))
        .min_by_key(|other| (!other.in_flight, other.id));
    if let Some(ahead) = ahead {
        return Standing::Behind(ahead.id);
    }
    let rested = rests
        .iter()
        .filter(|rest| {
            rest.of != Some(member.id)
                && touches((rest.kind, rest.plan.as_ref()), (member.kind, member.plan.as_ref()))
        })
        .map(|rest| rest.until);
    rested.chain(member.due).max().map_or(Standing::Ready, Standing::At)
}

/// The standing of every waiting member at `now`, oldest first; those in flight are left out.
pub fn arrange(group: &[Member], rests: &[Rest], now: Timestamp) -> Vec<(i64, Standing)> {
    sorted(group.iter().filter(|member| !member.in_flight))
        .into_iter()
        .map(|member| {
            let standing = match standing(member, group, rests) {
                Standing::At(time) if time <= now => Standing::Ready,
                other @ (Standing::Ready | Standing::At(_) | Standing::Behind(_)) => other,
            };
            (member.id, standing)
        })
        .collect()
}

/// Whether two cells of one group set a value in common.
fn touches(a: (Kind, Option<&RatePlanCode>), b: (Kind, Option<&RatePlanCode>)) -> bool {
    match (a.0, b.0) {
        (Kind::Restriction, Kind::Restriction) | (Kind::Rate, Kind::Rate) => a.1 == b.1,
        (Kind::Rate | Kind::Availability, Kind::Availability) | (Kind::Availability, Kind::Rate) => {
            a.1.is_none() || b.1.is_none() || a.1 == b.1
        }
        (Kind::Restriction, Kind::Rate | Kind::Availability)
        | (Kind::Rate | Kind::Availability, Kind::Restriction) => false,
    }
}

fn sorted<'a>(members: impl Iterator<Item = &'a Member>) -> Vec<&'a Member> {
    let mut members: Vec<&Member> = members.collect();
    members.sort_by_key(|member| member.id);
    members
}
