//! Commands at work against a ledger in memory.

mod by_hand;
mod dead_letters;
mod looking;

use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use ota_governor::clock::Clock;
use ota_governor::config::Config;
use ota_governor::core::idempotency::Recipe;
use ota_governor::core::lane::{LaneKey, Scope};
use ota_governor::core::mutation::{Inventory, Mutation, Priority, Value};
use ota_governor::core::name::{
    AccountName, BatchName, ChannelName, CorrelationId, PropertyId, RoomTypeCode,
};
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::memory::MemoryLedger;
use ota_governor::ledger::{Admission, Attempt, Claim, Disposition, Entry, Job, Ledger, Outcome, Settlement};

use super::Exit;
use crate::arguments::{Arguments, Command};
use crate::invocation::Invocation;

const START: Timestamp = Timestamp::from_micros(1_789_898_400_000_000);
const CONFIG: &str = r#"
[channels.booking_com]
base_url = "https://channel.example"
token = { env = "BOOKING_COM_TOKEN" }
limits = [{ kind = "sliding_window", max = 90, per = "1m" }]
"#;

/// A ledger in memory with what commands need beside it.
struct Desk {
    config: Config,
    ledger: Arc<MemoryLedger>,
    now: Timestamp,
}

impl Desk {
    fn new() -> Self {
        Self { config: Config::parse(CONFIG).unwrap(), ledger: MemoryLedger::new(), now: START }
    }

    async fn enqueue(&self, id: &str, property: u32, rooms: u16) -> Admission {
        self.enqueue_at(id, property, rooms, 100).await
    }

    async fn enqueue_at(&self, id: &str, property: u32, rooms: u16, priority: u16) -> Admission {
        let mut mutation = availability(id, property, rooms);
        mutation.priority = Priority::try_new(priority).unwrap();
        let entry = Entry { mutation, recipe: Recipe::Revision, expires: None };
        self.ledger.enqueue(vec![entry], self.now).await.unwrap().remove(0)
    }

    /// Claims the most urgent and settles it so.
    async fn settle(&self, status: u16, disposition: Disposition) {
        let job = self.claim().await;
        let attempt = Attempt {
            sent_at: self.now,
            answered_at: self.now + Duration::from_millis(40),
            status: Some(status),
            answer: Some("no\nroom".to_owned()),
            retry_after: None,
            counted: true,
        };
        let outcome = Outcome { id: job.id, attempt: Some(attempt), disposition, rest_until: None };
        let (lane, now) = (job.mutation.lane(), self.now);
        let outcomes = vec![outcome];
        let settlement = Settlement { lane, now, outcomes, health: None, holds: vec![], lifted: vec![] };
        self.ledger.settle(settlement).await.unwrap();
    }

    async fn claim(&self) -> Job {
        let claim = Claim { lane: lane(), now: self.now, picks: vec![None] };
        self.ledger.claim(claim).await.unwrap().jobs.remove(0)
    }

    /// Runs a command as it would be written; the exit and what was printed.
    async fn run(&self, line: &str) -> (Exit, String) {
        let words = std::iter::once("ota-governor").chain(line.split_whitespace());
        let arguments = Arguments::try_parse_from(words).unwrap();
        let mut out = Vec::new();
        let ledger = self.ledger.as_ref();
        let ran = super::with_ledger(&self.config, ledger, self.now, arguments.command, &mut out);
        let exit = ran.await.unwrap();
        (exit, String::from_utf8(out).unwrap())
    }
}

fn lane() -> LaneKey {
    let Scope::Lane { lane } = "booking_com:default/availability".parse().unwrap() else {
        panic!("this is a lane")
    };
    lane
}

fn availability(id: &str, property: u32, rooms: u16) -> Mutation {
    Mutation {
        correlation_id: CorrelationId::try_new(id).unwrap(),
        ota: ChannelName::try_new("booking_com").unwrap(),
        account: AccountName::default(),
        property_id: PropertyId::try_new(&format!("prop_{property:08x}")).unwrap(),
        room_type_code: RoomTypeCode::try_new("DLX").unwrap(),
        rate_plan_code: None,
        stay_date: "2026-10-01".parse().unwrap(),
        value: Value::Availability { inventory: Inventory::try_new(rooms).unwrap() },
        priority: Priority::default(),
        time_zone: None,
        expires_at: None,
        sequence: None,
        batch: Some(BatchName::try_new("night").unwrap()),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn the_commands_are_those_that_are_promised() {
    let mut command = Arguments::command();
    command.build();
    let lines = command.get_subcommands().map(|sub| {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        format!("{}: {about}", sub.get_name())
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    init: Write a commented governor.toml to start from
    check: Check the configuration and, if given, a file of mutations; sends nothing
    push: Store a file's mutations and send them until all are final
    status: Show what waits, what is done and what holds each lane
    explain: Say why a mutation waits, for which limit, and until when
    pause: Hold back a channel, an account, an endpoint or a lane by hand
    resume: Lift a pause by hand, or a suspension
    cancel: Take back what is not yet sent
    dead-letters: List, show, replay or discard mutations that were given up
    export: Export what became of mutations, one JSON object a line
    sim-ota: Run a simulated OTA that enforces limits and misbehaves on order, to try things against
    demo: Show the whole thing in half a minute, against a simulated OTA in the same process
    completions: Write a completion script for a shell
    help: Print this message or the help of the given subcommand(s)
    ");
}

#[test]
fn init_writes_a_file_that_loads_with_the_documented_budgets_and_overwrites_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("governor.toml");
    let invocation = Invocation::new(Some(path.clone()));
    let init = |force: bool| {
        let Command::Init(mut arguments) = Arguments::parse_from(["ota-governor", "init"]).command else {
            panic!("this is init")
        };
        arguments.force = force;
        super::init::run(&invocation, &arguments, &mut Vec::new())
    };
    assert_eq!(init(false).unwrap(), Exit::Done);
    let config = Config::load(Some(&path), std::iter::empty()).unwrap();
    let mut described = Vec::new();
    super::check::describe(&config, &mut described).unwrap();
    let described = String::from_utf8(described).unwrap();
    for (lane, max) in [("booking_com", 90), ("expedia", 60), ("agoda", 120)] {
        let line = described.lines().find(|line| line.starts_with(&format!("{lane}:default/rates"))).unwrap();
        assert!(line.ends_with(&format!("at most {max} in any 1m")), "{line}");
    }
    std::fs::write(&path, "mine").unwrap();
    let refused = format!("{:#}", init(false).unwrap_err());
    assert!(refused.contains("--force overwrites it"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(init(true).unwrap(), Exit::Done);
    assert!(Config::load(Some(&path), std::iter::empty()).is_ok());
}

#[tokio::test]
async fn a_wrong_configuration_exits_2_with_every_fault_on_its_own_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("governor.toml");
    std::fs::write(&path, "[ledgr]\n[limiter]\nbackend = \"redis\"\n").unwrap();
    let line = ["ota-governor", "--config", path.to_str().unwrap(), "status"];
    let ran = super::run(Arguments::parse_from(line), &mut Vec::new()).await;
    let error = ran.unwrap_err();
    assert_eq!(Exit::of(&error), Exit::Usage);
    assert_eq!(crate::exit::describe(&error).lines().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn check_prints_every_fault_of_a_file_by_line_and_exits_1() {
    use ota_governor::intake::{Format, Reader, channels};

    let context = Arc::new(channels(&Config::parse(CONFIG).unwrap()).unwrap());
    let good = r#"{"ota":"booking_com","property_id":"prop_00000001","room_type_code":"DLX","rate_plan_code":"BAR","stay_date":"2026-10-01","amount":"120.50","currency":"EUR","inventory":3}"#;
    let bad = good.replace("120.50", "120.505").replace(":3}", ":1000}");
    let examined = |text: String| {
        let mut out = Vec::new();
        let reader = Reader::new(std::io::Cursor::new(text), Format::Ndjson, Arc::clone(&context));
        let exit = super::check::examine(reader, &Clock::starting_at(START), &mut out).unwrap();
        (exit, String::from_utf8(out).unwrap())
    };
    let (exit, said) = examined(format!("{good}\n{bad}\nnonsense\n{good}\n"));
    assert_eq!(exit, Exit::Refused);
    let lines: Vec<&str> = said.lines().skip(1).collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("line 2: ")).count(), 2, "{said}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("line 3: ")).count(), 1, "{said}");
    assert_eq!(lines.last(), Some(&"2 mutations are good, 2 are refused"));
    assert_eq!(examined(format!("{good}\n")).0, Exit::Done);
}

#[tokio::test]
async fn a_reader_that_has_gone_is_no_failure() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let line = Arguments::parse_from(["ota-governor", "completions", "bash"]);
    let error = super::run(line, &mut Gone).await.unwrap_err();
    assert!(crate::exit::is_broken_pipe(&error));
    assert!(!crate::exit::is_broken_pipe(&anyhow::anyhow!("disk full")));
}

#[tokio::test]
async fn looking_makes_no_ledger_where_none_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("governor.db");
    let config = Config::parse(&format!("[ledger]\nurl = \"sqlite:{}\"\n", path.display())).unwrap();
    let invocation =
        Invocation { config_path: dir.path().join("governor.toml"), clock: Clock::starting_at(START) };
    assert!(invocation.open_ledger(&config).is_err());
    assert!(!path.exists());
}

#[tokio::test]
async fn commands_work_beside_the_process_that_dispatches_from_the_file() {
    use ota_governor::core::state::State;
    use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};

    let dir = tempfile::tempdir().unwrap();
    let (db, config) = (dir.path().join("governor.db"), dir.path().join("governor.toml"));
    std::fs::write(&config, format!("[ledger]\nurl = \"sqlite:{}\"\n{CONFIG}", db.display())).unwrap();
    let clock = Clock::system();
    let dispatcher = SqliteLedger::open(&db, OpenOptions { dispatcher: true, clock: clock.clone() }).unwrap();
    let entry = Entry { mutation: availability("m1", 1, 5), recipe: Recipe::Revision, expires: None };
    dispatcher.enqueue(vec![entry], clock.now()).await.unwrap();
    let run = async |line: &str| {
        let words = ["ota-governor", "--config", config.to_str().unwrap()].into_iter().chain(line.split(' '));
        let mut out = Vec::new();
        let exit = super::run(Arguments::parse_from(words), &mut out).await.unwrap();
        (exit, String::from_utf8(out).unwrap())
    };
    assert_eq!(run("pause booking_com").await.0, Exit::Done);
    assert_eq!(dispatcher.holds().await.unwrap().len(), 1);
    let (_, said) = run("explain m1").await;
    assert!(said.contains("lifts a hold on booking_com"), "{said}");
    assert_eq!(run("cancel m1").await, (Exit::Done, "m1 is cancelled\n".to_owned()));
    let id = CorrelationId::try_new("m1").unwrap();
    assert_eq!(dispatcher.get(&id).await.unwrap().unwrap().state, State::Cancelled);
    assert!(run("status --json").await.1.contains("\"accepted\":1"));
    dispatcher.close().await.unwrap();
}
