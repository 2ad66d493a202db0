//! Cutting a stream of bytes into lines or records, in bounded memory.

use std::io::{self, Read};
use std::ops::Range;

/// Most bytes of one line or record.
pub(super) const MAX_RECORD: usize = 64 * 1024;

/// Room for a record that is nearly too long and for a good read behind it.
const CAPACITY: usize = 4 * MAX_RECORD;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line or record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'b> {
    /// Its bytes without the line end.
    Record {
        /// The line it begins on, from 1.
        line: u64,
        /// The bytes.
        bytes: &'b [u8],
        /// Whether every quote it opens is closed.
        closed: bool,
    },
    /// More bytes than a record may have; they were skipped without being held.
    TooLong {
        /// The line it begins on.
        line: u64,
        /// The last line skipped.
        last: u64,
    },
}

/// Where a record of a table stands with regard to quotes: a line end inside quotes ends no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// At the start of a cell, where a quote opens.
    CellStart,
    /// In a cell without quotes, where a quote is a character like any other.
    Plain,
    /// Between quotes.
    Open,
    /// After a quote between quotes: the closing one, or the first of a doubled one.
    Closing,
}

impl Quotes {
    const fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Open, b'"') => Self::Closing,
            (Self::Open, _) | (Self::CellStart | Self::Closing, b'"') => Self::Open,
            (Self::CellStart | Self::Plain | Self::Closing, b',') => Self::CellStart,
            (Self::CellStart | Self::Plain | Self::Closing, _) => Self::Plain,
        }
    }
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub(super) struct Frames<R> {
    input: R,
    buffer: Vec<u8>,
    /// The bytes read and not handed out yet.
    held: Range<usize>,
    /// How far they have been searched for the end of a record.
    searched: usize,
    /// One past the end of the next record, if it has been found.
    found: Option<usize>,
    /// `None` where quotes mean nothing.
    quotes: Option<Quotes>,
    line: u64,
    at_beginning: bool,
    at_end: bool,
    /// The first line of a record that is being skipped.
    skipping: Option<u64>,
}

impl<R: Read> Frames<R> {
    /// Frames that end with the line.
    pub(super) fn lines(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; CAPACITY],
            held: 0..0,
            searched: 0,
            found: None,
            quotes: None,
            line: 1,
            at_beginning: true,
            at_end: false,
            skipping: None,
        }
    }

    /// Frames that end with the line, but for line ends between quotes.
    pub(super) fn records(input: R) -> Self {
        Self { quotes: Some(Quotes::CellStart), ..Self::lines(input) }
    }

    /// The line that the next frame begins on.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    /// Whether a frame that is not blank (or the end) is in memory, so that [`next`](Self::next) need not
    /// read. Blank ones before it are dropped.
    pub(super) fn is_ready(&mut self) -> bool {
        if self.at_beginning || self.skipping.is_some() {
            return false;
        }
        self.search();
        while let Some(stop) = self.found {
            let frame = self.buffer.get(self.held.start..stop).unwrap_or_default();
            if !frame.trim_ascii_start().is_empty() {
                return true;
            }
            self.consume(stop);
            self.search();
        }
        self.at_end
    }

    /// The next frame; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        while self.at_beginning {
            self.skip_bom()?;
        }
        loop {
            if let Some(line) = self.skipping {
                if let Some(last) = self.skip() {
                    return Ok(Some(Frame::TooLong { line, last }));
                }
                self.fill()?;
                continue;
            }
            self.search();
            let stop = self.found.map_or(self.held.end, |stop| stop - 1);
            if stop - self.held.start > MAX_RECORD {
                // An open quote may have swallowed the lines behind it: what follows is taken up again at the
                // next line end, quotes or not.
                self.skipping = Some(self.line);
                let given_up = if self.found.is_some() { stop } else { self.held.start + MAX_RECORD };
                self.consume(given_up);
                continue;
            }
            if self.found.is_some() || (self.at_end && !self.held.is_empty()) {
                let line = self.line;
                let closed = self.found.is_some() || self.quotes != Some(Quotes::Open);
                let bytes = self.held.start..stop;
                self.consume(self.found.unwrap_or(stop));
                let bytes = self.buffer.get(bytes).unwrap_or_default();
                let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
                return Ok(Some(Frame::Record { line, bytes, closed }));
            }
            if self.at_end {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn pending(&self) -> &[u8] {
        self.buffer.get(self.held.clone()).unwrap_or_default()
    }

    fn skip_bom(&mut self) -> io::Result<()> {
        if self.pending().starts_with(BOM) {
            self.held.start += BOM.len();
            self.searched = self.held.start;
            self.at_beginning = false;
        } else if self.at_end || !BOM.starts_with(self.pending()) {
            self.at_beginning = false;
        } else {
            self.fill()?;
        }
        Ok(())
    }

    /// Looks for the end of the next record in what has not been searched yet.
    fn search(&mut self) {
        if self.found.is_some() {
            return;
        }
        let fresh = self.buffer.get(self.searched..self.held.end).unwrap_or_default();
        let end = match &mut self.quotes {
            None => fresh.iter().position(|byte| *byte == b'\n'),
            Some(quotes) => fresh.iter().position(|byte| {
                let ends = *byte == b'\n' && *quotes != Quotes::Open;
                *quotes = quotes.after(*byte);
                ends
            }),
        };
        match end {
            Some(at) => {
                self.searched += at + 1;
                self.found = Some(self.searched);
            }
            None => self.searched = self.held.end,
        }
    }

    /// Lets go of everything up to the next line end; the last line skipped, once it is reached.
    fn skip(&mut self) -> Option<u64> {
        let end = self.pending().iter().position(|byte| *byte == b'\n');
        let last = self.line;
        match end {
            Some(at) => self.consume(self.held.start + at + 1),
            None => self.consume(self.held.end),
        }
        if end.is_none() && !self.at_end {
            return None;
        }
        self.skipping = None;
        Some(last)
    }

    /// Lets go of the bytes before `to`; the next record begins there.
    #[expect(clippy::naive_bytecount, reason = "a record is a few hundred bytes: no crate is worth it")]
    fn consume(&mut self, to: usize) {
        let gone = self.buffer.get(self.held.start..to).unwrap_or_default();
        let lines = gone.iter().filter(|byte| **byte == b'\n').count();
        self.line = self.line.saturating_add(u64::try_from(lines).unwrap_or(u64::MAX));
        self.held.start = to;
        self.searched = to;
        self.found = None;
        self.quotes = self.quotes.map(|_| Quotes::CellStart);
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.held.end == self.buffer.len() {
            let moved = self.held.start;
            self.buffer.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.end - moved;
            self.searched -= moved;
        }
        let room = self.buffer.get_mut(self.held.end..).unwrap_or_default();
        let count = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.held.end += count;
        self.at_end = count == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands out its chunks one read at a time, like a pipe.
    struct Pipe(Vec<Vec<u8>>);

    impl Read for Pipe {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let Some(mut chunk) = (!self.0.is_empty()).then(|| self.0.remove(0)) else { return Ok(0) };
            let count = chunk.len().min(room.len());
            room[..count].copy_from_slice(&chunk[..count]);
            if count < chunk.len() {
                self.0.insert(0, chunk.split_off(count));
            }
            Ok(count)
        }
    }

    fn pipe(chunks: &[&str]) -> Pipe {
        Pipe(chunks.iter().map(|chunk| chunk.as_bytes().to_vec()).collect())
    }

    fn all(mut frames: Frames<impl Read>) -> Vec<(u64, String)> {
        let mut out = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            out.push(match frame {
                Frame::Record { line, bytes, closed } => (
                    line,
                    format!("{}{}", String::from_utf8_lossy(bytes), if closed { "" } else { " <open>" }),
                ),
                Frame::TooLong { line, last } => (line, format!("<too long to {last}>")),
            });
        }
        out
    }

    fn owned(frames: &[(u64, &str)]) -> Vec<(u64, String)> {
        frames.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    }

    #[test]
    fn a_byte_order_mark_line_ends_of_windows_and_a_missing_last_one_are_no_trouble() {
        let text = "\u{feff}a\r\nb\n\nc";
        assert_eq!(all(Frames::lines(text.as_bytes())), owned(&[(1, "a"), (2, "b"), (3, ""), (4, "c")]));
        let split: Vec<Vec<u8>> = text.bytes().map(|byte| vec![byte]).collect();
        assert_eq!(all(Frames::lines(Pipe(split))), owned(&[(1, "a"), (2, "b"), (3, ""), (4, "c")]));
        assert!(all(Frames::lines(&b""[..])).is_empty());
        assert!(all(Frames::lines(BOM)).is_empty());
    }

    #[test]
    fn a_line_end_between_quotes_ends_no_record() {
        let text = "\"a\nb\",c\n\"d\"\"\n\",e\nx\"y\nz\n";
        assert_eq!(
            all(Frames::records(text.as_bytes())),
            owned(&[(1, "\"a\nb\",c"), (3, "\"d\"\"\n\",e"), (5, "x\"y"), (6, "z")])
        );
        assert_eq!(all(Frames::records(&b"a\n\"b\n"[..])), owned(&[(1, "a"), (2, "\"b\n <open>")]));
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let fits = "x".repeat(MAX_RECORD);
        for length in [MAX_RECORD + 1, CAPACITY, CAPACITY * 3 + 7] {
            let text = format!("a\n{}\n{fits}\nb\n", "y".repeat(length));
            let expected = owned(&[(1, "a"), (2, "<too long to 2>"), (3, &fits), (4, "b")]);
            assert_eq!(all(Frames::lines(text.as_bytes())), expected, "{length}");
            assert_eq!(all(Frames::records(text.as_bytes())), expected, "{length}");
        }
        assert_eq!(all(Frames::lines("z".repeat(CAPACITY).as_bytes())), owned(&[(1, "<too long to 1>")]));
    }

    #[test]
    fn a_stream_of_any_length_takes_the_same_memory() {
        let line = std::iter::repeat_n(b"{}\n".as_slice(), 200_000).collect::<Vec<_>>().concat();
        let mut frames = Frames::lines(line.chain(io::repeat(b'x').take(5_000_000)));
        let mut count = 0;
        while frames.next().unwrap().is_some() {
            count += 1;
        }
        assert_eq!((count, frames.line(), frames.buffer.capacity()), (200_001, 200_001, CAPACITY));
    }

    #[test]
    fn a_quote_that_is_never_closed_swallows_no_more_than_the_bound() {
        let text = format!("a,b\n\"open\n{}last\n", "0123456789\n".repeat(20_000));
        let frames = all(Frames::records(text.as_bytes()));
        assert_eq!(frames[0].1, "a,b");
        assert_eq!(frames[1], (2, "<too long to 5960>".to_owned()));
        assert_eq!(frames[2], (5961, "0123456789".to_owned()));
        assert_eq!(frames.last().unwrap(), &(20_003, "last".to_owned()));
    }

    #[test]
    fn a_line_is_there_as_soon_as_it_is_complete() {
        let mut frames = Frames::lines(pipe(&["a\n\nb\n \nc", "c\n"]));
        assert!(!frames.is_ready());
        assert!(matches!(frames.next(), Ok(Some(Frame::Record { bytes: b"a", .. }))));
        assert!(frames.is_ready());
        assert!(matches!(frames.next(), Ok(Some(Frame::Record { bytes: b"b", .. }))));
        assert!(!frames.is_ready());
        assert!(matches!(frames.next(), Ok(Some(Frame::Record { bytes: b"cc", line: 5, .. }))));
        assert!(!frames.is_ready());
        assert!(matches!(frames.next(), Ok(None)));
        assert!(frames.is_ready());
    }

    proptest! {
        #[test]
        fn where_a_stream_is_cut_changes_nothing(
            text in "[a,\"\n\r]{0,60}",
            sizes in proptest::collection::vec(1_usize..9, 0..40),
        ) {
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            for size in sizes {
                let (chunk, tail) = rest.split_at(size.min(rest.len()));
                if !chunk.is_empty() {
                    chunks.push(chunk.to_vec());
                }
                rest = tail;
            }
            if !rest.is_empty() {
                chunks.push(rest.to_vec());
            }
            prop_assert_eq!(all(Frames::records(text.as_bytes())), all(Frames::records(Pipe(chunks.clone()))));
            prop_assert_eq!(all(Frames::lines(text.as_bytes())), all(Frames::lines(Pipe(chunks))));
        }
    }
}
