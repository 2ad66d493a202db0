//! `pause` and `resume`: by hand.

use std::io::Write;

use ota_governor::config::Config;
use ota_governor::core::lane::{LaneKey, Scope};
use ota_governor::core::name::{AccountName, ChannelName, EndpointName};
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::{Hold, HoldCause, Ledger};

use crate::arguments::{PauseArguments, ResumeArguments};
use crate::exit::Exit;
use crate::words;

pub(crate) async fn pause(
    config: &Config,
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: PauseArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let PauseArguments { scope, length } = arguments;
    exists(config, &scope)?;
    let detail = format!("paused by hand by {}", whoami());
    let until = length.map(|length| now + length);
    let hold = Hold { scope, cause: HoldCause::Manual, since: now, until, detail };
    let said = match hold.until {
        Some(until) => format!("until {}", words::relative(until, now)),
        None => format!("until `ota-governor resume {}`", hold.scope),
    };
    writeln!(out, "{} is paused {said}", hold.scope)?;
    ledger.hold(vec![hold]).await?;
    Ok(Exit::Done)
}

/// A pause of what is not configured would hold nothing: most likely a slip of the finger.
fn exists(config: &Config, scope: &Scope) -> anyhow::Result<()> {
    let parts = Parts::of(scope);
    let Some(channel) = config.channels.get(parts.channel) else {
        let known: Vec<&str> = config.channels.keys().map(ChannelName::as_str).collect();
        anyhow::bail!("there is no channel {}: configured are {}", parts.channel, known.join(", "));
    };
    if let Some(account) = parts.account.filter(|account| !channel.accounts.contains_key(*account)) {
        let known: Vec<&str> = channel.accounts.keys().map(AccountName::as_str).collect();
        anyhow::bail!("{} has no account {account}: configured are {}", parts.channel, known.join(", "));
    }
    if let Some(endpoint) = parts.endpoint.filter(|endpoint| !channel.endpoints.contains_key(*endpoint)) {
        let known: Vec<&str> = channel.endpoints.keys().map(EndpointName::as_str).collect();
        anyhow::bail!("{} has no endpoint {endpoint}: configured are {}", parts.channel, known.join(", "));
    }
    Ok(())
}

pub(crate) async fn resume(
    ledger: &dyn Ledger,
    now: Timestamp,
    arguments: &ResumeArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let asked = &arguments.scope;
    let mut lifted = 0_u64;
    for hold in ledger.holds().await?.iter().filter(|hold| is_within(&hold.scope, asked)) {
        if is_for_people(hold.cause) {
            ledger.lift(&hold.scope, Some(hold.cause)).await?;
            lifted += 1;
            writeln!(out, "{} is resumed: it was {}", hold.scope, words::hold(hold, now))?;
        }
    }
    if lifted == 0 {
        writeln!(out, "nothing in {asked} was paused by hand or suspended")?;
    }
    for hold in ledger.holds().await? {
        let (inside, around) = (is_within(&hold.scope, asked), is_within(asked, &hold.scope));
        let runs_out = hold.until.is_some_and(|until| until <= now);
        if (inside || around) && !runs_out {
            let hint = if is_for_people(hold.cause) {
                format!("; `ota-governor resume {}` lifts it", hold.scope)
            } else {
                String::new()
            };
            writeln!(out, "still held: {} {}{hint}", hold.scope, words::hold(&hold, now))?;
        }
    }
    Ok(Exit::Done)
}

/// Whether a person may lift it. A pause that the channel asked for is not ours to end.
const fn is_for_people(cause: HoldCause) -> bool {
    match cause {
        HoldCause::Manual | HoldCause::AccountSuspended | HoldCause::LaneSuspended => true,
        HoldCause::Throttled | HoldCause::Breaker | HoldCause::TokenRefresh => false,
    }
}

/// What a scope names; absent parts stand for all.
struct Parts<'s> {
    channel: &'s ChannelName,
    account: Option<&'s AccountName>,
    endpoint: Option<&'s EndpointName>,
}

impl<'s> Parts<'s> {
    const fn of(scope: &'s Scope) -> Self {
        match scope {
            Scope::Channel { channel } => Self { channel, account: None, endpoint: None },
            Scope::Account { channel, account } => Self { channel, account: Some(account), endpoint: None },
            Scope::Endpoint { channel, endpoint } => {
                Self { channel, account: None, endpoint: Some(endpoint) }
            }
            Scope::Lane { lane: LaneKey { channel, account, endpoint } }
            | Scope::Property { lane: LaneKey { channel, account, endpoint }, .. } => {
                Self { channel, account: Some(account), endpoint: Some(endpoint) }
            }
        }
    }
}

fn is_within(inner: &Scope, outer: &Scope) -> bool {
    let (inner, outer) = (Parts::of(inner), Parts::of(outer));
    inner.channel == outer.channel
        && (outer.account.is_none() || inner.account == outer.account)
        && (outer.endpoint.is_none() || inner.endpoint == outer.endpoint)
}

fn whoami() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let host = ota_governor::config::Config::default().egress;
    format!("{}@{host}", user.unwrap_or_else(|_| "someone".to_owned()))
}
