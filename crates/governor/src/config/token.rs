//! Reading where tokens come from, and telling which of them are not there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::path::PathBuf;

use ota_governor_core::name::{AccountName, ChannelName};

use super::fault::{ConfigFault, Origin};
use super::section::Section;
use super::tree::Value;
use super::{Config, TokenSource};

/// Where each account's token source is configured.
pub type TokenOrigins = BTreeMap<(ChannelName, AccountName), Origin>;

const SOURCES: &str = "{ env = \"NAME\" }, { file = \"PATH\" } or { command = [\"PROGRAM\", …] }";

/// The accounts of a channel: `token` for the one called `default`, others under `accounts.NAME.token`.
pub(super) fn accounts(
    section: &Section<'_>,
    channel: &ChannelName,
    origins: &mut TokenOrigins,
) -> BTreeMap<AccountName, TokenSource> {
    let mut accounts = BTreeMap::new();
    let mut take = |name: AccountName, section: &Section<'_>| {
        let (source, origin) = (source(section), section.get("token").map(|node| &node.origin));
        match (accounts.entry(name), source, origin) {
            (Entry::Occupied(taken), ..) => {
                section.fault("token", format!("the account {} has a token already", taken.key()));
            }
            (Entry::Vacant(free), Some(source), Some(origin)) => {
                origins.insert((channel.clone(), free.key().clone()), origin.clone());
                free.insert(source);
            }
            (Entry::Vacant(_), ..) => {}
        }
    };
    if section.get("token").is_some() {
        take(AccountName::default(), section);
    }
    if let Some(table) = section.section("accounts") {
        for (name, node) in table.entries() {
            let Some(account) = Section::open(node, table.key(name), table.faults) else { continue };
            account.only(&["token"], super::channel::belongs);
            account.require("token", SOURCES);
            match AccountName::try_new(name) {
                Ok(name) if account.get("token").is_some() => take(name, &account),
                Ok(_) => {}
                Err(error) => table.fault(name, format!("the name of an account {error}")),
            }
        }
    }
    let named = section.section("accounts").is_some_and(|table| table.entries().next().is_some());
    if !named {
        section.require("token", SOURCES);
    }
    accounts
}

fn source(section: &Section<'_>) -> Option<TokenSource> {
    let node = section.get("token")?;
    if let Value::Text(_) = node.value {
        // Never repeats the text: it may be the token itself.
        section.fault("token", format!("must name its source, never hold the token: {SOURCES}"));
        return None;
    }
    let table = section.section("token")?;
    table.only(&["env", "file", "command"], super::channel::belongs);
    let given = ["env", "file", "command"].iter().filter(|key| table.get(key).is_some()).count();
    if given != 1 {
        section.fault("token", format!("must have exactly one source: {SOURCES}"));
        return None;
    }
    if table.get("env").is_some() {
        let named = |text: &str| match text {
            "" => Err("must name a variable".to_owned()),
            text if text.contains(['=', '\0']) => Err("must name a variable, not hold its value".to_owned()),
            text => Ok(TokenSource::Env(text.to_owned())),
        };
        return table.parsed("env", named);
    }
    if table.get("file").is_some() {
        let named = |text: &str| match text {
            "" => Err("must name a file".to_owned()),
            text => Ok(TokenSource::File(PathBuf::from(text))),
        };
        return table.parsed("file", named);
    }
    let words: Vec<String> = table.texts("command").into_iter().map(|(word, _)| word.to_owned()).collect();
    if words.first().is_none_or(String::is_empty) {
        table.fault(
            "command",
            "must hold a program and its arguments, such as [\"pass\", \"show\", \"channel\"]",
        );
        return None;
    }
    Some(TokenSource::Command(words))
}

impl Config {
    /// The accounts whose token is not there now: a variable that is not set or empty, a file that
    /// cannot be read or is empty. Commands are not run.
    pub fn missing_tokens(&self) -> Vec<ConfigFault> {
        self.missing_tokens_in(|variable| std::env::var_os(variable))
    }

    /// [`missing_tokens`](Self::missing_tokens) with another environment.
    pub fn missing_tokens_in(&self, env: impl Fn(&str) -> Option<OsString>) -> Vec<ConfigFault> {
        let mut missing = Vec::new();
        for (channel, configured) in &self.channels {
            for (account, source) in &configured.accounts {
                let Some(rule) = absent(source, &env) else { continue };
                let origin = self.token_origins.get(&(channel.clone(), account.clone())).cloned();
                let origin =
                    origin.unwrap_or(Origin::File { path: PathBuf::from("governor.toml"), line: None });
                let key = format!("channels.{channel}.accounts.{account}.token");
                missing.push(ConfigFault { origin, key, rule });
            }
        }
        missing.sort();
        missing
    }
}

fn absent(source: &TokenSource, env: &impl Fn(&str) -> Option<OsString>) -> Option<String> {
    match source {
        TokenSource::Env(variable) => match env(variable) {
            None => Some(format!("the environment variable {variable} is not set")),
            Some(text) if text.is_empty() => Some(format!("the environment variable {variable} is empty")),
            Some(_) => None,
        },
        TokenSource::File(path) => match std::fs::read(path) {
            Err(error) => Some(format!("the file {} cannot be read: {error}", path.display())),
            Ok(bytes) if bytes.trim_ascii().is_empty() => {
                Some(format!("the file {} is empty", path.display()))
            }
            Ok(_) => None,
        },
        TokenSource::Command(_) | TokenSource::Fixed(_) => None,
    }
}
