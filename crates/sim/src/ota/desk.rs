//! Dealing with one call that has arrived: turning it away, failing it, or taking it.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::at::At;
use crate::books::Store;
use crate::config::{Act, OutageKind, RetryAfter};
use crate::limit::Refusal;
use crate::reaction::{Answer, Then};
use crate::wire::Read;

use super::answer::{Asked, Leaving, set};
use super::channel::Chan;
use super::commit::Lookup;

/// What is decided of a call.
pub(super) struct Decided {
    pub(super) then: Then,
    /// The quiet that the answer asks for.
    pub(super) asks: Option<Asked>,
    pub(super) applied: bool,
}

impl Decided {
    fn answer(answer: Answer) -> Self {
        Self { then: Then::Answer(answer), asks: None, applied: false }
    }

    fn silent(then: Then) -> Self {
        Self { then, asks: None, applied: false }
    }

    /// Whether something was applied of which the caller hears nothing good.
    pub(super) fn is_lost(&self) -> bool {
        let told =
            matches!(self.then.status(), Some(200..=299)) && !matches!(self.then, Then::CutInAnswer { .. });
        self.applied && !told
    }
}

/// Why a call gets no further.
pub(super) enum Stopped {
    Limit(Refusal),
    Away(OutageKind),
    Token,
}

/// What idempotency had to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    None,
    Replay,
    Conflict,
}

/// A channel dealing with one call.
pub(super) struct Desk<'a> {
    pub(super) channel: &'a mut Chan,
    pub(super) store: &'a mut Store,
    pub(super) endpoint: &'a str,
    pub(super) now: At,
    pub(super) leaving: Leaving,
    pub(super) strict: bool,
}

impl Desk<'_> {
    /// Answers a call that gets no further; it has waited `delay` by then.
    pub(super) fn turn_away(&mut self, stopped: Stopped, delay: Duration) -> Decided {
        match stopped {
            Stopped::Limit(refusal) => {
                let name =
                    refusal.limit.map_or_else(|| "too many calls".to_owned(), |name| format!("over {name}"));
                let mut answer = self.leaving.error(429, "rate_limited", &name);
                let form = self.channel.next_form();
                let asks = self.leaving.retry_after(&mut answer, &form, refusal.wait.saturating_sub(delay));
                Decided { asks, ..Decided::answer(answer) }
            }
            Stopped::Away(OutageKind::Unavailable) => {
                Decided::answer(self.leaving.error(503, "unavailable", "the channel is away"))
            }
            Stopped::Away(OutageKind::Hang) => Decided::silent(Then::Hang),
            Stopped::Away(OutageKind::Cut | OutageKind::Refuse) => Decided::silent(Then::Cut),
            Stopped::Token => {
                Decided::answer(self.leaving.error(401, "unauthorized", "the token is not accepted"))
            }
        }
    }

    /// Takes a call, or fails in the way that a fault asks for.
    pub(super) fn serve(&mut self, act: Option<&Act>, read: &Read) -> (Decided, Note) {
        let fails = match act {
            Some(Act::Status { status, retry_after, body }) => {
                Some(self.failure(*status, retry_after.as_ref(), body.as_deref()))
            }
            Some(Act::Redirect { location }) => {
                let mut answer = self.leaving.error(302, "moved", "this call is taken elsewhere");
                set(&mut answer, "location", location);
                Some(Decided::answer(answer))
            }
            Some(Act::Cut) => Some(Decided::silent(Then::Cut)),
            Some(Act::Hang) => Some(Decided::silent(Then::Hang)),
            Some(Act::Garbage) => Some(Decided::silent(Then::Garbage(Bytes::from_static(GARBAGE)))),
            _ => None,
        };
        if let Some(decided) = fails {
            return (decided, Note::None);
        }
        let (answer, applied, note) = self.commit(read);
        let succeeded = answer.status.is_success();
        let then = match act {
            Some(act) if succeeded => self.distort(act, answer),
            _ => Then::Answer(answer),
        };
        (Decided { then, asks: None, applied }, note)
    }

    fn failure(&self, status: u16, retry_after: Option<&RetryAfter>, body: Option<&str>) -> Decided {
        let mut answer = match body {
            Some(body) => self.leaving.answer(status, body.to_owned()),
            None => self.leaving.error(status, "simulated", "the channel was told to answer so"),
        };
        let wait = Duration::from_secs(1);
        let asks = retry_after.and_then(|form| self.leaving.retry_after(&mut answer, form, wait));
        Decided { asks, ..Decided::answer(answer) }
    }

    /// Form, idempotency, store: the answer, and whether something was applied.
    fn commit(&mut self, read: &Read) -> (Answer, bool, Note) {
        if self.strict && !read.wrong.is_empty() {
            return (self.leaving.error(422, "malformed", &read.wrong.join("; ")), false, Note::None);
        }
        let remembers = self.channel.config.idempotent && read.idempotency_key.is_some();
        if remembers {
            match self.channel.known.look_up(self.endpoint, read) {
                Lookup::New => {}
                Lookup::Other => {
                    let detail = "the idempotency key was used with other content";
                    return (self.leaving.error(422, "key_conflict", detail), false, Note::Conflict);
                }
                Lookup::Same(first) => {
                    let mut answer = self.leaving.answer(200, first.body);
                    self.confirm(&mut answer, &first.confirmation);
                    set(&mut answer, "x-idempotent-replay", "true");
                    return (answer, false, Note::Replay);
                }
            }
        }
        let confirmation = format!("{}-{:08}", self.channel.slug, self.channel.total.committed + 1);
        let correlation_id = read.correlation_id.as_deref().unwrap_or_default();
        let body: Bytes =
            json!({ "status": "accepted", "correlation_id": correlation_id }).to_string().into();
        if let Some(cell) = &read.cell {
            self.store.apply(self.now, cell, &read.fields, correlation_id);
        }
        if remembers {
            self.channel.known.remember(self.endpoint, read, confirmation.clone(), body.clone());
        }
        let mut answer = self.leaving.answer(200, body);
        self.confirm(&mut answer, &confirmation);
        (answer, true, Note::None)
    }

    fn confirm(&self, answer: &mut Answer, confirmation: &str) {
        if self.channel.config.confirmation {
            set(answer, "x-ota-confirmation-id", confirmation);
        }
    }

    /// What the caller sees of a success.
    fn distort(&self, act: &Act, answer: Answer) -> Then {
        match *act {
            Act::CommitThenCut => Then::Cut,
            Act::CommitThenHang => Then::Hang,
            Act::CommitThenStatus { status } => {
                Then::Answer(self.leaving.error(status, "simulated", "applied, and then it went wrong"))
            }
            Act::CutInAnswer => Then::CutInAnswer { after: answer.body.len().div_euclid(2), answer },
            Act::Drip { interval } => Then::Drip { answer, interval, piece: 1 },
            Act::Huge { bytes } => Then::Huge { answer, bytes },
            Act::Status { .. }
            | Act::Redirect { .. }
            | Act::Cut
            | Act::Hang
            | Act::Garbage
            | Act::Refuse
            | Act::Slow { .. } => Then::Answer(answer),
        }
    }
}

/// Not HTTP, and not text either.
const GARBAGE: &[u8] = b"\x16\x03\x01\x00\xff\xfe\x00SSH-2.0-not-http\r\n\r\n\x00\x01\x02";
