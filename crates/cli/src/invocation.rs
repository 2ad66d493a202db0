//! What every command needs: the configuration, the ledger, the time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use ota_governor::clock::Clock;
use ota_governor::config::{Config, ConfigFaults, LedgerPlace};
use ota_governor::ledger::Ledger;
use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};

/// One call of the command.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// Where the configuration is.
    pub(crate) config_path: PathBuf,
    /// The clock.
    pub(crate) clock: Clock,
}

impl Invocation {
    pub(crate) fn new(config: Option<PathBuf>) -> Self {
        Self { config_path: config.unwrap_or_else(|| PathBuf::from("governor.toml")), clock: Clock::system() }
    }

    /// The configuration, with the environment laid over it.
    pub(crate) fn config(&self) -> Result<Config, ConfigFaults> {
        // A variable that is not Unicode cannot be one of ours.
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Config::load(Some(&self.config_path), std::env::vars_os().filter_map(text))
    }

    /// The ledger, to look into or to change by hand beside whoever dispatches from it.
    pub(crate) fn open_ledger(&self, config: &Config) -> anyhow::Result<Arc<dyn Ledger>> {
        match config.ledger_place() {
            LedgerPlace::Memory => anyhow::bail!(
                "the ledger memory: lives only in the process that dispatches from it: \
                 set ledger.url to sqlite:PATH to look into it from here"
            ),
            LedgerPlace::Sqlite(path) => {
                // Looking must not make a ledger where none is: a wrong path would look like an empty one.
                std::fs::metadata(&path).with_context(|| {
                    format!("opening the ledger {}: the first push makes it", path.display())
                })?;
                let options = OpenOptions { dispatcher: false, clock: self.clock.clone() };
                Ok(SqliteLedger::open(&path, options)?)
            }
        }
    }
}
