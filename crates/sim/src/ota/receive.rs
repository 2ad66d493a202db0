//! What happens to a call, step by step, in the order of a real gateway: is anybody there, is it over a
//! limit, is the service up, whose call is it, does it go wrong, is it well formed, was it here before.
//!
//! Everything that arrives counts in the limits, also what is turned away later: a caller that takes a
//! failed call for one that was never made will be found out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::at::At;
use crate::books::{Arrival, InventoryKey};
use crate::call::Call;
use crate::config::{Act, Kind, OutageKind, OverLimit, RetryAfter};
use crate::limit::Scope;
use crate::reaction::{Answer, Reaction, Then, Ticket};
use crate::wire::{self, Read};

use super::answer::{Asked, Leaving, set};
use super::channel::{Chan, InPause};
use super::commit::Lookup;
use super::state::{Flight, State};

/// What is decided of a call.
struct Decided {
    then: Then,
    asks: Option<Asked>,
    applied: bool,
}

impl Decided {
    fn answer(answer: Answer) -> Self {
        Self { then: Then::Answer(answer), asks: None, applied: false }
    }

    fn silent(then: Then) -> Self {
        Self { then, asks: None, applied: false }
    }
}

/// Why a call gets no further.
enum Stopped {
    Limit(crate::limit::Refusal),
    Away(OutageKind),
    Token,
}

impl State {
    pub(super) fn receive(&mut self, now: At, call: &Call) -> Reaction {
        let now = self.advance(now);
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let path = call.path.split('?').next().unwrap_or_default();
        let slug = path.split('/').nth(1).unwrap_or_default();
        let wall = self.wall;
        let Some((endpoint, kind)) = self.open(slug).and_then(|channel| channel.endpoint(path)) else {
            self.unrouted += 1;
            let leaving = Leaving { at: now, wall, skew: 0 };
            let then = Then::Answer(leaving.error(404, "not_found", "no such channel or endpoint"));
            return Reaction { ticket, delay: Duration::ZERO, then };
        };
        let away = self.outage_of(slug, now);
        let Self { channels, rng, total, .. } = self;
        let Some(channel) = channels.get_mut(slug) else {
            return Reaction { ticket, delay: Duration::ZERO, then: Then::Cut };
        };
        let read = wire::read(call, kind, slug);
        let property = read.property.as_deref();
        if away == Some(OutageKind::Refuse) || channel.strike(rng, now, &endpoint, property, true).is_some() {
            channel.count(total, &endpoint, |tally| tally.connections_refused += 1);
            return Reaction { ticket, delay: Duration::ZERO, then: Then::Refuse };
        }

        let in_pause = channel.in_pause(now, &endpoint, property);
        let scope = Scope { endpoint: &endpoint, property: property.unwrap_or_default() };
        let refusal = channel.gates.check(now, scope, wall);
        let mut delay = channel.latency(rng);
        let slowed = match (&refusal, channel.config.over_limit) {
            (Some(_), OverLimit::Slow(by)) => {
                delay = delay.saturating_add(by);
                true
            }
            _ => false,
        };
        let refusal = refusal.filter(|_| !slowed);
        let holds = channel.gates.count(now, scope, wall, refusal.is_none());

        let mut stopped = refusal.map(Stopped::Limit).or_else(|| away.map(Stopped::Away));
        if stopped.is_none() && !channel.auth.admit(&channel.config.auth, now, call) {
            stopped = Some(Stopped::Token);
        }
        let mut act = None;
        if stopped.is_none() {
            act = channel.strike(rng, now, &endpoint, property, false);
            if let Some(Act::Slow { by }) = act {
                delay = delay.saturating_add(by);
                act = None;
            }
        }
        let leaving = Leaving { at: now + delay, wall, skew: channel.config.date_skew };
        let refused = matches!(stopped, Some(Stopped::Limit(_)));
        let unauthorized = matches!(stopped, Some(Stopped::Token));
        let strict = channel.config.strict && kind != Kind::Other;
        let mut desk = Desk { channel, store: &mut self.store, endpoint: &endpoint, now, leaving, strict };
        let (decided, lookup) = match stopped {
            Some(stopped) => (desk.turn_away(stopped, delay), Note::None),
            None => desk.serve(act, &read),
        };

        let status = decided.then.status();
        let lost = decided.applied && !matches!(status, Some(200..=299))
            || decided.applied && matches!(decided.then, Then::CutInAnswer { .. });
        let (cell_overlap, room_overlap) = self.overlaps(&read);
        let Self { channels, total, .. } = self;
        if let Some(channel) = channels.get_mut(slug) {
            channel.count(total, &endpoint, |tally| {
                tally.received += 1;
                tally.committed += u64::from(decided.applied);
                tally.refused += u64::from(refused);
                tally.slowed += u64::from(slowed);
                tally.unauthorized += u64::from(unauthorized);
                if let Some(status) = status {
                    *tally.statuses.entry(status).or_default() += 1;
                }
                tally.cuts += u64::from(matches!(decided.then, Then::Cut | Then::CutInAnswer { .. }));
                tally.hangs += u64::from(matches!(decided.then, Then::Hang));
                tally.garbage += u64::from(matches!(decided.then, Then::Garbage(_)));
                tally.lost_answers += u64::from(lost);
                tally.into_pause += u64::from(in_pause == InPause::Yes);
                tally.into_pause_grace += u64::from(in_pause == InPause::Grace);
                tally.replays += u64::from(lookup == Note::Replay);
                tally.key_conflicts += u64::from(lookup == Note::Conflict);
                tally.cell_overlaps += u64::from(cell_overlap);
                tally.inventory_overlaps += u64::from(room_overlap);
                if strict && !read.wrong.is_empty() {
                    tally.malformed(&read.wrong.join("; "));
                }
                tally.in_flight += 1;
                tally.in_flight_peak = tally.in_flight_peak.max(tally.in_flight);
            });
        }
        let silent = matches!(decided.then, Then::Hang);
        self.flights.insert(
            ticket.0,
            Flight {
                channel: slug.to_owned(),
                endpoint: Arc::clone(&endpoint),
                property: read.property.clone(),
                cell: read.cell.clone(),
                holds,
                leaves: if silent { At::MAX } else { leaving.at },
                asks: decided.asks,
                tells: decided.applied && !lost,
            },
        );
        self.note(Arrival {
            at: now,
            delay,
            channel: self.channels.get(slug).map_or_else(|| slug.into(), |channel| Arc::clone(&channel.slug)),
            endpoint,
            property: read.property,
            cell: read.cell,
            correlation_id: read.correlation_id,
            idempotency_key: read.idempotency_key,
            status,
            applied: decided.applied,
            into_pause: in_pause == InPause::Yes,
            ticket: ticket.0,
        });
        Reaction { ticket, delay, then: decided.then }
    }

    fn note(&mut self, arrival: Arrival) {
        if self.arrivals.len() < self.config.keep_arrivals {
            self.arrivals.push(arrival);
        } else {
            self.arrivals_dropped += 1;
        }
    }

    /// Counts the call's cell and rooms in flight; whether they already were.
    fn overlaps(&mut self, read: &Read) -> (bool, bool) {
        let Some(cell) = &read.cell else { return (false, false) };
        let cells = self.cells_in_flight.entry(Arc::clone(cell)).or_default();
        *cells += 1;
        let cell_overlap = *cells > 1;
        if cell.kind == Kind::Restriction {
            return (cell_overlap, false);
        }
        let rooms = self.rooms_in_flight.entry(InventoryKey::from(cell.as_ref())).or_default();
        *rooms += 1;
        (cell_overlap, *rooms > 1)
    }
}

/// What idempotency had to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Note {
    None,
    Replay,
    Conflict,
}

/// A channel dealing with one call.
struct Desk<'a> {
    channel: &'a mut Chan,
    store: &'a mut crate::books::Store,
    endpoint: &'a str,
    now: At,
    leaving: Leaving,
    strict: bool,
}

impl Desk<'_> {
    fn turn_away(&mut self, stopped: Stopped, delay: Duration) -> Decided {
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

    fn serve(&mut self, act: Option<Act>, read: &Read) -> (Decided, Note) {
        let fails = match &act {
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
    fn distort(&self, act: Act, answer: Answer) -> Then {
        match act {
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
