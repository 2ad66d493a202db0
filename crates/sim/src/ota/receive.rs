//! What happens to a call, step by step, in the order of a real gateway: is anybody there, is it over a
//! limit, is the service up, whose call is it, does it go wrong, is it well formed, was it here before.
//!
//! Everything that arrives counts in the limits, also what is turned away later: a caller that takes a
//! failed call for one that was never made will be found out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;

use crate::at::At;
use crate::books::{Arrival, InventoryKey, Tally};
use crate::call::Call;
use crate::clock::Wall;
use crate::config::{Act, Kind, OutageKind, OverLimit};
use crate::limit::{Hold, Scope};
use crate::reaction::{Reaction, Then, Ticket};
use crate::wire::{self, Read};

use super::answer::Leaving;
use super::channel::{Chan, InPause};
use super::desk::{Decided, Desk, Note, Stopped};
use super::state::{Flight, State};

/// Which call goes where, and when.
struct Place<'a> {
    now: At,
    ticket: Ticket,
    slug: &'a str,
    endpoint: Arc<str>,
    kind: Kind,
}

/// How a call came through the gateway.
struct Passage {
    delay: Duration,
    in_pause: InPause,
    slowed: bool,
    holds: Vec<Hold>,
    /// Why it gets no further, or else the fault that strikes it.
    stopped: Option<Stopped>,
    act: Option<Act>,
}

impl State {
    pub(super) fn receive(&mut self, now: At, call: &Call) -> Reaction {
        let now = self.advance(now);
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let path = call.path.split('?').next().unwrap_or_default();
        let slug = path.split('/').nth(1).unwrap_or_default();
        if let Some((endpoint, kind)) = self.open(slug).and_then(|channel| channel.endpoint(path)) {
            return self.arrive(call, &Place { now, ticket, slug, endpoint, kind });
        }
        self.unrouted += 1;
        let leaving = Leaving { at: now, wall: self.wall, skew: 0 };
        let then = Then::Answer(leaving.error(404, "not_found", "no such channel or endpoint"));
        Reaction { ticket, delay: Duration::ZERO, then }
    }

    fn arrive(&mut self, call: &Call, place: &Place<'_>) -> Reaction {
        let Place { now, ticket, .. } = *place;
        let away = self.outage_of(place.slug, now);
        let wall = self.wall;
        let Self { channels, rng, total, store, .. } = self;
        let refused = Reaction { ticket, delay: Duration::ZERO, then: Then::Refuse };
        let Some(channel) = channels.get_mut(place.slug) else { return refused };
        let read = wire::read(call, place.kind, place.slug);
        let property = read.property.as_deref();
        if away == Some(OutageKind::Refuse)
            || channel.strike(rng, now, &place.endpoint, property, true).is_some()
        {
            channel.count(total, &place.endpoint, |tally| tally.connections_refused += 1);
            return refused;
        }
        let mut passage = pass(channel, rng, wall, place, property);
        if passage.stopped.is_none() {
            passage.stopped = away.map(Stopped::Away);
        }
        if passage.stopped.is_none() && !channel.auth.admit(&channel.config.auth, now, call) {
            passage.stopped = Some(Stopped::Token);
        }
        if passage.stopped.is_none() {
            passage.act = channel.strike(rng, now, &place.endpoint, property, false);
        }
        if let Some(Act::Slow { by }) = passage.act {
            passage.delay = passage.delay.saturating_add(by);
        }
        let leaving = Leaving { at: now + passage.delay, wall, skew: channel.config.date_skew };
        let strict = channel.config.strict && place.kind != Kind::Other;
        let mut desk = Desk { channel, store, endpoint: &place.endpoint, now, leaving, strict };
        let mark = mark(&passage, if strict { &read.wrong } else { &[] });
        let (decided, note) = match passage.stopped.take() {
            Some(stopped) => (desk.turn_away(stopped, passage.delay), Note::None),
            None => desk.serve(passage.act.as_ref(), &read),
        };
        self.enter(place, read, passage, decided, mark_outcome(mark, note))
    }

    /// Writes the call into the books and puts it in flight.
    fn enter(
        &mut self,
        place: &Place<'_>,
        read: Read,
        passage: Passage,
        decided: Decided,
        mut mark: Tally,
    ) -> Reaction {
        let Place { now, ticket, .. } = *place;
        let (status, lost) = (decided.then.status(), decided.is_lost());
        let (cell_overlap, room_overlap) = self.overlaps(&read);
        mark.committed = u64::from(decided.applied);
        mark.statuses = status.map(|status| (status, 1)).into_iter().collect::<BTreeMap<_, _>>();
        mark.cuts = u64::from(matches!(decided.then, Then::Cut | Then::CutInAnswer { .. }));
        mark.hangs = u64::from(matches!(decided.then, Then::Hang));
        mark.garbage = u64::from(matches!(decided.then, Then::Garbage(_)));
        mark.lost_answers = u64::from(lost);
        mark.cell_overlaps = u64::from(cell_overlap);
        mark.inventory_overlaps = u64::from(room_overlap);
        let Self { channels, total, .. } = self;
        let mut channel: Arc<str> = place.slug.into();
        if let Some(open) = channels.get_mut(place.slug) {
            open.count(total, &place.endpoint, |tally| tally.enter(&mark));
            channel = Arc::clone(&open.slug);
        }
        let leaves = if matches!(decided.then, Then::Hang) { At::MAX } else { now + passage.delay };
        self.flights.insert(
            ticket.0,
            Flight {
                channel: place.slug.to_owned(),
                endpoint: Arc::clone(&place.endpoint),
                property: read.property.clone(),
                cell: read.cell.clone(),
                holds: passage.holds,
                leaves,
                asks: decided.asks,
                tells: decided.applied && !lost,
            },
        );
        self.note(Arrival {
            at: now,
            delay: passage.delay,
            channel,
            endpoint: Arc::clone(&place.endpoint),
            property: read.property,
            cell: read.cell,
            correlation_id: read.correlation_id,
            idempotency_key: read.idempotency_key,
            status,
            applied: decided.applied,
            into_pause: passage.in_pause == InPause::Yes,
            ticket: ticket.0,
        });
        Reaction { ticket, delay: passage.delay, then: decided.then }
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

/// Through pauses and limits.
fn pass(
    channel: &mut Chan,
    rng: &mut StdRng,
    wall: Wall,
    place: &Place<'_>,
    property: Option<&str>,
) -> Passage {
    let now = place.now;
    let in_pause = channel.in_pause(now, &place.endpoint, property);
    let scope = Scope { endpoint: &place.endpoint, property: property.unwrap_or_default() };
    let refusal = channel.gates.check(now, scope, wall);
    let mut delay = channel.latency(rng);
    let mut slowed = false;
    if let (Some(_), OverLimit::Slow(by)) = (&refusal, channel.config.over_limit) {
        delay = delay.saturating_add(by);
        slowed = true;
    }
    let refusal = refusal.filter(|_| !slowed);
    let holds = channel.gates.count(now, scope, wall, refusal.is_none());
    Passage { delay, in_pause, slowed, holds, stopped: refusal.map(Stopped::Limit), act: None }
}

/// The counts that a call raises by coming.
fn mark(passage: &Passage, wrong: &[String]) -> Tally {
    Tally {
        received: 1,
        refused: u64::from(matches!(passage.stopped, Some(Stopped::Limit(_)))),
        unauthorized: u64::from(matches!(passage.stopped, Some(Stopped::Token))),
        slowed: u64::from(passage.slowed),
        into_pause: u64::from(passage.in_pause == InPause::Yes),
        into_pause_grace: u64::from(passage.in_pause == InPause::Grace),
        malformed_texts: if wrong.is_empty() { Vec::new() } else { vec![wrong.join("; ")] },
        ..Tally::default()
    }
}

fn mark_outcome(mark: Tally, note: Note) -> Tally {
    Tally {
        replays: u64::from(note == Note::Replay),
        key_conflicts: u64::from(note == Note::Conflict),
        ..mark
    }
}
