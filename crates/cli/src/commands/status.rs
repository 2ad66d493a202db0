//! `status`: each lane at a glance.

use std::collections::BTreeSet;
use std::io::Write;

use ota_governor::config::Config;
use ota_governor::core::lane::{LaneKey, Scope};
use ota_governor::core::limit::Limit;
use ota_governor::core::mutation::Kind;
use ota_governor::core::state::State;
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Filter, Hold, Ledger, Tallies};
use serde_json::{Map, Value, json};

use crate::arguments::StatusArguments;
use crate::budget::Budgets;
use crate::exit::Exit;
use crate::table::Table;
use crate::words;

/// A lane as it stands.
struct Row {
    lane: LaneKey,
    counts: Vec<(State, u64)>,
    oldest_waiting: Option<Timestamp>,
    holds: Vec<Hold>,
    limits: Vec<Budget>,
}

/// A limit of a lane as it stands.
struct Budget {
    limit: String,
    rule: String,
    pace: String,
    used: Option<usize>,
}

pub(crate) async fn run(
    config: &Config,
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: &StatusArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let tallies = ledger.tallies().await?;
    let mut holds = ledger.holds().await?;
    // One that ran out stays on record until the next of its scope and cause; it holds nothing.
    holds.retain(|hold| hold.until.is_none_or(|until| until > now));
    let mut lanes: BTreeSet<LaneKey> = config.lanes().into_iter().collect();
    lanes.extend(tallies.rows.iter().map(|row| row.lane.clone()));
    let budgets = Budgets::read(config, ledger, now).await?;
    let mut rows = Vec::new();
    for lane in lanes {
        rows.push(look(config, ledger, &budgets, (&tallies, &holds), lane).await?);
    }
    if arguments.json {
        writeln!(out, "{}", to_json(&rows, &tallies))?;
    } else {
        to_table(&rows, &tallies, now, out)?;
    }
    Ok(Exit::Done)
}

async fn look(
    config: &Config,
    ledger: &dyn Ledger,
    budgets: &Budgets<'_>,
    (tallies, holds): (&Tallies, &[Hold]),
    lane: LaneKey,
) -> anyhow::Result<Row> {
    let count = |state: State| {
        let of = tallies.rows.iter().filter(|row| row.lane == lane && row.state == state);
        (state, of.map(|row| row.count).sum())
    };
    let limits = config.lane_limits(&lane).map(|limits| {
        let budget = |limit: &Limit| Budget {
            limit: limit.name.to_string(),
            rule: words::rule(limit),
            pace: words::pace(limit),
            used: budgets.used(&lane, limit),
        };
        limits.into_iter().map(budget).collect()
    });
    let of_lane = |hold: &&Hold| match &hold.scope {
        Scope::Property { lane: of, .. } => *of == lane,
        scope @ (Scope::Channel { .. }
        | Scope::Account { .. }
        | Scope::Endpoint { .. }
        | Scope::Lane { .. }) => scope.covers(&lane, None),
    };
    Ok(Row {
        counts: State::ALL.iter().map(|state| count(*state)).collect(),
        oldest_waiting: oldest_waiting(ledger, &lane).await?,
        holds: holds.iter().filter(of_lane).cloned().collect(),
        limits: limits.unwrap_or_default(),
        lane,
    })
}

/// When the oldest mutation that waits in a lane was accepted.
async fn oldest_waiting(ledger: &dyn Ledger, lane: &LaneKey) -> anyhow::Result<Option<Timestamp>> {
    let mut oldest = None;
    for state in [State::Queued, State::Deferred] {
        let filter = Filter { state: Some(state), ..of_lane(lane) };
        let first = ledger.list(&filter, None, 1).await?;
        oldest = oldest.into_iter().chain(first.first().map(|record| record.accepted_at)).min();
    }
    Ok(oldest)
}

/// The mutations of a lane.
pub(super) fn of_lane(lane: &LaneKey) -> Filter {
    Filter {
        ota: Some(lane.channel.clone()),
        account: Some(lane.account.clone()),
        kind: Kind::ALL.iter().copied().find(|kind| kind.endpoint() == lane.endpoint.as_str()),
        ..Filter::default()
    }
}

impl Budget {
    fn words(&self) -> String {
        let used = self.used.map(|used| format!(", {used} used")).unwrap_or_default();
        format!("{}{used}", self.rule)
    }
}

fn to_table(rows: &[Row], tallies: &Tallies, now: Timestamp, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut head = vec!["lane"];
    head.extend(State::ALL.iter().map(|state| state.as_str()));
    head.extend(["oldest waiting", "limits"]);
    let mut table = Table::new(&head);
    for row in rows {
        let mut cells = vec![row.lane.to_string()];
        cells.extend(row.counts.iter().map(|(_, count)| count.to_string()));
        cells.push(row.oldest_waiting.map_or_else(|| "-".to_owned(), |at| words::about(now.since(at))));
        let rules: Vec<String> = row.limits.iter().map(Budget::words).collect();
        cells.push(if rules.is_empty() { "none: not available".to_owned() } else { rules.join("; ") });
        table.row(cells);
    }
    table.write(out)?;
    for row in rows {
        for hold in &row.holds {
            writeln!(out, "held: {} by {}: {}", row.lane, hold.scope, words::hold(hold, now))?;
        }
    }
    let Tallies { accepted, pruned, discarded, .. } = tallies;
    writeln!(out, "accepted {accepted}, of these pruned {pruned}, discarded {discarded}")?;
    Ok(())
}

fn to_json(rows: &[Row], tallies: &Tallies) -> Value {
    let lanes: Vec<Value> = rows.iter().map(row_json).collect();
    let Tallies { accepted, pruned, discarded, .. } = tallies;
    json!({ "accepted": accepted, "pruned": pruned, "discarded": discarded, "lanes": lanes })
}

fn row_json(row: &Row) -> Value {
    let mut object = Map::new();
    object.insert("lane".to_owned(), row.lane.to_string().into());
    object.insert("ota".to_owned(), row.lane.channel.as_str().into());
    object.insert("account".to_owned(), row.lane.account.as_str().into());
    object.insert("endpoint".to_owned(), row.lane.endpoint.as_str().into());
    for (state, count) in &row.counts {
        object.insert(state.as_str().to_owned(), (*count).into());
    }
    object.insert("oldest_waiting".to_owned(), row.oldest_waiting.map(words::instant).into());
    let hold = |hold: &Hold| {
        json!({
            "scope": hold.scope.to_string(),
            "cause": words::cause(hold.cause),
            "since": words::instant(hold.since),
            "until": hold.until.map(words::instant),
            "detail": hold.detail,
        })
    };
    object.insert("holds".to_owned(), row.holds.iter().map(hold).collect());
    let limit = |budget: &Budget| {
        let Budget { limit, rule, pace, used } = budget;
        json!({ "limit": limit, "rule": rule, "pace": pace, "used": used })
    };
    object.insert("limits".to_owned(), row.limits.iter().map(limit).collect());
    Value::Object(object)
}
