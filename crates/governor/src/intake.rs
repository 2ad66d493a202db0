//! Reading mutations from a stream: NDJSON, or CSV with a header.
//!
//! A line that is wrong is refused with every fault in it and its line number, and the others go on.
//! Memory is bounded whatever the stream holds: a line or record of more than 64 KiB is refused
//! without being held. A line of a pipe is handed out as soon as it is complete.

mod csv;
mod frames;
mod ndjson;

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use ota_governor_core::mutation::date::ZoneError;
use ota_governor_core::mutation::draft::{Context, Rules};
use ota_governor_core::mutation::fault::{Fault, Faults};
use ota_governor_core::mutation::{Kind, Mutation};
use ota_governor_core::name::ChannelName;
use ota_governor_core::time::Timestamp;

use crate::config::{Channel, Config};
use csv::{Row, Table};
use frames::{Frame, Frames, MAX_RECORD};

/// A channel whose configured time zone does not exist.
#[derive(Debug, thiserror::Error)]
#[error("time_zone {zone:?} of channel {channel} does not exist")]
pub struct ChannelZoneError {
    channel: ChannelName,
    zone: String,
    source: ZoneError,
}

/// What checks need to know of the configured channels; made once, shared by all readers.
///
/// # Errors
/// If a channel's `time_zone` does not exist. A configuration read from a file never has such a one.
pub fn channels(config: &Config) -> Result<Context, ChannelZoneError> {
    let rules = config.channels.iter().map(|(name, channel)| Ok((name.clone(), rules(name, channel)?)));
    Ok(Context::new(rules.collect::<Result<Vec<_>, _>>()?))
}

fn rules(name: &ChannelName, channel: &Channel) -> Result<Rules, ChannelZoneError> {
    let has_limit = |kind: &Kind| {
        let own = channel.endpoints.get(kind.endpoint()).is_some_and(|endpoint| !endpoint.limits.is_empty());
        own || !channel.limits.is_empty()
    };
    let kinds = Kind::ALL.iter().copied().filter(has_limit);
    let rules = Rules::new(channel.property_id_pattern.clone(), channel.accounts.keys().cloned(), kinds);
    match &channel.time_zone {
        None => Ok(rules),
        Some(zone) => rules.in_time_zone(zone).map_err(|source| ChannelZoneError {
            channel: name.clone(),
            zone: zone.clone(),
            source,
        }),
    }
}

/// How mutations are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Ndjson,
    /// A table with a header, separated by commas.
    Csv,
}

impl Format {
    /// The format of a file by the extension of its name: `.csv` is CSV, anything else NDJSON.
    pub fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("csv") => Self::Csv,
            _ => Self::Ndjson,
        }
    }
}

/// A text that names no format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of `ndjson`, `csv`")]
pub struct FormatError;

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text {
            "ndjson" => Ok(Self::Ndjson),
            "csv" => Ok(Self::Csv),
            _ => Err(FormatError),
        }
    }
}

/// One mutation of a stream, or why it is refused.
#[derive(Debug)]
pub struct Intake {
    /// The line it begins on, from 1.
    pub line: u64,
    /// The mutation, or everything that is wrong with it.
    pub result: Result<Mutation, Faults>,
}

/// Why a stream cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// Reading failed.
    #[error("reading the mutations at line {line}")]
    Read {
        /// The line that was being read.
        line: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The table's header is wrong; none of its rows was read.
    #[error("the table's header on line {line} is wrong: {faults}")]
    Header {
        /// The header's line.
        line: u64,
        /// Everything that is wrong with it.
        faults: Faults,
    },
}

/// Reads mutations from a stream.
#[derive(Debug)]
pub struct Reader<R> {
    frames: Frames<R>,
    table: Option<Table>,
    context: Arc<Context>,
}

impl<R: Read> Reader<R> {
    /// Reads from `input`, which needs no buffer of its own.
    pub fn new(input: R, format: Format, context: Arc<Context>) -> Self {
        let (frames, table) = match format {
            Format::Ndjson => (Frames::lines(input), None),
            Format::Csv => (Frames::records(input), Some(Table::new())),
        };
        Self { frames, table, context }
    }

    /// The next mutation or refusal; `None` at the end. `now` is wall time. Blocks while the stream does,
    /// but never for more than the line it returns.
    ///
    /// # Errors
    /// If the stream fails, or its header is wrong. A failed read may be tried again; after a bad header
    /// what follows would be taken for one.
    pub fn read(&mut self, now: Timestamp) -> Result<Option<Intake>, IntakeError> {
        loop {
            let begun = self.frames.line();
            let frame = self.frames.next().map_err(|source| IntakeError::Read { line: begun, source })?;
            let (line, bytes, closed) = match frame {
                None => return Ok(None),
                Some(Frame::Record { line, bytes, closed }) => (line, bytes, closed),
                Some(Frame::TooLong { line, last }) => {
                    let faults = Faults::from(too_long(line, last));
                    if self.table.as_ref().is_some_and(|table| !table.has_header()) {
                        return Err(IntakeError::Header { line, faults });
                    }
                    return Ok(Some(Intake { line, result: Err(faults) }));
                }
            };
            let result = match &mut self.table {
                None => ndjson::read(bytes, &self.context, now),
                Some(table) => match table.read(bytes, closed, &self.context, now) {
                    Row::Nothing => None,
                    Row::Read(result) => Some(result),
                    Row::BadHeader(faults) => return Err(IntakeError::Header { line, faults }),
                },
            };
            if let Some(result) = result {
                return Ok(Some(Intake { line, result }));
            }
        }
    }

    /// Whether the next [`read`](Self::read) would have to wait for the stream: the moment to hand on what
    /// has been gathered.
    pub fn would_block_next(&mut self) -> bool {
        !self.frames.is_ready()
    }
}

fn too_long(line: u64, last: u64) -> Fault {
    let rule = if line == last {
        format!("is longer than {MAX_RECORD} bytes")
    } else {
        format!(
            "is one record of more than {MAX_RECORD} bytes up to line {last}: is a quote opened and never closed?"
        )
    };
    Fault::new("line", None, rule)
}
