//! Configured values with the place each came from: the file, with the environment laid over it.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{ConfigFault, Origin};

/// Variables that override a value begin so; two underscores step one level down.
pub(super) const PREFIX: &str = "OTA_GOVERNOR__";

/// One value and its place.
#[derive(Clone)]
pub(super) struct Node {
    /// Where it stands.
    pub(super) origin: Origin,
    /// The value.
    pub(super) value: Value,
    /// The text of an environment variable, for keys that want a text that looks like something else.
    pub(super) raw: Option<String>,
}

/// A value. Deliberately without `Debug`: it may be a secret written where none belongs.
#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    /// Saturated at the ends of `i64`, beyond which no key goes.
    Integer(i64),
    Float,
    Boolean,
    Datetime,
    Array(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Value {
    /// What it is, as a noun phrase.
    pub(super) const fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float => "a float",
            Self::Boolean => "a boolean",
            Self::Datetime => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads the file's text; what is not TOML is reported by line, without the line itself.
pub(super) fn parse(path: &Path, text: &str) -> Result<Node, Vec<ConfigFault>> {
    let lines = Lines { path, text };
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let origin = lines.origin(0);
        return Ok(Node { origin, value: lines.table(table.get_ref()), raw: None });
    }
    let fault = |error: toml::de::Error| ConfigFault {
        origin: lines.origin(error.span().map_or(0, |span| span.start)),
        key: String::new(),
        rule: error.message().replace('\n', ", "),
    };
    Err(errors.into_iter().map(fault).collect())
}

struct Lines<'t> {
    path: &'t Path,
    text: &'t str,
}

impl Lines<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let before = self.text.as_bytes().iter().take(offset);
        let line = before.filter(|byte| **byte == b'\n').count().saturating_add(1);
        Origin::File { path: self.path.to_owned(), line: Some(line) }
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            (key.get_ref().to_string(), self.node(self.origin(key.span().start), value))
        };
        Value::Table(table.iter().map(entry).collect())
    }

    fn node(&self, origin: Origin, value: &Spanned<DeValue<'_>>) -> Node {
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(digits) => Value::Integer(integer(digits.as_str(), digits.radix())),
            DeValue::Float(_) => Value::Float,
            DeValue::Boolean(_) => Value::Boolean,
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Array(items) => {
                let item = |item: &Spanned<DeValue<'_>>| self.node(self.origin(item.span().start), item);
                Value::Array(items.iter().map(item).collect())
            }
            DeValue::Table(table) => self.table(table),
        };
        Node { origin, value, raw: None }
    }
}

fn integer(digits: &str, radix: u32) -> i64 {
    let end = if digits.starts_with('-') { i64::MIN } else { i64::MAX };
    i64::from_str_radix(digits, radix).unwrap_or(end)
}

/// Lays the variables that begin with [`PREFIX`] over the tree; returns those that fit nowhere.
pub(super) fn overlay(root: &mut Node, env: impl Iterator<Item = (String, String)>) -> Vec<ConfigFault> {
    let mut variables: Vec<_> = env.filter(|(name, _)| name.starts_with(PREFIX)).collect();
    variables.sort();
    let mut faults = Vec::new();
    for (variable, text) in variables {
        let steps: Vec<&str> = variable.get(PREFIX.len()..).unwrap_or_default().split("__").collect();
        let origin = Origin::Environment { variable: variable.clone() };
        let value = scalar(&origin, &text);
        if let Err(rule) = place(root, &steps, value, &origin) {
            faults.push(ConfigFault { origin, key: steps.join(".").to_lowercase(), rule });
        }
    }
    faults
}

/// A variable's text as a TOML value, or as the string that it is.
fn scalar(origin: &Origin, text: &str) -> Node {
    let document = format!("value = {text}");
    let parsed = match parse(Path::new(""), &document) {
        Ok(Node { value: Value::Table(entries), .. }) if entries.len() == 1 => entries.into_iter().next(),
        Ok(_) | Err(_) => None,
    };
    let parsed = parsed.map(|(_, node)| node.value);
    let mut node = Node {
        origin: origin.clone(),
        value: parsed.unwrap_or_else(|| Value::Text(text.to_owned())),
        raw: Some(text.to_owned()),
    };
    move_to(&mut node, origin);
    node
}

fn move_to(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| move_to(item, origin)),
        Value::Table(entries) => entries.iter_mut().for_each(|(_, entry)| move_to(entry, origin)),
        Value::Text(_) | Value::Integer(_) | Value::Float | Value::Boolean | Value::Datetime => {}
    }
}

fn place(into: &mut Node, steps: &[&str], value: Node, origin: &Origin) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *into = value;
        return Ok(());
    };
    if step.is_empty() {
        return Err("is not a path of keys with two underscores between them".to_owned());
    }
    match &mut into.value {
        Value::Table(entries) => {
            if !entries.iter().any(|(key, _)| same_key(key, step)) {
                let fresh = Node { origin: origin.clone(), value: Value::Table(Vec::new()), raw: None };
                entries.push((step.to_lowercase(), fresh));
            }
            match entries.iter_mut().find(|(key, _)| same_key(key, step)) {
                Some((_, entry)) => place(entry, rest, value, origin),
                None => Ok(()),
            }
        }
        Value::Array(items) => {
            let count = items.len();
            match step.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                Some(item) => place(item, rest, value, origin),
                None => Err(format!("{step} is not the number of one of its {count} entries, from 0")),
            }
        }
        Value::Text(_) | Value::Integer(_) | Value::Float | Value::Boolean | Value::Datetime => {
            Err("leads into a value that is not a table".to_owned())
        }
    }
}

/// Variables are upper case and cannot hold a hyphen.
fn same_key(key: &str, step: &str) -> bool {
    key.eq_ignore_ascii_case(step) || key.replace('-', "_").eq_ignore_ascii_case(step)
}
