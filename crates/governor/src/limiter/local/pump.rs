//! Who of the line may go now, and when to look again.

use std::collections::HashSet;

use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;

use super::book::Book;
use super::line::{Lane, Turn};

/// Budgets that an earlier asker waits for: nobody behind may overtake on them, on others anybody may.
#[derive(Debug, Default)]
pub(super) struct Marks {
    whole: Vec<usize>,
    by_property: HashSet<(usize, Option<PropertyId>)>,
}

impl Marks {
    fn hold(&self, number: usize, keyed: bool, property: Option<&PropertyId>) -> bool {
        if keyed {
            self.by_property.contains(&(number, property.cloned()))
        } else {
            self.whole.contains(&number)
        }
    }

    fn add(&mut self, number: usize, keyed: bool, property: Option<&PropertyId>) {
        if keyed {
            self.by_property.insert((number, property.cloned()));
        } else {
            self.whole.push(number);
        }
    }
}

/// What becomes of one call now.
#[derive(Debug)]
pub(super) enum Decision {
    /// It fits, for this property.
    Fits(Option<PropertyId>),
    /// The lane as a whole has to wait; until then, if time alone can help.
    LaneWaits(Option<Timestamp>),
    /// The lane could go, but none of these properties.
    PropertiesWait(Option<Timestamp>),
}

/// The walk's result: places with the properties granted to each, and when to look again.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) granted: Vec<(usize, Turn, Vec<Option<PropertyId>>)>,
    pub(super) look_again: Option<Timestamp>,
}

impl Round {
    fn look_at(&mut self, at: Option<Timestamp>) {
        self.look_again = match (self.look_again, at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Walks the line in order and takes from the book what fits.
pub(super) fn pump(lanes: &[Lane], book: &mut Book, now: Timestamp) -> Round {
    let mut round = Round::default();
    let mut marks = Marks::default();
    let mut heads: Vec<(usize, Turn)> =
        lanes.iter().enumerate().filter_map(|(number, lane)| Some((number, lane.next(None)?))).collect();
    while let Some(first) = (0..heads.len()).min_by_key(|head| heads.get(*head).map(|(_, turn)| *turn)) {
        let (number, turn) = heads.swap_remove(first);
        let Some(lane) = lanes.get(number) else { continue };
        let Some(waiter) = lane.get(turn) else { continue };
        let taken = take_up_to(lane, book, waiter.want, &waiter.properties, waiter.cost, now, &mut marks);
        let lane_goes_on = match taken {
            Ok(properties) => {
                round.granted.push((number, turn, properties));
                true
            }
            Err(Decision::LaneWaits(at)) => {
                round.look_at(at);
                false
            }
            Err(Decision::PropertiesWait(at)) => {
                round.look_at(at);
                true
            }
            Err(Decision::Fits(_)) => true,
        };
        if lane_goes_on && let Some(next) = lane.next(Some(turn)) {
            heads.push((number, next));
        }
    }
    round
}

/// Takes up to `want` calls for one asker; the candidates in turn, the most urgent first. At least one,
/// or the reason why not, and then what binds is marked.
pub(super) fn take_up_to(
    lane: &Lane,
    book: &mut Book,
    want: usize,
    properties: &[PropertyId],
    cost: u64,
    now: Timestamp,
    marks: &mut Marks,
) -> Result<Vec<Option<PropertyId>>, Decision> {
    let mut taken = Vec::new();
    // Where the next candidate stands: each gets one before any gets a second.
    let mut from = 0;
    while taken.len() < want {
        let rest = properties.get(from..).unwrap_or_default();
        let wrapped = rest.is_empty();
        let candidates = if wrapped { properties } else { rest };
        let mut misses = Marks::default();
        match decide(lane, book, candidates, cost, now, marks, &mut misses) {
            Decision::Fits(property) => {
                book.take(&lane.limits, property.as_ref(), now, cost);
                let used = candidates.iter().position(|one| Some(one) == property.as_ref());
                let base = if wrapped { 0 } else { from };
                from = used.map_or(0, |used| base.saturating_add(used).saturating_add(1));
                taken.push(property);
            }
            refused if taken.is_empty() => {
                marks.whole.append(&mut misses.whole);
                marks.by_property.extend(misses.by_property);
                return Err(refused);
            }
            Decision::PropertiesWait(_) if from > 0 && !wrapped => from = properties.len(),
            Decision::LaneWaits(_) | Decision::PropertiesWait(_) => break,
        }
    }
    Ok(taken)
}

/// Whether one call fits the lane and the first of the properties that has something left; what binds
/// is added to `misses`.
fn decide(
    lane: &Lane,
    book: &mut Book,
    properties: &[PropertyId],
    cost: u64,
    now: Timestamp,
    marks: &Marks,
    misses: &mut Marks,
) -> Decision {
    if let Some(held) = lane.holds.on_lane(now) {
        return Decision::LaneWaits(held.until);
    }
    if let Some(wait) = limits_wait(lane, book, false, None, cost, now, marks, misses) {
        return Decision::LaneWaits(wait);
    }
    if properties.is_empty() {
        return match property_waits(lane, book, None, cost, now, marks, misses) {
            None => Decision::Fits(None),
            Some(at) => Decision::PropertiesWait(at),
        };
    }
    let mut earliest: Option<Timestamp> = None;
    for property in properties {
        match property_waits(lane, book, Some(property), cost, now, marks, misses) {
            None => return Decision::Fits(Some(property.clone())),
            Some(Some(at)) => earliest = Some(earliest.map_or(at, |earliest| earliest.min(at))),
            Some(None) => {}
        }
    }
    Decision::PropertiesWait(earliest)
}

/// `None` if the property may go now; else until when it waits, if time alone can help.
#[expect(clippy::option_option, reason = "waiting without a known end is not the same as not waiting")]
fn property_waits(
    lane: &Lane,
    book: &mut Book,
    property: Option<&PropertyId>,
    cost: u64,
    now: Timestamp,
    marks: &Marks,
    misses: &mut Marks,
) -> Option<Option<Timestamp>> {
    if let Some(held) = lane.holds.on_property(property, now) {
        return Some(held.until);
    }
    if !lane.keyed {
        return None;
    }
    limits_wait(lane, book, true, property, cost, now, marks, misses)
}

/// Until when the lane's limits of one sort (per property or not) wait, if time alone can help; `None`
/// if they do not.
///
/// What binds is held for this asker: limits that only an answer can free, and those that would not be
/// free again by its turn if another took a call now. Behind somebody else's mark it holds nothing,
/// for its own turn is not known and the earlier asker's timer is the one that counts.
#[expect(clippy::option_option, reason = "waiting without a known end is not the same as not waiting")]
#[expect(clippy::too_many_arguments, reason = "one walk over borrowed parts of the group")]
fn limits_wait(
    lane: &Lane,
    book: &mut Book,
    keyed: bool,
    property: Option<&PropertyId>,
    cost: u64,
    now: Timestamp,
    marks: &Marks,
    misses: &mut Marks,
) -> Option<Option<Timestamp>> {
    let mut waits = false;
    let mut at = now;
    for (number, entry) in book.entries(&lane.limits).filter(|(_, entry)| entry.is_keyed() == keyed) {
        if marks.hold(number, keyed, property) {
            return Some(None);
        }
        let budget = entry.look(property);
        if !budget.fits(now, cost) {
            waits = true;
            at = at.max(budget.next_at(now, cost));
        }
    }
    if !waits {
        return None;
    }
    for (number, entry) in book.entries(&lane.limits).filter(|(_, entry)| entry.is_keyed() == keyed) {
        let budget = entry.look(property);
        let by_answer = !budget.fits(now, cost) && budget.next_at(now, cost) <= now;
        if by_answer || budget.next_at(now, cost.saturating_mul(2)) > at {
            misses.add(number, keyed, property);
        }
    }
    Some((at > now).then_some(at))
}
