//! Faults: what is wrong with what a producer wrote, all of it at once.

use std::fmt;

use serde::Serialize;

/// Most faults kept of one mutation; the rest are counted.
const MAX_FAULTS: usize = 32;

/// Most characters shown of a value that broke a rule.
const MAX_SHOWN: usize = 64;

/// One field that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The field, as the producer wrote it; shortened and escaped like the value.
    pub field: String,
    /// What stood there, shortened and with control characters escaped; `None` if nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The rule, as the end of a sentence that begins with the field and its value.
    pub rule: String,
}

impl Fault {
    /// A fault of a field, with the value that it had.
    pub fn new(field: &str, value: Option<&str>, rule: impl Into<String>) -> Self {
        Self { field: shown(field), value: value.map(shown), rule: rule.into() }
    }
}

/// `inventory: "1000" must be an integer from 0 to 999`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}: \"{value}\" {}", self.field, self.rule),
            None => write!(f, "{}: {}", self.field, self.rule),
        }
    }
}

/// Everything that is wrong with one mutation, up to a bound of 32 faults; the rest are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    faults: Vec<Fault>,
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Faults {
    /// Adds one.
    pub fn push(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// The faults, in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.faults.iter()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// How many there are, those beyond the bound included.
    pub const fn len(&self) -> usize {
        self.faults.len().saturating_add(self.more)
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self { faults: vec![fault], more: 0 }
    }
}

/// All of them, with semicolons between.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, fault) in self.faults.iter().enumerate() {
            let gap = if nth == 0 { "" } else { "; " };
            write!(f, "{gap}{fault}")?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A text made fit to be shown: at most 64 characters, with control characters and others that would
/// not show (or would turn the line around) escaped.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_SHOWN));
    let mut left = MAX_SHOWN;
    for c in text.chars() {
        let printed = c.escape_debug();
        // Quotes stay as they are: escaping them makes a JSON fragment unreadable.
        let (plain, width) = if matches!(c, '"' | '\'') { (true, 1) } else { (false, printed.len()) };
        if width > left {
            out.push('…');
            break;
        }
        left -= width;
        if plain {
            out.push(c);
        } else {
            out.extend(printed);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_shown_is_short_and_cannot_upset_a_terminal() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown("\u{202e}gpj"), "\\u{202e}gpj");
        assert_eq!(shown("Zoë \"x\""), "Zoë \"x\"");
        let long = shown(&"x".repeat(1_000_000));
        assert_eq!(long.chars().count(), 65);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn every_fault_is_told_and_those_beyond_the_bound_are_counted() {
        let mut faults = Faults::default();
        faults.push(Fault::new("amount", Some("-1"), "must be above zero"));
        faults.push(Fault::new("currency", None, "is missing"));
        assert_eq!(faults.to_string(), "amount: \"-1\" must be above zero; currency: is missing");
        for _ in 0..40 {
            faults.push(Fault::new("x", None, "is missing"));
        }
        assert_eq!(faults.len(), 42);
        assert!(faults.to_string().ends_with("; and 10 more"));
    }
}
