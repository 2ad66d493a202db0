//! A table with a header: comma separated, cells quoted where they need it (RFC 4180).
//!
//! Blanks around a cell are not part of it, and an empty cell is an absent field.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use ota_governor_core::mutation::Mutation;
use ota_governor_core::mutation::draft::{Context, Field, unknown_rule};
use ota_governor_core::mutation::fault::{Fault, Faults};
use ota_governor_core::time::Timestamp;

use super::frames::MAX_RECORD;

/// Most columns of a table: more than there are fields, so that wrong ones can be named.
const MAX_COLUMNS: usize = 256;

/// Columns that every row needs.
const REQUIRED: [Field; 4] = [Field::PropertyId, Field::RoomTypeCode, Field::Ota, Field::StayDate];

/// The columns of a table and the memory to read its rows in.
#[derive(Debug)]
pub(super) struct Table {
    header: Option<Vec<Field>>,
    cutter: Cutter,
}

/// Takes records apart, one at a time, in memory of its own.
#[derive(Debug)]
struct Cutter {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// What a record turned out to be.
pub(super) enum Row {
    /// Nothing: a blank line, or the header.
    Nothing,
    /// A mutation, or what is wrong with it.
    Read(Result<Mutation, Faults>),
    /// A header with these faults: the table cannot be read.
    BadHeader(Faults),
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            header: None,
            cutter: Cutter {
                // Line ends are cut off before; a bare carriage return is part of its cell and refused there.
                reader: ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build(),
                text: vec![0; MAX_RECORD + 1],
                ends: vec![0; MAX_COLUMNS],
            },
        }
    }

    /// Whether the header has been read.
    pub(super) const fn has_header(&self) -> bool {
        self.header.is_some()
    }

    pub(super) fn read(&mut self, record: &[u8], closed: bool, context: &Context, now: Timestamp) -> Row {
        if record.trim_ascii().is_empty() {
            return Row::Nothing;
        }
        match (self.cutter.cells(record, closed), &self.header) {
            (Ok(cells), Some(header)) => Row::Read(mutation(header, &cells, context, now)),
            (Err(fault), Some(_)) => Row::Read(Err(fault.into())),
            (Err(fault), None) => Row::BadHeader(fault.into()),
            (Ok(cells), None) => match columns(&cells) {
                Ok(columns) => {
                    self.header = Some(columns);
                    Row::Nothing
                }
                Err(faults) => Row::BadHeader(faults),
            },
        }
    }
}

impl Cutter {
    fn cells(&mut self, record: &[u8], closed: bool) -> Result<Vec<&str>, Fault> {
        let shown = || String::from_utf8_lossy(record.get(..256).unwrap_or(record)).into_owned();
        if !closed {
            return Err(Fault::new("row", Some(&shown()), "opens a quote that is never closed"));
        }
        self.reader.reset();
        let (_, _, text, ends) = self.reader.read_record(record, &mut self.text, &mut self.ends);
        // The end of the record is told by giving nothing more.
        let rest = self.text.get_mut(text..).unwrap_or_default();
        let free = self.ends.get_mut(ends..).unwrap_or_default();
        let (result, _, more_text, more_ends) = self.reader.read_record(&[], rest, free);
        if result != ReadRecordResult::Record {
            return Err(Fault::new("row", Some(&shown()), format!("has more than {MAX_COLUMNS} cells")));
        }
        let text = self.text.get(..text + more_text).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|error| {
            let rule = format!("is not UTF-8 after {} bytes of text", error.valid_up_to());
            Fault::new("row", Some(&shown()), rule)
        })?;
        let mut begin = 0;
        let ends = self.ends.iter().take(ends + more_ends);
        let cells =
            ends.map(|end| text.get(std::mem::replace(&mut begin, *end)..*end).unwrap_or_default().trim());
        Ok(cells.collect())
    }
}

fn mutation(header: &[Field], cells: &[&str], context: &Context, now: Timestamp) -> Result<Mutation, Faults> {
    if cells.len() != header.len() {
        let rule = format!("has {} cells where the header has {}", cells.len(), header.len());
        return Err(Fault::new("row", None, rule).into());
    }
    let named = header.iter().map(|field| field.as_str()).zip(cells.iter().copied());
    Mutation::from_fields(named, context, now, &mut rand::rng())
}

/// The fields that the header names.
fn columns(cells: &[&str]) -> Result<Vec<Field>, Faults> {
    let mut faults = Faults::default();
    if let [only] = cells
        && only.contains([';', '\t'])
    {
        faults.push(Fault::new("header", Some(only), "must have its columns separated by commas"));
        return Err(faults);
    }
    let mut columns = Vec::with_capacity(cells.len());
    for name in cells {
        match Field::find(name) {
            Some(field) if columns.contains(&field) => {
                faults.push(Fault::new("header", Some(name), "names a column twice"));
            }
            Some(field) => columns.push(field),
            None => faults.push(Fault::new("header", Some(name), unknown_rule(name))),
        }
    }
    for field in REQUIRED.iter().filter(|field| !columns.contains(field)) {
        faults.push(Fault::new("header", None, format!("has no column `{}`", field.as_str())));
    }
    if faults.is_empty() { Ok(columns) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::super::frames::{Frame, Frames};
    use super::*;

    /// The rows of a whole text as the `csv` crate sees them.
    fn whole(text: &str) -> Vec<Vec<String>> {
        let reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(::csv::Trim::All)
            .terminator(::csv::Terminator::Any(b'\n'))
            .from_reader(text.as_bytes());
        let rows = reader.into_records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
        rows.collect()
    }

    /// The same, record by record.
    fn framed(input: impl Read) -> Vec<Vec<String>> {
        let mut frames = Frames::records(input);
        let Table { mut cutter, .. } = Table::new();
        let mut rows = Vec::new();
        while let Some(Frame::Record { bytes, .. }) = frames.next().unwrap() {
            if !bytes.is_empty() {
                rows.push(cutter.cells(bytes, true).unwrap().into_iter().map(str::to_owned).collect());
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn records_are_cut_where_the_csv_reader_sees_their_ends(text in "([ab,\"\n]|\"\"|,\"){0,40}\n?") {
            prop_assert_eq!(framed(text.as_bytes()), whole(&text));
        }
    }
}
