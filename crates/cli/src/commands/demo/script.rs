//! The script: what is handed in and when, and what must be true at the channels in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Span, ToSpan};
use ota_sim::{CellKey, Kind};

use super::stage::{ACTS, Act, UNKNOWN_PROPERTY};

/// The priority of what must not wait.
pub(super) const URGENT: u16 = 1;
/// The priority of the backlog.
const BULK: u16 = 100;
/// After which of the backlog the property stands that the channel does not know.
const UNKNOWN_AFTER: u32 = 25;
/// The first property of the urgent ones.
const URGENT_PROPERTY: u32 = 0x0000_9000;
/// How often an urgent one comes for each channel, and the time between.
const URGENT_ROUNDS: (u32, Duration) = (8, Duration::from_millis(2_230));
/// When prices change again, and how many of those last in the queue.
const CHANGES: [(Duration, u32); 2] = [(Duration::from_secs(1), 40), (Duration::from_secs(5), 20)];

/// Something that is handed in.
#[derive(Debug)]
pub(super) struct Scene {
    /// How long after the start.
    pub(super) at: Duration,
    /// What happens, for the audience.
    pub(super) says: String,
    /// The mutations as NDJSON, in the order in which they are accepted.
    pub(super) lines: String,
}

/// What a cell must hold in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) correlation_id: String,
    pub(super) amount: String,
    pub(super) inventory: u64,
}

/// The whole play.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) scenes: Vec<Scene>,
    /// The last value of each cell that a channel takes.
    pub(super) last: BTreeMap<CellKey, Setting>,
    /// Mutations that take the place of one that waits.
    pub(super) superseding: u64,
    /// Mutations in all.
    pub(super) handed_in: u64,
    first_night: Date,
}

impl Script {
    /// A script whose stays begin with this night.
    pub(super) fn new(first_night: Date) -> Self {
        let mut script = Self { first_night, ..Self::default() };
        let mut lines = String::new();
        for act in &ACTS {
            for n in 0..act.bulk {
                lines.push_str(&script.bulk(act, n, 0));
                if act.has_unknown && n == UNKNOWN_AFTER {
                    lines.push_str(&script.line(act, "unknown", UNKNOWN_PROPERTY, 0, ("99.00", 1, BULK)));
                }
            }
        }
        let says = format!("{} prices in one burst", lines.lines().count());
        script.scenes.push(Scene { at: Duration::ZERO, says, lines });
        for (round, (at, count)) in (1..).zip(CHANGES) {
            let mut lines = String::new();
            for act in &ACTS {
                let first = act.bulk.saturating_sub(count);
                (first..act.bulk).for_each(|n| lines.push_str(&script.bulk(act, n, round)));
            }
            let changed = lines.lines().count();
            script.superseding += u64::try_from(changed).unwrap_or(u64::MAX);
            let says = format!("{changed} of those that wait get another price: newest wins");
            script.scenes.push(Scene { at, says, lines });
        }
        let (rounds, apart) = URGENT_ROUNDS;
        for round in 1..=rounds {
            let lines = ACTS.iter().map(|act| script.urgent(act, round)).collect();
            let says = format!("an urgent one for each channel (round {round} of {rounds})");
            script.scenes.push(Scene { at: apart * round, says, lines });
        }
        script.scenes.sort_by_key(|scene| scene.at);
        let all: usize = script.scenes.iter().map(|scene| scene.lines.lines().count()).sum();
        script.handed_in = u64::try_from(all).unwrap_or(u64::MAX);
        script
    }

    /// The `n`-th of the backlog, in the given round of changes.
    fn bulk(&mut self, act: &Act, n: u32, round: u32) -> String {
        let property = format!("prop_{:08x}", 0x0000_1000 + n / 30);
        let amount = format!("{}.{:02}", 80 + n % 120, 10 * round);
        let name = format!("bulk-{n}-{round}");
        let inventory = 1 + u64::from(n + round) % 9;
        self.line(act, &name, &property, n % 30, (&amount, inventory, BULK))
    }

    fn urgent(&mut self, act: &Act, round: u32) -> String {
        let property = format!("prop_{:08x}", URGENT_PROPERTY + round);
        self.line(act, &format!("urgent-{round}"), &property, 0, ("149.00", 0, URGENT))
    }

    /// One mutation, noted as the last value of its cell so far.
    fn line(
        &mut self,
        act: &Act,
        name: &str,
        property: &str,
        night: u32,
        (amount, inventory, priority): (&str, u64, u16),
    ) -> String {
        let night = self.first_night.saturating_add(Span::new().days(i64::from(night)));
        let correlation_id = format!("{}-{name}", act.slug);
        let line = serde_json::json!({
            "ota": act.slug,
            "property_id": property,
            "room_type_code": "DLX",
            "rate_plan_code": "BAR",
            "stay_date": night.to_string(),
            "amount": amount,
            "currency": "EUR",
            "inventory": inventory,
            "priority": priority,
            "correlation_id": correlation_id,
        });
        if property != UNKNOWN_PROPERTY {
            let cell = CellKey {
                channel: act.slug.to_owned(),
                property_id: property.to_owned(),
                room_type_code: "DLX".to_owned(),
                rate_plan_code: Some("BAR".to_owned()),
                stay_date: night.to_string(),
                kind: Kind::Rate,
            };
            self.last.insert(cell, Setting { correlation_id, amount: amount.to_owned(), inventory });
        }
        format!("{line}\n")
    }
}

/// The first night of the play: far enough off that no time zone calls it past.
pub(super) fn first_night(today: Date) -> Date {
    today.saturating_add(2.days())
}
