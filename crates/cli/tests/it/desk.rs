//! A directory with a configuration, a simulated OTA, and the command run in it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ota_sim::{CellKey, Channel, Config, Kind, Limit, Ota, Server};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The token that every call carries; no output and no file may ever hold it.
pub(crate) const TOKEN: &str = "tok-3f9c1e77-never-show";
/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How a command ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The report on stdout, which must be one JSON object on one line and nothing else.
    pub(crate) fn report(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{}\n{}", self.out, self.err);
        serde_json::from_str(&self.out).unwrap()
    }

    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// Where the command works.
pub(crate) struct Desk {
    pub(crate) dir: TempDir,
    pub(crate) server: Server,
}

impl Desk {
    /// One channel, `booking_com`, that allows 200 calls in any second.
    pub(crate) async fn new(channel: Channel) -> Self {
        let limit = r#"{ kind = "sliding_window", max = 200, per = "1s" }"#;
        Self::limited(channel.limit(Limit::sliding_window(200, Duration::from_secs(1))), limit).await
    }

    /// One channel, `booking_com`, with this limit in the governor's configuration.
    pub(crate) async fn limited(channel: Channel, limit: &str) -> Self {
        let desk = Self::bare(Config::default().channel("booking_com", channel)).await;
        desk.configure(&desk.channel("booking_com", limit));
        desk
    }

    /// A simulated OTA and no configuration yet.
    pub(crate) async fn bare(config: Config) -> Self {
        let server = Server::start(Arc::new(Ota::new(config)), ([127, 0, 0, 1], 0).into()).await.unwrap();
        Self { dir: TempDir::new().unwrap(), server }
    }

    /// A channel's section, retrying fast.
    pub(crate) fn channel(&self, slug: &str, limit: &str) -> String {
        format!(
            "[channels.{slug}]\nbase_url = \"{}\"\ntoken = {{ env = \"TEST_TOKEN\" }}\ntimeout = \"2s\"\n\
             limits = [{limit}]\n[channels.{slug}.endpoints.rates.retry]\ninitial = \"50ms\"\n\
             jitter = \"20ms\"\ncap = \"400ms\"\nmax_attempts = 12\n",
            self.server.url()
        )
    }

    /// Writes the configuration around these sections.
    pub(crate) fn configure(&self, sections: &str) {
        self.write("governor.toml", &format!("[ledger]\nurl = \"sqlite:governor.db\"\n{sections}"));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes mutations, one a line.
    pub(crate) fn lines(&self, name: &str, lines: impl IntoIterator<Item = Value>) {
        let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
        self.write(name, &text);
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ota-governor"));
        command
            .args(line.split_whitespace())
            .current_dir(self.dir.path())
            .env("TEST_TOKEN", TOKEN)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn spawn(&self, line: &str) -> Child {
        self.command(line).spawn().unwrap()
    }

    pub(crate) async fn run(&self, line: &str) -> Ran {
        self.ended(self.spawn(line)).await
    }

    /// Waits for the end of a command. Whatever it was, it has shown and kept no token.
    pub(crate) async fn ended(&self, child: Child) -> Ran {
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output.expect("the command ends in time").unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ran = Ran {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        assert!(!ran.out.contains(TOKEN) && !ran.err.contains(TOKEN), "the token is shown: {}", ran.err);
        for name in ["governor.db", "governor.db-wal", "governor.db-shm"] {
            let kept = std::fs::read(self.path(name)).unwrap_or_default();
            assert!(!kept.windows(TOKEN.len()).any(|w| w == TOKEN.as_bytes()), "the token is in {name}");
        }
        ran
    }

    /// What `status --json` says.
    pub(crate) async fn status(&self) -> Value {
        self.run("status --json -qq").await.exits(0).report()
    }

    /// How many calls the channels have taken in.
    pub(crate) fn received(&self) -> u64 {
        self.server.books().total.received
    }

    /// What is true at the channel for the cell of [`rate`].
    pub(crate) fn amount(&self, cell: u32) -> Option<String> {
        let key = CellKey {
            channel: "booking_com".to_owned(),
            property_id: property(cell),
            room_type_code: "DLX".to_owned(),
            rate_plan_code: Some("BAR".to_owned()),
            stay_date: DATE.to_owned(),
            kind: Kind::Rate,
        };
        let book = self.server.ota().cell(&key)?;
        Some(book.value["amount"].as_str().unwrap().to_owned())
    }
}

const DATE: &str = "2047-06-01";

fn property(cell: u32) -> String {
    format!("prop_{cell:08x}")
}

/// A price of the cell with this number.
pub(crate) fn rate(id: &str, cell: u32, amount: u32) -> Value {
    json!({
        "ota": "booking_com", "property_id": property(cell), "room_type_code": "DLX",
        "rate_plan_code": "BAR", "stay_date": DATE, "amount": format!("{amount}.50"), "currency": "EUR",
        "inventory": 3, "correlation_id": id,
    })
}

/// The same with other fields set.
pub(crate) fn with(mut mutation: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    mutation.as_object_mut().unwrap().extend(fields);
    mutation
}

/// So many prices of as many cells.
pub(crate) fn rates(count: u32) -> impl Iterator<Item = Value> {
    (0..count).map(|n| rate(&format!("m{n}"), n, 100))
}

/// A channel that answers at once, as strict as ever.
pub(crate) fn prompt() -> Channel {
    Channel::default().latency(Duration::ZERO, Duration::ZERO)
}

/// Waits until something has come to be seen.
pub(crate) async fn until(what: &str, seen: impl AsyncFn() -> bool) {
    let looked = async {
        while !seen().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looked).await.is_ok(), "never seen: {what}");
}

/// Sends a signal to a running command.
pub(crate) async fn signal(child: &Child, name: &str) {
    let pid = child.id().expect("still running").to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().await.unwrap().success());
}
