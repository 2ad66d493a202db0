//! When a turn in line would come, reckoned without taking anything.

use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;

use super::book::Book;
use super::line::{Lane, Turn, Waiter};

/// What binds where no limit does: the calls of those ahead.
const IN_FLIGHT: &str = "calls in flight";

/// The reckoned turn: not before `at` (`None`: until a hold is lifted), and what binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) at: Option<Timestamp>,
    pub(super) by: String,
}

impl Expected {
    fn later(&mut self, at: Option<Timestamp>, by: impl FnOnce() -> String) {
        let later = match (self.at, at) {
            (Some(before), Some(at)) => at > before,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if later {
            *self = Self { at, by: by() };
        }
    }

    fn is_before(&self, other: &Self) -> bool {
        match (self.at, other.at) {
            (Some(one), Some(other)) => one < other,
            (one, _) => one.is_some(),
        }
    }
}

/// The turn of one who has joined the line of `lane` at `turn`.
///
/// A lower bound, as calls in flight and those of the askers ahead are taken to be answered at once.
pub(super) fn expected(lanes: &[Lane], book: &mut Book, lane: usize, turn: Turn, now: Timestamp) -> Expected {
    let nothing = Expected { at: Some(now), by: IN_FLIGHT.to_owned() };
    let Some((mine, waiter)) = lanes.get(lane).and_then(|mine| Some((mine, mine.get(turn)?))) else {
        return nothing;
    };
    let mut expected = nothing;
    if let Some(held) = mine.holds.on_lane(now) {
        expected.later(held.until, || held.by.clone());
    }
    for number in &mine.limits {
        let ahead = costs_ahead(lanes, book, *number, turn, now);
        let Some(entry) = book.entry(*number).filter(|entry| !entry.is_keyed()) else { continue };
        let mut total = ahead.iter().fold(waiter.cost, |total, (_, cost)| total.saturating_add(*cost));
        let mut at = entry.look(None).next_at(now, total);
        for _ in 0..3 {
            // Lanes that their other limits keep slow do not use what is counted for them by then.
            total = ahead.iter().fold(waiter.cost, |total, (other, cost)| {
                let passes = if *other == lane {
                    *cost
                } else {
                    lanes.get(*other).map_or(0, |other| passing(other, mine, book, *cost, now, at))
                };
                total.saturating_add(passes)
            });
            let Some(entry) = book.entry(*number) else { break };
            let closer = entry.look(None).next_at(now, total);
            if closer >= at {
                break;
            }
            at = closer;
        }
        if let Some(entry) = book.entry(*number) {
            if expected.by == IN_FLIGHT && !entry.look(None).fits(now, waiter.cost) {
                expected.by = entry.name().to_string();
            }
            expected.later(Some(at), || entry.name().to_string());
        }
    }
    let of_property = waiter
        .properties
        .iter()
        .map(Some)
        .chain(waiter.properties.is_empty().then_some(None))
        .map(|property| property_expected(mine, book, property, (waiter.cost, turn), now))
        .reduce(|one, other| if other.is_before(&one) { other } else { one });
    if let Some(Expected { at, by }) = of_property {
        expected.later(at, || by);
    }
    expected
}

fn property_expected(
    lane: &Lane,
    book: &mut Book,
    property: Option<&PropertyId>,
    (cost, turn): (u64, Turn),
    now: Timestamp,
) -> Expected {
    let mut expected = Expected { at: Some(now), by: String::new() };
    if let Some(held) = lane.holds.on_property(property, now) {
        expected.later(held.until, || held.by.clone());
    }
    if !lane.keyed {
        return expected;
    }
    let wants_only_this = |other: &&Waiter| match other.properties.as_slice() {
        [] => property.is_none(),
        [only] => Some(only) == property,
        [_, ..] => false,
    };
    let ahead: u64 = lane.ahead(turn).filter(wants_only_this).map(|other| other.cost).sum();
    let total = cost.saturating_add(ahead);
    for (_, entry) in book.entries(&lane.limits).filter(|(_, entry)| entry.is_keyed()) {
        let at = entry.look(property).next_at(now, total);
        expected.later(Some(at), || entry.name().to_string());
    }
    expected
}

/// Per lane, the costs ahead of `turn` that draw on this limit.
fn costs_ahead(
    lanes: &[Lane],
    book: &mut Book,
    number: usize,
    turn: Turn,
    now: Timestamp,
) -> Vec<(usize, u64)> {
    let mut ahead = Vec::new();
    for (other, lane) in lanes.iter().enumerate() {
        if lane.is_empty() || !lane.limits.contains(&number) || lane.holds.on_lane(now).is_some() {
            continue;
        }
        let cost = if lane.keyed {
            // Those whose properties are used up let others pass.
            let mut total = 0u64;
            for waiter in lane.ahead(turn) {
                if waiter
                    .properties
                    .iter()
                    .any(|property| property_fits(lane, book, property, waiter.cost, now))
                {
                    total = total.saturating_add(waiter.cost);
                }
            }
            total
        } else {
            lane.cost_ahead(turn)
        };
        if cost > 0 {
            ahead.push((other, cost));
        }
    }
    ahead
}

fn property_fits(lane: &Lane, book: &mut Book, property: &PropertyId, cost: u64, now: Timestamp) -> bool {
    lane.holds.on_property(Some(property), now).is_none()
        && book
            .entries(&lane.limits)
            .filter(|(_, entry)| entry.is_keyed())
            .all(|(_, entry)| entry.look(Some(property)).fits(now, cost))
}

/// How much of `cost` the limits that only the other lane has let pass until `at`.
fn passing(other: &Lane, mine: &Lane, book: &mut Book, cost: u64, now: Timestamp, at: Timestamp) -> u64 {
    let (mut low, mut high) = (0, cost);
    while low < high {
        let middle = low.midpoint(high).saturating_add(1).min(high);
        let passes = book
            .entries(&other.limits)
            .filter(|(number, entry)| !entry.is_keyed() && !mine.limits.contains(number))
            .all(|(_, entry)| entry.look(None).next_at(now, middle) <= at);
        if passes {
            low = middle;
        } else {
            high = middle.saturating_sub(1);
        }
    }
    low
}
