//! `explain`: why a mutation waits, for which limit, and until when.

use std::io::Write;
use std::time::Duration;

use ota_governor::config::Config;
use ota_governor::core::limit::{Each, Limit};
use ota_governor::core::state::State;
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Filter, Hold, HoldCause, Ledger, Record};

use super::status::of_lane;
use crate::arguments::ExplainArguments;
use crate::exit::Exit;
use crate::{record, words};

/// How many of equal priority are looked through at most for those accepted earlier.
const LOOK: usize = 10_000;
const PAGE: usize = 1000;

pub(crate) async fn run(
    config: &Config,
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: &ExplainArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let id = &arguments.id;
    let Some(record) = ledger.get(id).await? else {
        writeln!(
            out,
            "{id} is not in the ledger: it was never accepted, or finished longer ago than the retention"
        )?;
        return Ok(Exit::Refused);
    };
    writeln!(out, "{id} is {} since {}", record.state, words::relative(record.changed_at, now))?;
    if record.state.is_open() {
        let waits = look(config, ledger, &record, now).await?;
        writeln!(out, "{}", waits.sentence(&record, now))?;
        writeln!(out)?;
        waits.facts(now, out)?;
    } else {
        writeln!(out, "{}", ended(&record))?;
        writeln!(out)?;
    }
    record::write(&record, now, out)?;
    Ok(Exit::Done)
}

/// All that can make an open mutation wait.
struct Waits<'c> {
    /// Holds that cover it, those that ran out left away.
    holds: Vec<Hold>,
    /// The limits of its lane, or why it has none.
    limits: Result<Vec<&'c Limit>, String>,
    /// How many queued ones of its lane go first.
    ahead: u64,
    /// Whether there may be more ahead than were counted.
    more: bool,
    /// The longest that its request may take.
    timeout: Duration,
}

async fn look<'c>(
    config: &'c Config,
    ledger: &dyn Ledger,
    record: &Record,
    now: Timestamp,
) -> anyhow::Result<Waits<'c>> {
    let lane = record.mutation.lane();
    let mut holds = ledger.holds().await?;
    holds.retain(|hold| {
        hold.scope.covers(&lane, Some(&record.mutation.property_id))
            && hold.until.is_none_or(|until| until > now)
    });
    let (ahead, more) = ahead(ledger, record).await?;
    let configured = config.endpoint(&lane);
    let timeout = configured.map(|(channel, endpoint)| endpoint.timeout.unwrap_or(channel.timeout));
    Ok(Waits {
        holds,
        limits: config.lane_limits(&lane).map_err(|error| error.to_string()),
        ahead,
        more,
        timeout: timeout.unwrap_or(Duration::from_secs(15)),
    })
}

/// How many queued mutations of the lane go first: the more urgent, and the earlier of the same priority.
async fn ahead(ledger: &dyn Ledger, record: &Record) -> anyhow::Result<(u64, bool)> {
    let lane = record.mutation.lane();
    let priority = record.mutation.priority;
    let tallies = ledger.tallies().await?;
    let queued = || tallies.rows.iter().filter(|row| row.lane == lane && row.state == State::Queued);
    let urgent: u64 = queued().filter(|row| row.priority < priority).map(|row| row.count).sum();
    // It may stand where an older value of its cell stood: then nobody knows from here who is earlier.
    if record.replaced.is_some() || !queued().any(|row| row.priority == priority) {
        return Ok((urgent, record.replaced.is_some()));
    }
    let filter = Filter { state: Some(State::Queued), ..of_lane(&lane) };
    let (mut earlier, mut seen, mut after) = (0_u64, 0_usize, None);
    while seen < LOOK {
        let page = ledger.list(&filter, after, PAGE).await?;
        seen += page.len();
        let before = page.iter().take_while(|other| other.id < record.id);
        earlier += before.filter(|other| other.mutation.priority == priority).map(|_| 1).sum::<u64>();
        after = page.last().map(|other| other.id);
        if after.is_none_or(|last| last >= record.id) {
            return Ok((urgent + earlier, false));
        }
    }
    Ok((urgent + earlier, true))
}

impl Waits<'_> {
    /// The one sentence: what it waits for and until when.
    fn sentence(&self, record: &Record, now: Timestamp) -> String {
        if record.state == State::InFlight {
            let until = words::relative(record.changed_at + self.timeout, now);
            return format!(
                "Its request is on the wire; the answer is waited for until {until} at the latest."
            );
        }
        if let Err(missing) = &self.limits {
            return format!("It waits until its lane is configured again: {missing}.");
        }
        if let Some(hold) = self.holds.iter().find(|hold| hold.until.is_none()) {
            return format!(
                "It waits until a person or a fresh token lifts a hold on {}: {}.",
                hold.scope,
                held(hold)
            );
        }
        let due = record.due.filter(|due| record.state == State::Deferred && *due > now);
        let last = self.holds.iter().max_by_key(|hold| hold.until);
        match (due, last.and_then(|hold| hold.until.zip(Some(hold)))) {
            (Some(due), held_until) if held_until.is_none_or(|(until, _)| until <= due) => {
                let reason = record.reason.as_deref().unwrap_or("deferred");
                return format!("It waits until {}: {}.", words::relative(due, now), because(reason));
            }
            (_, Some((until, hold))) => {
                let until = words::relative(until, now);
                return format!("It waits until {until} for a hold on {}: {}.", hold.scope, held(hold));
            }
            (_, None) => {}
        }
        if let Some(other) = &record.behind {
            return format!("It waits for {other}, which sets the same stock, to be settled first.");
        }
        match self.turn(now) {
            Some((at, limit)) => format!(
                "It waits for its turn at the limit {} ({}): not before {}.",
                limit.name,
                words::rule(limit),
                words::relative(at, now)
            ),
            None => {
                "It may go with the next permit; it waits for a push to be running, if none is.".to_owned()
            }
        }
    }

    /// The earliest time for its turn as far as the limits' pace goes, and the limit that sets it.
    fn turn(&self, now: Timestamp) -> Option<(Timestamp, &Limit)> {
        let limits = self.limits.as_ref().ok()?;
        // A limit per property leaves the others' calls out of this one's way.
        let shared = limits.iter().filter(|limit| limit.each != Each::Property);
        let waits = shared.map(|limit| (words::shortest_wait(limit, self.ahead), *limit));
        let (wait, limit) = waits.max_by_key(|(wait, _)| *wait)?;
        (!wait.is_zero()).then(|| (now + wait, limit))
    }

    fn facts(&self, now: Timestamp, out: &mut dyn Write) -> anyhow::Result<()> {
        let least = if self.more { "at least " } else { "" };
        writeln!(out, "{:<13}  {least}{} queued in its lane go first", "ahead", self.ahead)?;
        for hold in &self.holds {
            writeln!(out, "{:<13}  {}: {}", "hold", hold.scope, words::hold(hold, now))?;
        }
        for limit in self.limits.iter().flatten() {
            writeln!(out, "{:<13}  {}: {}, {}", "limit", limit.name, words::rule(limit), words::pace(limit))?;
        }
        Ok(())
    }
}

fn held(hold: &Hold) -> String {
    match hold.cause {
        HoldCause::Throttled => format!("the channel asked for a pause ({})", hold.detail),
        HoldCause::Breaker => format!("the channel keeps failing ({})", hold.detail),
        HoldCause::TokenRefresh => format!("the account's token is being asked for ({})", hold.detail),
        HoldCause::AccountSuspended => format!("the account's token is refused ({})", hold.detail),
        HoldCause::LaneSuspended => format!("too many equal refusals ({})", hold.detail),
        HoldCause::Manual => hold.detail.clone(),
    }
}

fn because(reason: &str) -> String {
    match reason {
        "throttled" => "the channel answered 429".to_owned(),
        "server_error" => "the channel failed, and it is tried again then".to_owned(),
        "network" => "no connection came about, and it is tried again then".to_owned(),
        "unknown_outcome" => {
            "its request left and no answer came, and it is sent again with the same key".to_owned()
        }
        "auth" => "the channel refused the token, and a fresh one is asked for".to_owned(),
        other => other.to_owned(),
    }
}

fn ended(record: &Record) -> String {
    match record.state {
        State::Committed => {
            format!("The channel took it: {}.", record.confirmation_id.as_deref().unwrap_or("accepted"))
        }
        State::DeadLettered => {
            let status =
                record.last_status.map_or_else(String::new, |status| format!(", last status {status}"));
            let reason = record.reason.as_deref().unwrap_or("no reason recorded");
            format!("It was given up: {reason}{status}. `ota-governor dead-letters replay` queues it again.")
        }
        State::Superseded => match &record.superseded_by {
            Some(newer) => format!("A newer value of its cell took its place: {newer}."),
            None => "A newer value of its cell took its place.".to_owned(),
        },
        State::Cancelled => "It was taken back before it was sent.".to_owned(),
        State::Queued | State::InFlight | State::Deferred => String::new(),
    }
}
