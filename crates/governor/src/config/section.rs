//! Walks a table key by key and collects every fault on the way.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::time::Duration;

use ota_governor_core::time::{parse_duration, show_duration};

use super::fault::{ConfigFault, Origin};
use super::tree::{Node, Value};

/// Where the walk leaves the faults it finds.
#[derive(Default)]
pub(super) struct Faults(RefCell<Vec<ConfigFault>>);

impl Faults {
    pub(super) fn add(&self, origin: &Origin, key: &str, rule: impl Into<String>) {
        let fault = ConfigFault { origin: origin.clone(), key: key.to_owned(), rule: rule.into() };
        self.0.borrow_mut().push(fault);
    }

    pub(super) fn into_sorted(self) -> Vec<ConfigFault> {
        let mut faults = self.0.into_inner();
        faults.sort();
        faults.dedup();
        faults
    }
}

/// One table of the configuration.
pub(super) struct Section<'t> {
    /// Its path; empty for the root.
    pub(super) path: String,
    /// Where it stands.
    pub(super) origin: &'t Origin,
    entries: &'t [(String, Node)],
    pub(super) faults: &'t Faults,
}

impl<'t> Section<'t> {
    /// The node as a table; anything else is a fault.
    pub(super) fn open(node: &'t Node, path: String, faults: &'t Faults) -> Option<Self> {
        if let Value::Table(entries) = &node.value {
            return Some(Self { path, origin: &node.origin, entries, faults });
        }
        faults.add(&node.origin, &path, format!("must be a table, not {}", node.value.noun()));
        None
    }

    /// Reports every key that is not among `known`. `elsewhere` names the section a key belongs to.
    pub(super) fn only(&self, known: &[&str], elsewhere: fn(&str) -> Option<String>) {
        for (key, node) in self.entries {
            if known.contains(&key.as_str()) {
                continue;
            }
            let hint = match (nearest(key, known), elsewhere(key)) {
                (Some(near), _) => format!("did you mean {near}?"),
                (None, Some(place)) => place,
                (None, None) => format!("known here: {}", known.join(", ")),
            };
            self.faults.add(&node.origin, &self.key(key), format!("unknown key; {hint}"));
        }
    }

    /// The path of one of its keys.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// All entries, for tables whose keys are names.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'t str, &'t Node)> + use<'t> {
        self.entries.iter().map(|(key, node)| (key.as_str(), node))
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// A fault at a key of this section, or at the section itself when the key is absent.
    pub(super) fn fault(&self, key: &str, rule: impl Into<String>) {
        let origin = self.get(key).map_or(self.origin, |node| &node.origin);
        self.faults.add(origin, &self.key(key), rule);
    }

    /// Reports a required key that is absent.
    pub(super) fn require(&self, key: &str, rule: &str) {
        if self.get(key).is_none() {
            self.fault(key, format!("is missing: {rule}"));
        }
    }

    fn wrong(&self, key: &str, node: &Node, what: &str) {
        self.faults.add(&node.origin, &self.key(key), format!("must be {what}, not {}", node.value.noun()));
    }

    pub(super) fn section(&self, key: &str) -> Option<Section<'t>> {
        Section::open(self.get(key)?, self.key(key), self.faults)
    }

    pub(super) fn array(&self, key: &str) -> &'t [Node] {
        match self.get(key) {
            Some(Node { value: Value::Array(items), .. }) => items,
            Some(node) => {
                self.wrong(key, node, "an array");
                &[]
            }
            None => &[],
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&'t str> {
        let node = self.get(key)?;
        let text = as_text(node);
        if text.is_none() {
            self.wrong(key, node, "a string");
        }
        text
    }

    /// An array of strings.
    pub(super) fn texts(&self, key: &str) -> Vec<(&'t str, &'t Origin)> {
        let mut texts = Vec::new();
        for (index, node) in self.array(key).iter().enumerate() {
            match as_text(node) {
                Some(text) => texts.push((text, &node.origin)),
                None => self.wrong(&format!("{key}[{index}]"), node, "a string"),
            }
        }
        texts
    }

    /// A text read by `read`, whose complaint becomes the fault.
    pub(super) fn parsed<T>(&self, key: &str, read: impl FnOnce(&'t str) -> Result<T, String>) -> Option<T> {
        let text = self.text(key)?;
        read(text).map_err(|rule| self.fault(key, rule)).ok()
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.parsed(key, |text| {
            if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
                return Ok(*value);
            }
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let quoted: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
            let hint = nearest(text, &known).map(|near| format!("; did you mean {near:?}?"));
            Err(format!("must be {}{}", quoted.join(" or "), hint.unwrap_or_default()))
        })
    }

    pub(super) fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let node = self.get(key)?;
        let Value::Integer(value) = node.value else {
            self.wrong(key, node, "an integer");
            return None;
        };
        let fits = u64::try_from(value).ok().filter(|value| range.contains(value));
        if fits.is_none() {
            self.fault(key, format!("must be {} to {}, not {value}", range.start(), range.end()));
        }
        fits
    }

    pub(super) fn duration(&self, key: &str, range: RangeInclusive<Duration>) -> Option<Duration> {
        let node = self.get(key)?;
        let Some(text) = as_text(node) else {
            self.wrong(key, node, "a duration in quotes such as \"15s\"");
            return None;
        };
        match parse_duration(text) {
            Ok(length) if range.contains(&length) => Some(length),
            Ok(length) => {
                let (low, high) = (show_duration(*range.start()), show_duration(*range.end()));
                self.fault(key, format!("must be {low} to {high}, not {}", show_duration(length)));
                None
            }
            Err(_) => {
                self.fault(key, "must be a whole number and a unit, such as 500ms, 15s, 1m, 24h or 30d");
                None
            }
        }
    }
}

fn as_text(node: &Node) -> Option<&str> {
    match (&node.value, &node.raw) {
        (Value::Text(text), _) | (Value::Integer(_) | Value::Float | Value::Datetime, Some(text)) => {
            Some(text)
        }
        _ => None,
    }
}

/// The known word that was probably meant: at most a third of its letters differ.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = word.to_lowercase();
    let mut best: Option<(usize, &'k str)> = None;
    for candidate in known {
        let distance = distance(&word, candidate);
        let near = distance <= (candidate.chars().count().max(word.chars().count()) / 3).max(1);
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Letters to insert, remove, replace or swap with their neighbour to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    let mut previous: Option<char> = None;
    for (line, letter) in from.chars().enumerate() {
        let mut next = vec![line.saturating_add(1)];
        for (column, other) in to.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&row, column) + usize::from(letter != *other);
            let mut least = replaced.min(at(&row, column + 1) + 1).min(at(&next, column) + 1);
            let neighbour = column.checked_sub(1);
            let swapped =
                neighbour.and_then(|left| to.get(left)).copied() == Some(letter) && previous == Some(*other);
            if let Some(left) = neighbour.filter(|_| swapped) {
                least = least.min(at(&before, left) + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
        previous = Some(letter);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_a_stranger_is_not() {
        let known = ["timeout", "time_zone", "base_url", "max"];
        assert_eq!(nearest("tiemout", &known), Some("timeout"));
        assert_eq!(nearest("timezone", &known), Some("time_zone"));
        assert_eq!(nearest("baseurl", &known), Some("base_url"));
        assert_eq!(nearest("mx", &known), Some("max"));
        assert_eq!(nearest("colour", &known), None);
    }
}
