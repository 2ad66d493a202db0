//! Reading `governor.toml`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ota_governor_core::name::ChannelName;

use super::channel::{self, Setting};
use super::fault::{ConfigFault, ConfigFaults, Origin};
use super::limits;
use super::section::{Faults, Section};
use super::token::TokenOrigins;
use super::tree::{self, Node};
use super::{Config, LedgerPlace};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LEDGER_RULE: &str = "must be \"sqlite:PATH\" or \"memory:\"";

impl Config {
    /// Reads the file at `path` (none: only defaults) with the variables `OTA_GOVERNOR__…` of `env`
    /// laid over it.
    ///
    /// # Errors
    /// With every fault there is, each with its place, its key and what was probably meant.
    pub fn load(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigFaults> {
        let Some(path) = path else { return Self::read(Path::new("governor.toml"), "", env) };
        match std::fs::read_to_string(path) {
            Ok(text) => Self::read(path, &text, env),
            Err(error) => {
                let hint = if error.kind() == std::io::ErrorKind::NotFound {
                    "; `ota-governor init` writes one"
                } else {
                    ""
                };
                let origin = Origin::File { path: path.to_owned(), line: None };
                let rule = format!("cannot be read: {error}{hint}");
                Err(ConfigFaults { faults: vec![ConfigFault { origin, key: String::new(), rule }] })
            }
        }
    }

    /// Reads a configuration from its text.
    ///
    /// ```
    /// let config = ota_governor::config::Config::parse(
    ///     r#"
    ///     [channels.booking_com]
    ///     base_url = "https://channel.example"
    ///     token = { env = "BOOKING_COM_TOKEN" }
    ///     limits = [{ kind = "sliding_window", max = 90, per = "1m" }]
    ///     "#,
    /// )?;
    /// assert_eq!(config.lanes().len(), 3);
    /// # Ok::<(), ota_governor::config::ConfigFaults>(())
    /// ```
    ///
    /// # Errors
    /// With every fault there is.
    pub fn parse(text: &str) -> Result<Self, ConfigFaults> {
        Self::read(Path::new("governor.toml"), text, std::iter::empty())
    }

    fn read(
        path: &Path,
        text: &str,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigFaults> {
        let mut root = tree::parse(path, text).map_err(|faults| ConfigFaults { faults })?;
        let misplaced = tree::overlay(&mut root, env);
        let faults = Faults::default();
        for fault in misplaced {
            faults.add(&fault.origin, &fault.key, fault.rule);
        }
        let config = walk(&root, &faults);
        let faults = faults.into_sorted();
        if faults.is_empty() { Ok(config) } else { Err(ConfigFaults { faults }) }
    }
}

fn walk(root: &Node, faults: &Faults) -> Config {
    let mut config = Config::default();
    let Some(root) = Section::open(root, String::new(), faults) else { return config };
    root.only(&["ledger", "limiter", "server", "limits", "channels"], channel::belongs);
    if let Some(section) = root.section("ledger") {
        ledger(&section, &mut config);
    }
    if let Some(section) = root.section("limiter") {
        limiter(&section, &mut config);
    }
    if let Some(section) = root.section("server") {
        section.only(&["listen"], channel::belongs);
        config.listen = section.parsed("listen", |text| {
            text.parse::<SocketAddr>()
                .map_err(|_| "must be an address and a port, such as \"127.0.0.1:8087\"".to_owned())
        });
    }
    let shared = root.section("limits").map(|section| limits::shared(&section, config.retention));
    let shared = shared.unwrap_or_default();
    let named = shared.values().flatten().map(|limit| (limit.name.clone(), limit.clone()));
    config.limits = named.collect();
    let setting = Setting { shared: &shared, retention: config.retention };
    let mut origins = TokenOrigins::new();
    let mut channels = BTreeMap::new();
    if let Some(table) = root.section("channels") {
        for (name, node) in table.entries() {
            let path = table.key(name);
            let Some(section) = Section::open(node, path, faults) else { continue };
            let slug = ChannelName::try_new(name);
            if let Err(error) = &slug {
                table.fault(name, format!("the slug of a channel {error}"));
            }
            // Under a slug that is none, the other faults of the channel are still worth telling.
            let Ok(slug) = slug.or_else(|_| ChannelName::try_new("unnamed")) else { continue };
            let channel = channel::read(&section, &slug, setting, &mut origins);
            channels.extend(channel.map(|channel| (slug, channel)));
        }
    }
    config.channels = channels;
    config.token_origins = origins;
    config
}

fn ledger(section: &Section<'_>, config: &mut Config) {
    section.only(&["url", "retention"], channel::belongs);
    if let Some(url) = section.parsed("url", ledger_url) {
        config.ledger_url = url;
    }
    let range = Duration::from_secs(1)..=DAY * 3660;
    config.retention = section.duration("retention", range).unwrap_or(config.retention);
}

fn ledger_url(url: &str) -> Result<String, String> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        Some("postgres" | "postgresql") => {
            Err(format!("PostgreSQL ledgers are not in this version: it {LEDGER_RULE}"))
        }
        _ if ledger_place(url).is_some() => Ok(url.to_owned()),
        _ => Err(LEDGER_RULE.to_owned()),
    }
}

/// Reads a ledger's URL.
pub(super) fn ledger_place(url: &str) -> Option<LedgerPlace> {
    if url == "memory:" {
        return Some(LedgerPlace::Memory);
    }
    let path = url.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    (!path.is_empty()).then(|| LedgerPlace::Sqlite(PathBuf::from(path)))
}

fn limiter(section: &Section<'_>, config: &mut Config) {
    section.only(&["backend", "url", "egress"], channel::belongs);
    let local_only = "must be \"local\": this version shares limits within one process only";
    let _: Option<()> = section.parsed("backend", |text| match text {
        "local" => Ok(()),
        "redis" => Err(format!("{local_only}, \"redis\" is not in it")),
        _ => Err(local_only.to_owned()),
    });
    let _: Option<()> = section.parsed("url", |text| {
        let known = text.starts_with("redis://") || text.starts_with("rediss://");
        if known { Ok(()) } else { Err("must begin with redis:// or rediss://".to_owned()) }
    });
    let egress = section.parsed("egress", |text| match text {
        "" => Err("must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    });
    config.egress = egress.unwrap_or_else(|| config.egress.clone());
}

/// The name of this host, as far as it can be told without asking the network.
pub(super) fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let file = kernel.or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = file.ok().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
