//! Reading a tree of values key by key, collecting every fault instead of stopping at the first.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};

use super::KeyFault;

/// Where faults gather.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<KeyFault>>);

impl Faults {
    pub(crate) fn add(&self, key: impl Into<String>, fault: impl Into<String>) {
        self.0.borrow_mut().push(KeyFault { key: key.into(), fault: fault.into() });
    }

    pub(crate) fn into_inner(self) -> Vec<KeyFault> {
        self.0.into_inner()
    }
}

/// One table being read; keys that were never asked for are faults when it is closed.
pub(crate) struct Table<'a> {
    path: String,
    map: &'a Map<String, Value>,
    asked: BTreeSet<String>,
    faults: &'a Faults,
}

impl<'a> Table<'a> {
    pub(crate) fn open(path: &str, value: &'a Value, faults: &'a Faults) -> Option<Self> {
        let map = value.as_object();
        if map.is_none() {
            faults.add(path, "must be a table");
        }
        map.map(|map| Self { path: path.to_owned(), map, asked: BTreeSet::new(), faults })
    }

    pub(crate) fn faults(&self) -> &'a Faults {
        self.faults
    }

    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn fault(&self, key: &str, fault: impl Into<String>) {
        self.faults.add(self.key(key), fault);
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<&'a Value> {
        self.asked.insert(key.to_owned());
        self.map.get(key)
    }

    /// Reads a key that may be absent.
    pub(crate) fn get<T>(&mut self, key: &str, read: impl FnOnce(&Value) -> Result<T, String>) -> Option<T> {
        let value = self.take(key)?;
        read(value).map_err(|fault| self.fault(key, fault)).ok()
    }

    /// Reads a key that must be there.
    pub(crate) fn need<T>(&mut self, key: &str, read: impl FnOnce(&Value) -> Result<T, String>) -> Option<T> {
        if !self.map.contains_key(key) {
            self.asked.insert(key.to_owned());
            self.fault(key, "is missing");
            return None;
        }
        self.get(key, read)
    }

    /// Reads a list, each entry with its own path.
    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str, &'a Value, &'a Faults) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.take(key)?;
        let Some(entries) = value.as_array() else {
            self.fault(key, "must be a list");
            return None;
        };
        let path = self.key(key);
        let read = |(at, entry)| read(&format!("{path}[{at}]"), entry, self.faults);
        Some(entries.iter().enumerate().filter_map(read).collect())
    }

    /// Reads a table of tables, each entry with its own path.
    pub(crate) fn tables<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str, &'a Value, &'a Faults) -> Option<T>,
    ) -> Vec<(String, T)> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let Some(map) = value.as_object() else {
            self.fault(key, "must be a table");
            return Vec::new();
        };
        let path = self.key(key);
        let read = |(name, entry): (&String, &'a Value)| {
            Some((name.clone(), read(&format!("{path}.{name}"), entry, self.faults)?))
        };
        map.iter().filter_map(read).collect()
    }

    /// Reports the keys nobody asked for.
    pub(crate) fn close(self) {
        for key in self.map.keys().filter(|key| !self.asked.contains(*key)) {
            let known = self.asked.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            self.fault(key, format!("is not a key here; known are {known}"));
        }
    }
}

pub(crate) fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("must be a text, not {value}"))
}

pub(crate) fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("must be true or false, not {value}"))
}

pub(crate) fn number(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("must be a whole number, 0 or more, not {value}"))
}

pub(crate) fn count(value: &Value) -> Result<u64, String> {
    value.as_u64().filter(|n| *n > 0).ok_or_else(|| format!("must be a whole number above 0, not {value}"))
}

pub(crate) fn span(value: &Value) -> Result<Duration, String> {
    value.as_str().and_then(crate::at::parse_span).ok_or_else(|| {
        format!("must be a duration such as \"500ms\", \"15s\", \"1m30s\" or \"24h\", not {value}")
    })
}

pub(crate) fn long(value: &Value) -> Result<Duration, String> {
    span(value)
        .and_then(|length| if length.is_zero() { Err("must be above 0".to_owned()) } else { Ok(length) })
}

/// Reads one of a few words.
pub(crate) fn word<T>(
    named: impl Fn(&str) -> Option<T>,
    known: &str,
) -> impl FnOnce(&Value) -> Result<T, String> {
    move |value| value.as_str().and_then(named).ok_or_else(|| format!("must be one of {known}, not {value}"))
}
