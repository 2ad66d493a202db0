//! What may be written on the command line.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use ota_governor::core::lane::Scope;
use ota_governor::core::name::{AccountName, BatchName, ChannelName, CorrelationId, NameError, PropertyId};
use ota_governor::core::state::DeadReason;
use ota_governor::core::time::parse_duration;
use ota_governor::intake::Format;

/// Paces price, availability and restriction pushes to OTA channels: durable, the newest value wins,
/// never over a limit.
///
/// Exit codes: 0 all is well (for push: all accepted are committed or superseded); 1 some were refused,
/// dead-lettered or cancelled; 2 usage or configuration; 3 stopped with work left.
#[derive(Debug, Parser)]
#[command(name = "ota-governor", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// The configuration [default: governor.toml]
    ///
    /// Any value in it can be overridden by environment: `OTA_GOVERNOR__LEDGER__URL=sqlite:g.db`,
    /// two underscores for each step down.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How log lines on stderr look
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Kv)]
    pub(crate) log_format: LogFormat,
    /// Log more: -v also what is decided, -vv everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Log less: -q warnings and errors, -qq errors, -qqq nothing
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    pub(crate) quiet: u8,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// `key=value` lines
    Kv,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArguments),
    Check(CheckArguments),
    Push(PushArguments),
    Status(StatusArguments),
    Explain(ExplainArguments),
    Pause(PauseArguments),
    Resume(ResumeArguments),
    Cancel(CancelArguments),
    /// List, show, replay or discard mutations that were given up
    #[command(subcommand)]
    DeadLetters(DeadLettersCommand),
    /// Export what became of mutations, one JSON object a line
    #[command(subcommand)]
    Export(ExportCommand),
    SimOta(SimOtaArguments),
    Demo(DemoArguments),
    Completions(CompletionsArguments),
}

impl Command {
    /// How many steps less it logs than is usual: a demonstration tells its story itself.
    pub(crate) fn quieter(&self) -> i16 {
        match self {
            Self::Demo(_) => 3,
            // On a terminal a bar tells how a push goes: a line per mutation would tear it apart.
            Self::Push(_) if std::io::stderr().is_terminal() => 1,
            Self::Init(_)
            | Self::Check(_)
            | Self::Push(_)
            | Self::Status(_)
            | Self::Explain(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cancel(_)
            | Self::DeadLetters(_)
            | Self::Export(_)
            | Self::SimOta(_)
            | Self::Completions(_) => 0,
        }
    }
}

/// Write a commented governor.toml to start from
///
/// Writes a commented governor.toml to start from, with the usual budgets: `booking_com` 90, expedia 60
/// and agoda 120 calls a minute. It goes where --config says, else to ./governor.toml.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Overwrite a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Check the configuration and, if given, a file of mutations; sends nothing
///
/// Checks the configuration: every fault at once, each with its file, line and key, tokens that are
/// missing included. Prints each limit's pace, its burst and the most calls that its worst trailing
/// window can hold. With FILE, checks its mutations too and prints every fault by line.
///
/// Exits 0 if all is well, 1 if mutations are refused, 2 if the configuration is.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Mutations: NDJSON, or CSV with a header if the name ends in .csv; - for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How FILE is written, if its name does not tell
    #[arg(long, value_enum)]
    pub(crate) format: Option<FileFormat>,
}

/// Store a file's mutations and send them until all are final
///
/// Stores the mutations of FILE and sends them, from the first accepted line on, until all are
/// committed or dead-lettered. Without FILE, drains what the ledger holds.
///
/// Ctrl-C stops cleanly: what is left stays queued for the next push. So does --deadline, and so does
/// a state in which nothing can move without a person.
#[derive(Debug, Args)]
pub(crate) struct PushArguments {
    /// Mutations: NDJSON, or CSV with a header if the name ends in .csv; - for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How FILE is written, if its name does not tell
    #[arg(long, value_enum)]
    pub(crate) format: Option<FileFormat>,
    /// Stop after this long, such as 10m, leaving the rest queued
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) deadline: Option<Duration>,
    /// Print a report as one JSON object on stdout, and nothing else there
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) report: Option<ReportFormat>,
}

/// How a file of mutations is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// One JSON object a line
    Ndjson,
    /// Comma-separated values with a header
    Csv,
}

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Ndjson => Self::Ndjson,
            FileFormat::Csv => Self::Csv,
        }
    }
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One JSON object
    Json,
}

/// Show what waits, what is done and what holds each lane
///
/// Shows each lane: how many mutations stand where, how long the oldest has waited, what holds it and
/// until when, and the pace of its limits. Works beside a running push.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Print one JSON object, with the same names
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say why a mutation waits, for which limit, and until when
///
/// Says where a mutation stands, what it waits for and until when, with its whole history.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The mutation's correlation id
    #[arg(value_name = "ID", value_parser = correlation_id)]
    pub(crate) id: CorrelationId,
}

/// Hold back a channel, an account, an endpoint or a lane by hand
///
/// Holds back a channel (`booking_com`), an account of it (`booking_com:hotel-7`), an endpoint
/// (`booking_com/rates`) or a lane (`booking_com:hotel-7/rates`). A running push obeys within a second
/// and across restarts; mutations are still accepted.
#[derive(Debug, Args)]
pub(crate) struct PauseArguments {
    /// What to hold back
    #[arg(value_name = "CHANNEL[:ACCOUNT][/ENDPOINT]")]
    pub(crate) scope: Scope,
    /// Resume by itself after this long, such as 30m
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) length: Option<Duration>,
}

/// Lift a pause by hand, or a suspension
///
/// Lifts what a person may lift: pauses by hand and the suspension of an account or a lane, of the scope
/// given and of all within it. A pause that the channel asked for runs its time.
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// What to let go
    #[arg(value_name = "CHANNEL[:ACCOUNT][/ENDPOINT]")]
    pub(crate) scope: Scope,
}

/// Take back what is not yet sent
///
/// Takes back mutations that are queued or deferred. What is in flight or final stays as it is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct CancelArguments {
    /// The mutation's correlation id
    #[arg(value_name = "ID", value_parser = correlation_id)]
    pub(crate) id: Option<CorrelationId>,
    /// All of this batch
    #[arg(long, value_name = "NAME", value_parser = batch_name)]
    pub(crate) batch: Option<BatchName>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// List dead letters, the oldest first
    List(DeadLettersListArguments),
    /// Show one with its whole history
    Show(DeadLettersShowArguments),
    /// Queue dead letters again, through the limits; refused where a newer value of the cell exists
    Replay(DeadLettersPickArguments),
    /// Remove dead letters for good
    Discard(DeadLettersPickArguments),
}

/// Which dead letters.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DeadLettersFilter {
    /// Of this channel
    #[arg(long, value_name = "CHANNEL", value_parser = channel_name)]
    pub(crate) ota: Option<ChannelName>,
    /// Of this account
    #[arg(long, value_name = "ACCOUNT", value_parser = account_name)]
    pub(crate) account: Option<AccountName>,
    /// Of this property
    #[arg(long, value_name = "ID", value_parser = property_id)]
    pub(crate) property: Option<PropertyId>,
    /// With this reason: `client_rejection`, `retry_budget_exhausted` or `expired`
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<DeadReason>,
}

#[derive(Debug, Args)]
pub(crate) struct DeadLettersListArguments {
    #[command(flatten)]
    pub(crate) filter: DeadLettersFilter,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeadLettersShowArguments {
    /// The mutation's correlation id
    #[arg(value_name = "ID", value_parser = correlation_id)]
    pub(crate) id: CorrelationId,
}

#[derive(Debug, Args)]
pub(crate) struct DeadLettersPickArguments {
    /// Correlation ids
    #[arg(value_name = "ID", value_parser = correlation_id, required_unless_present = "all")]
    pub(crate) ids: Vec<CorrelationId>,
    /// All that the filters let through
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) filter: DeadLettersFilter,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Export confirmations: `correlation_id`, `confirmation_id`, cell and time of each commit
    Committed(ExportCommittedArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ExportCommittedArguments {
    /// Committed at or after: a time such as 2026-09-20T00:00:00Z, or so long ago, such as 24h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: String,
}

/// Run a simulated OTA that enforces limits and misbehaves on order, to try things against
///
/// Runs a simulated OTA until Ctrl-C, then prints what it counted. Point a channel's `base_url` at it.
#[derive(Debug, Args)]
pub(crate) struct SimOtaArguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8088")]
    pub(crate) listen: SocketAddr,
    /// How it behaves, as TOML; without, it takes every call for any channel
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Show the whole thing in half a minute, against a simulated OTA in the same process
///
/// Shows bursts, limits, throttling, priorities and newest-wins at work, and checks the books of both
/// sides against each other: exits with 0 if they agree, with 1 if not. Needs no configuration and leaves
/// nothing behind. Ctrl-C stops it.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {}

/// Write a completion script for a shell
///
/// Writes a completion script to stdout, such as for bash:
/// `ota-governor completions bash > /etc/bash_completion.d/ota-governor`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

fn correlation_id(text: &str) -> Result<CorrelationId, NameError> {
    CorrelationId::try_new(text)
}

fn batch_name(text: &str) -> Result<BatchName, NameError> {
    BatchName::try_new(text)
}

fn channel_name(text: &str) -> Result<ChannelName, NameError> {
    ChannelName::try_new(text)
}

fn account_name(text: &str) -> Result<AccountName, NameError> {
    AccountName::try_new(text)
}

fn property_id(text: &str) -> Result<PropertyId, NameError> {
    PropertyId::try_new(text)
}
