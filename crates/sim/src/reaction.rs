//! What the channel does about a call.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// The call's number, to be handed to [`Ota::finish`](crate::Ota::finish) when the answer has left or
/// the caller went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What will happen to a call, and when.
#[derive(Clone, Debug)]
pub struct Reaction {
    /// To be given back through [`Ota::finish`](crate::Ota::finish).
    pub ticket: Ticket,
    /// From the arrival until [`then`](Self::then) begins.
    pub delay: Duration,
    /// What happens then.
    pub then: Then,
}

/// What the caller sees.
#[derive(Clone, Debug)]
pub enum Then {
    /// A whole answer.
    Answer(Answer),
    /// The connection was never accepted: the call did not arrive, no byte of it was read.
    Refuse,
    /// The connection is closed without one byte of an answer.
    Cut,
    /// The head and the first `after` bytes of the body, then the connection is closed.
    CutInAnswer {
        /// The answer that is cut off; its length is announced in full.
        answer: Answer,
        /// How many bytes of the body still leave.
        after: usize,
    },
    /// No answer, ever: the connection stays open until the caller gives up.
    Hang,
    /// The head, then the body a few bytes at a time.
    Drip {
        /// The answer that drips.
        answer: Answer,
        /// Between two pieces.
        interval: Duration,
        /// Bytes of a piece, at least 1.
        piece: usize,
    },
    /// The head of `answer`, then a body of `bytes` bytes of filling.
    Huge {
        /// Status and headers; its own body is not sent.
        answer: Answer,
        /// How long the body is.
        bytes: u64,
    },
    /// Bytes that are not HTTP, then the connection is closed.
    Garbage(Bytes),
}

/// An HTTP answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers, `Date` included; `Content-Length` is the server's business.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// A header's value, if it is there and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Then {
    /// The answer that leaves in whole or in part, if one does.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answer(answer)
            | Self::CutInAnswer { answer, .. }
            | Self::Drip { answer, .. }
            | Self::Huge { answer, .. } => Some(answer),
            Self::Refuse | Self::Cut | Self::Hang | Self::Garbage(_) => None,
        }
    }

    /// The status of [`answer`](Self::answer).
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|answer| answer.status.as_u16())
    }
}
