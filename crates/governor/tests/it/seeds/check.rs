//! What must be true after every run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ota_governor::core::state::State;
use ota_governor::ledger::{Record, Tallies};
use ota_sim::{Arrival, Kind};
use serde_json::Value;

use super::scenario::Scenario;
use crate::world::World;

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) in_time: bool,
    /// Calls in flight when a process was killed.
    pub(super) unknown: u64,
    pub(super) records: Vec<Record>,
    pub(super) tallies: Tallies,
    pub(super) world: Arc<World>,
}

/// Everything that is not as it must be.
pub(super) fn faults(scenario: &Scenario, ran: &Ran) -> Vec<String> {
    let mut faults = Vec::new();
    nothing_is_lost(scenario, ran, &mut faults);
    no_limit_is_exceeded(scenario, ran, &mut faults);
    requests_are_counted(scenario, ran, &mut faults);
    newest_wins(scenario, ran, &mut faults);
    stock_is_the_newest(scenario, ran, &mut faults);
    faults
}

fn nothing_is_lost(scenario: &Scenario, ran: &Ran, faults: &mut Vec<String>) {
    let handed_in = u64::try_from(scenario.mutations.len()).unwrap();
    let counted: u64 = ran.tallies.rows.iter().map(|row| row.count).sum();
    if (ran.tallies.accepted, counted, ran.records.len()) != (handed_in, handed_in, scenario.mutations.len())
    {
        faults.push(format!(
            "{handed_in} handed in, {} accepted, {counted} in all states, {} on record",
            ran.tallies.accepted,
            ran.records.len()
        ));
    }
    if !ran.in_time {
        faults.push("it did not drain".to_owned());
    }
    for record in ran.records.iter().filter(|record| record.state.is_open()) {
        let (id, state) = (&record.mutation.correlation_id, record.state);
        faults.push(format!("{id} is still {state}: {:?} {:?}", record.reason, record.behind));
    }
}

fn no_limit_is_exceeded(scenario: &Scenario, ran: &Ran, faults: &mut Vec<String>) {
    let books = ran.world.books();
    for limit in books.channels.values().flat_map(|channel| &channel.limits) {
        if limit.over && !limit.limit.hidden {
            faults.push(format!("over {}: {:?} {:?}", limit.name, limit.limit.rule, limit.worst_window));
        }
    }
    let total = &books.total;
    if total.refused > 0 && !scenario.hidden {
        faults.push(format!("{} calls were refused by a limit that is known", total.refused));
    }
    if total.into_pause > 0 && !ran.world.lost_a_pause() {
        faults.push(format!("{} calls went into a pause", total.into_pause));
    }
    if total.malformed > 0 || total.key_conflicts > 0 {
        faults.push(format!(
            "{} malformed ({:?}), {} key conflicts",
            total.malformed, total.malformed_texts, total.key_conflicts
        ));
    }
}

fn requests_are_counted(scenario: &Scenario, ran: &Ran, faults: &mut Vec<String>) {
    let received = ran.world.books().total.received;
    let requests: u64 = ran.records.iter().map(|record| u64::from(record.requests)).sum();
    // A killed process recorded the intent of calls that never left, or that were refused a connection.
    if requests < received || requests > received + ran.unknown {
        faults.push(format!(
            "{requests} requests on record, {received} received, {} unknown after a crash",
            ran.unknown
        ));
    }
    for record in ran.records.iter().filter(|record| record.attempts > scenario.max_attempts) {
        faults.push(format!("{} had {} attempts", record.mutation.correlation_id, record.attempts));
    }
}

/// What a mutation sets, its value apart.
fn cell(mutation: &Value) -> String {
    let part = |name: &str| mutation[name].as_str().unwrap_or_default();
    let kind = mutation["kind"].as_str().unwrap_or("rate");
    format!("{} {} {} {} {kind}", part("ota"), part("property_id"), part("rate_plan_code"), part("stay_date"))
}

fn newest_wins(scenario: &Scenario, ran: &Ran, faults: &mut Vec<String>) {
    let place: BTreeMap<&str, usize> =
        scenario.mutations.iter().enumerate().map(|(place, m)| (id(m), place)).collect();
    let states: BTreeMap<&str, State> =
        ran.records.iter().map(|record| (record.mutation.correlation_id.as_str(), record.state)).collect();
    let mut newest: BTreeMap<String, &str> = BTreeMap::new();
    for mutation in &scenario.mutations {
        newest.insert(cell(mutation), id(mutation));
    }
    let mut arrived: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for arrival in ran.world.ota.arrivals() {
        let Some(place) = arrival.correlation_id.as_deref().and_then(|id| place.get(id)) else {
            faults.push(format!("nobody handed in {:?}", arrival.correlation_id));
            continue;
        };
        arrived.entry(cell(&scenario.mutations[*place])).or_default().push(*place);
    }
    for (cell, places) in &arrived {
        if !places.is_sorted() {
            faults.push(format!("{cell}: an older value went after a newer one: {places:?}"));
        }
    }
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for (_, applied) in ran.world.applied() {
        let Some(id) = applied.last() else { continue };
        last.insert(cell(&scenario.mutations[place[id.as_str()]]), id.clone());
    }
    for (cell, newest) in newest {
        match states.get(newest) {
            Some(State::DeadLettered) => {}
            Some(State::Committed) if last.get(&cell).is_some_and(|id| id == newest) => {}
            state => {
                faults.push(format!("{cell}: {newest} is {state:?}, the channel has {:?}", last.get(&cell)));
            }
        }
    }
    let overlaps = ran.world.books().total.cell_overlaps;
    if overlaps > 0 {
        faults.push(format!("{overlaps} calls for a cell in flight"));
    }
    one_at_a_time_speaks_of_stock(&ran.world.ota.arrivals(), faults);
}

/// An availability and a rate that it covers are never in flight together.
fn one_at_a_time_speaks_of_stock(arrivals: &[Arrival], faults: &mut Vec<String>) {
    let mut calls: BTreeMap<_, Vec<&Arrival>> = BTreeMap::new();
    for arrival in arrivals {
        let Some(cell) = arrival.cell.as_ref().filter(|cell| cell.kind != Kind::Restriction) else {
            continue;
        };
        let key = (&cell.channel, &cell.property_id, &cell.room_type_code, &cell.stay_date);
        let calls = calls.entry(key).or_default();
        for earlier in calls.iter().filter(|earlier| earlier.at + earlier.delay > arrival.at) {
            let Some(other) = &earlier.cell else { continue };
            let plans = (&cell.rate_plan_code, &other.rate_plan_code);
            let covers = plans.0.is_none() || plans.1.is_none() || plans.0 == plans.1;
            if covers && [cell.kind, other.kind].contains(&Kind::Availability) {
                let [one, two] = [earlier, &arrival].map(|call| &call.correlation_id);
                faults.push(format!("{one:?} and {two:?} were in flight together and speak of one stock"));
            }
        }
        calls.push(arrival);
    }
}

/// Where nothing was dead-lettered, the rooms left are what was said of them last, whoever carried it.
fn stock_is_the_newest(scenario: &Scenario, ran: &Ran, faults: &mut Vec<String>) {
    let stock = |mutation: &Value| {
        let part = |name: &str| mutation[name].as_str().unwrap_or_default().to_owned();
        (part("ota"), part("property_id"), part("stay_date"))
    };
    let dead: BTreeSet<_> = ran
        .records
        .iter()
        .filter(|record| record.state == State::DeadLettered)
        .filter_map(|record| {
            let found = scenario.mutations.iter().find(|m| id(m) == record.mutation.correlation_id.as_str());
            found.map(stock)
        })
        .collect();
    let mut said: BTreeMap<_, BTreeMap<Option<String>, u64>> = BTreeMap::new();
    for mutation in &scenario.mutations {
        let Some(inventory) = mutation["inventory"].as_u64() else { continue };
        let plan = mutation["rate_plan_code"].as_str().map(str::to_owned);
        let plans = said.entry(stock(mutation)).or_default();
        if plan.is_none() {
            plans.clear();
        }
        plans.insert(plan, inventory);
    }
    let mut has: BTreeMap<_, BTreeMap<Option<String>, u64>> = BTreeMap::new();
    for row in ran.world.ota.inventory() {
        let key = (row.channel, row.property_id, row.stay_date);
        has.entry(key).or_default().insert(row.rate_plan_code, row.inventory);
    }
    let rooms = |plans: &BTreeMap<Option<String>, u64>, plan: &str| {
        plans.get(&Some(plan.to_owned())).or_else(|| plans.get(&None)).copied()
    };
    for (key, plans) in said.iter().filter(|(key, _)| !dead.contains(key)) {
        let empty = BTreeMap::new();
        let there = has.get(key).unwrap_or(&empty);
        for plan in ["BAR", "NRF"] {
            let (wanted, found) = (rooms(plans, plan), rooms(there, plan));
            if wanted != found {
                faults.push(format!(
                    "{key:?} {plan}: {wanted:?} rooms were said last, the channel has {found:?}"
                ));
            }
        }
    }
}

fn id(mutation: &Value) -> &str {
    mutation["correlation_id"].as_str().unwrap_or_default()
}
