//! What is wrong with a configuration: every fault with its place, its key and the rule.

use std::fmt;
use std::path::PathBuf;

/// Where a configured value stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1; `None`: the file as a whole.
        line: Option<usize>,
    },
    /// In an environment variable.
    Environment {
        /// The variable.
        variable: String,
    },
}

/// `governor.toml:12`, or the variable's name.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Environment { variable } => write!(f, "environment {variable}"),
        }
    }
}

/// One fault of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigFault {
    /// Where it stands.
    pub origin: Origin,
    /// The path of the key, such as `channels.booking_com.timeout`; empty for the file as a whole.
    pub key: String,
    /// What is wrong and what was probably meant. Never repeats a value that may be a secret.
    pub rule: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.origin, self.rule)
        } else {
            write!(f, "{}: {}: {}", self.origin, self.key, self.rule)
        }
    }
}

/// Every fault of a configuration, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFaults {
    /// The faults; at least one.
    pub faults: Vec<ConfigFault>,
}

/// One fault a line.
impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFaults {}
