//! Lanes that share budgets: one lock, one line, one timer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use ota_governor_core::name::PropertyId;
use ota_governor_core::time::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

use super::book::Book;
use super::driver::drive;
use super::holds::Holds;
use super::line::{Lane, Turn, Waiter};
use super::pump::{Marks, pump, take_up_to};
use super::turn::expected;
use super::waiting::Waiting;
use crate::clock::Clock;
use crate::ledger::{Hold, PastCall};
use crate::limiter::lanes::LaneLimits;
use crate::limiter::{Ask, Grant, LimitStatus, Outlook, Permit, PermitId, Release};

/// What a group starts from.
pub(super) struct Start {
    pub(super) id: u32,
    pub(super) lanes: Vec<LaneLimits>,
    /// Calls of a former process, each with the number of its lane.
    pub(super) past: Vec<(usize, PastCall)>,
}

/// An answer at once, or a place in line.
pub(super) enum Answer {
    Now(Grant),
    Later(Waiting),
}

/// Lanes that share budgets.
#[derive(Debug)]
pub(super) struct Group {
    me: Weak<Self>,
    id: u32,
    clock: Clock,
    state: Mutex<State>,
    sooner: Arc<Notify>,
    driver: OnceLock<AbortHandle>,
}

#[derive(Debug)]
struct State {
    lanes: Vec<Lane>,
    book: Book,
    taken: HashMap<u64, Taken>,
    /// Permits and arrivals are numbered together.
    numbered: u64,
    /// When to look at the line again.
    due: Option<Timestamp>,
    wakeups: u64,
}

/// A permit that is out.
#[derive(Debug)]
struct Taken {
    lane: usize,
    property: Option<PropertyId>,
    granted_at: Timestamp,
    cost: u64,
}

/// Answers to hand over once the lock is gone.
type Tidings = Vec<(oneshot::Sender<Grant>, Grant)>;

impl State {
    fn number(&mut self) -> u64 {
        self.numbered = self.numbered.saturating_add(1);
        self.numbered
    }

    fn someone_waits(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.is_empty())
    }

    /// Refuses one who is still in line if the turn would not come by the deadline.
    fn refuse_if_after(
        &mut self,
        lane: usize,
        turn: Turn,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Option<Grant> {
        self.lanes.get(lane)?.get(turn)?;
        let turn_at = expected(&self.lanes, &mut self.book, lane, turn, now);
        if turn_at.at.is_some_and(|at| at <= deadline) {
            return None;
        }
        self.lanes.get_mut(lane)?.leave(turn);
        Some(Grant::Refused { wait: turn_at.at.map(|at| now.until(at)), by: turn_at.by })
    }

    /// Refuses one who is still in line.
    fn refuse(&mut self, lane: usize, turn: Turn, now: Timestamp) -> Option<Grant> {
        self.lanes.get(lane)?.get(turn)?;
        let turn_at = expected(&self.lanes, &mut self.book, lane, turn, now);
        self.lanes.get_mut(lane)?.leave(turn);
        Some(Grant::Refused { wait: turn_at.at.map(|at| now.until(at)), by: turn_at.by })
    }
}

impl Group {
    pub(super) fn new(start: Start, clock: Clock) -> Arc<Self> {
        let (mut book, numbers) = Book::new(&start.lanes);
        let lanes: Vec<Lane> = start
            .lanes
            .into_iter()
            .zip(numbers)
            .map(|(limits, numbers)| {
                let keyed = book.entries(&numbers).any(|(_, entry)| entry.is_keyed());
                Lane::new(limits.lane, numbers, keyed)
            })
            .collect();
        replay(&lanes, &mut book, start.past, clock.now());
        let state = State { lanes, book, taken: HashMap::new(), numbered: 0, due: None, wakeups: 0 };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            id: start.id,
            clock,
            state: Mutex::new(state),
            sooner: Arc::new(Notify::new()),
            driver: OnceLock::new(),
        })
    }

    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn sooner(&self) -> Arc<Notify> {
        self.sooner.clone()
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        self.lock().due
    }

    pub(super) fn wakeups(&self) -> u64 {
        self.lock().wakeups
    }

    /// A panic elsewhere leaves every budget whole: each decision is finished before the next begins.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants at once, refuses at once, or gives a place in line.
    pub(super) fn ask(self: &Arc<Self>, lane: usize, ask: Ask) -> Answer {
        let mut guard = self.lock();
        let state = &mut *guard;
        let now = self.clock.now();
        let (want, cost) = (ask.want.max(1), ask.cost.max(1));
        let busy = state.someone_waits();
        let Some(mine) = state.lanes.get(lane) else {
            return Answer::Now(Grant::Refused { wait: None, by: format!("no limits for {}", ask.lane) });
        };
        if let Some((_, entry)) = state.book.entries(&mine.limits).find(|(_, entry)| cost > entry.capacity())
        {
            return Answer::Now(Grant::NeverFits { limit: entry.name().clone() });
        }
        if !busy
            && let Ok(taken) =
                take_up_to(mine, &mut state.book, want, &ask.properties, cost, now, &mut Marks::default())
        {
            return Answer::Now(Grant::Granted(self.permits(state, lane, cost, now, taken)));
        }

        let turn = (ask.priority, state.number());
        let deadline = ask.max_wait.map(|wait| now + wait);
        let (tell, mut told) = oneshot::channel();
        if let Some(mine) = state.lanes.get_mut(lane) {
            mine.join(turn, Waiter { want, cost, properties: ask.properties, deadline, tell });
        }
        let mut tidings = self.walk(state, now);
        let refused = deadline
            .and_then(|deadline| state.refuse_if_after(lane, turn, now, deadline))
            // Those behind were held up by one who is no longer there.
            .inspect(|_| tidings.extend(self.walk(state, now)));
        drop(guard);
        hand_over(tidings);
        if let Some(answer) = refused.or_else(|| told.try_recv().ok()) {
            return Answer::Now(answer);
        }
        self.driver.get_or_init(|| tokio::spawn(drive(Arc::downgrade(self))).abort_handle());
        Answer::Later(Waiting { group: self.clone(), lane, turn, deadline, told, over: false })
    }

    fn permits(
        self: &Arc<Self>,
        state: &mut State,
        lane: usize,
        cost: u64,
        now: Timestamp,
        properties: Vec<Option<PropertyId>>,
    ) -> Vec<Permit> {
        properties
            .into_iter()
            .map(|property| {
                let number = state.number();
                let taken = Taken { lane, property: property.clone(), granted_at: now, cost };
                state.taken.insert(number, taken);
                Permit::new(PermitId { group: self.id, number }, property, now, self.clone())
            })
            .collect()
    }

    /// Walks the line, grants what fits and sets the timer.
    fn walk(self: &Arc<Self>, state: &mut State, now: Timestamp) -> Tidings {
        let round = pump(&state.lanes, &mut state.book, now);
        let mut tidings = Tidings::new();
        for (lane, turn, properties) in round.granted {
            if let Some(waiter) = state.lanes.get_mut(lane).and_then(|lane| lane.leave(turn)) {
                let permits = self.permits(state, lane, waiter.cost, now, properties);
                tidings.push((waiter.tell, Grant::Granted(permits)));
            }
        }
        let before = state.due;
        state.due = round.look_again;
        if state.due.is_some_and(|due| before.is_none_or(|before| due < before)) {
            self.sooner.notify_one();
        }
        tidings
    }

    /// The timer's turn.
    pub(super) fn wake(self: &Arc<Self>) {
        let mut guard = self.lock();
        let now = self.clock.now();
        guard.wakeups = guard.wakeups.saturating_add(1);
        if guard.due.is_some_and(|due| due <= now) {
            guard.due = None;
            let tidings = self.walk(&mut guard, now);
            drop(guard);
            hand_over(tidings);
        }
    }

    /// Leaves the line; those behind may go on.
    pub(super) fn leave(self: &Arc<Self>, lane: usize, turn: Turn) {
        let mut guard = self.lock();
        let left = guard.lanes.get_mut(lane).and_then(|lane| lane.leave(turn));
        if left.is_some() && guard.someone_waits() {
            let tidings = self.walk(&mut guard, self.clock.now());
            drop(guard);
            hand_over(tidings);
        }
    }

    /// At the deadline: the refusal, unless the turn has come.
    pub(super) fn give_up(self: &Arc<Self>, lane: usize, turn: Turn) -> Option<Grant> {
        let mut guard = self.lock();
        let now = self.clock.now();
        let mut tidings = self.walk(&mut guard, now);
        let state = &mut *guard;
        let refused = state.refuse(lane, turn, now);
        if refused.is_some() {
            tidings.extend(self.walk(state, now));
        }
        drop(guard);
        hand_over(tidings);
        refused
    }

    /// Puts the holds; askers with a deadline that a hold outlasts are refused.
    pub(super) fn set_holds(self: &Arc<Self>, holds: &[Hold]) {
        let mut guard = self.lock();
        let now = self.clock.now();
        let mut tidings = Tidings::new();
        for lane in &mut guard.lanes {
            lane.holds = Holds::new(&lane.key, holds);
            let Some(held) = lane.holds.on_lane(now).cloned() else { continue };
            for turn in lane.due_before(held.until) {
                let wait = held.until.map(|until| now.until(until));
                let refused = Grant::Refused { wait, by: held.by.clone() };
                tidings.extend(lane.leave(turn).map(|waiter| (waiter.tell, refused)));
            }
        }
        tidings.extend(self.walk(&mut guard, now));
        drop(guard);
        hand_over(tidings);
    }

    pub(super) fn outlook(&self, lane: usize, property: Option<&PropertyId>) -> Option<Outlook> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let now = self.clock.now();
        let mine = state.lanes.get(lane)?;
        let held = [mine.holds.on_lane(now), mine.holds.on_property(property, now)];
        let held = held.into_iter().flatten().max_by_key(|held| (held.until.is_none(), held.until));
        let mut outlook = held.map(|held| Outlook { by: held.by.clone(), until: held.until });
        for (_, entry) in state.book.entries(&mine.limits) {
            // Without a property nothing is known about limits per property.
            if (entry.is_keyed() && property.is_none()) || entry.look(property).fits(now, 1) {
                continue;
            }
            let at = entry.look(property).next_at(now, 1);
            let binds = outlook.as_ref().is_none_or(|other| other.until.is_some_and(|until| at > until));
            if binds {
                outlook = Some(Outlook { by: entry.name().to_string(), until: Some(at) });
            }
        }
        outlook
    }

    pub(super) fn status(&self) -> Vec<LimitStatus> {
        let mut state = self.lock();
        let now = self.clock.now();
        state.book.status(now)
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.lock().book.kept()
    }
}

/// A permit keeps its group alive, so that its call still counts when the limiter itself is gone.
impl Release for Group {
    fn release(&self, permit: PermitId, sent: bool) {
        if let Some(me) = self.me.upgrade() {
            me.end(permit, sent);
        }
    }
}

impl Group {
    fn end(self: &Arc<Self>, permit: PermitId, sent: bool) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(taken) = state.taken.remove(&permit.number) else { return };
        let Some(lane) = state.lanes.get(taken.lane) else { return };
        let now = self.clock.now();
        let property = taken.property.as_ref();
        if sent {
            state.book.settle(&lane.limits, property, now, taken.cost);
        } else {
            state.book.give_back(&lane.limits, property, taken.granted_at, taken.cost);
        }
        if state.someone_waits() {
            let tidings = self.walk(state, now);
            drop(guard);
            hand_over(tidings);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.get() {
            driver.abort();
        }
    }
}

/// Tells the askers; what one who has gone does not take goes back.
fn hand_over(tidings: Tidings) {
    for (tell, grant) in tidings {
        if let Err(Grant::Granted(permits)) = tell.send(grant) {
            for permit in permits {
                permit.unused();
            }
        }
    }
}

/// Enters calls of a former process in the order in which they were sent and answered.
fn replay(lanes: &[Lane], book: &mut Book, past: Vec<(usize, PastCall)>, now: Timestamp) {
    let mut events = Vec::new();
    for (lane, call) in past {
        let sent = call.sent_at.min(now);
        let answered = call.answered_at.unwrap_or(now).clamp(sent, now);
        events.push((sent, false, lane, call.property.clone()));
        events.push((answered, true, lane, call.property));
    }
    events.sort_by_key(|(at, is_answer, ..)| (*at, *is_answer));
    for (at, is_answer, lane, property) in events {
        let Some(lane) = lanes.get(lane) else { continue };
        if is_answer {
            book.settle(&lane.limits, Some(&property), at, 1);
        } else {
            book.resume(&lane.limits, Some(&property), at, now);
            book.take(&lane.limits, Some(&property), at, 1);
        }
    }
}
