//! The outside of the governor: a simulated OTA, the network to it, and a clock for both.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method};
use ota_governor::clock::Clock;
use ota_governor::core::time::Timestamp;
use ota_governor::transport::{Call, Reply};
use ota_sim::{Answer, At, Books, Ota, Reaction, Then};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

/// 2026-09-20T10:00:00Z, a Sunday: time zero of the simulated OTA too.
pub(crate) const START: Timestamp = Timestamp::from_micros(1_789_898_400_000_000);

/// The longest that a call or an answer is under way.
pub(crate) const FARTHEST: Duration = Duration::from_millis(80);

/// A call as the governor handed it to the network.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) at: Duration,
    pub(crate) correlation_id: String,
    pub(crate) idempotency_key: String,
    pub(crate) authorization: String,
    pub(crate) body: Value,
}

/// A channel and the way to it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ota: Ota,
    pub(crate) clock: Clock,
    /// The longest way there, and the longest way back; zero means no way at all.
    far: Duration,
    chance: Mutex<StdRng>,
    sent: Mutex<Vec<Sent>>,
    pause_told_at: AtomicU64,
    pause_lost: AtomicBool,
    under_way: TaskTracker,
}

impl World {
    /// A channel right at hand: calls and answers take no time beyond the channel's own.
    pub(crate) fn near(ota: ota_sim::Config) -> Arc<Self> {
        Self::new(ota, Duration::ZERO, 0)
    }

    /// A channel up to [`FARTHEST`] away, each way.
    pub(crate) fn far(ota: ota_sim::Config, seed: u64) -> Arc<Self> {
        Self::new(ota, FARTHEST, seed)
    }

    fn new(ota: ota_sim::Config, far: Duration, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            ota: Ota::new(ota),
            clock: Clock::starting_at(START),
            far,
            chance: Mutex::new(StdRng::seed_from_u64(seed)),
            sent: Mutex::default(),
            pause_told_at: AtomicU64::new(u64::MAX),
            pause_lost: AtomicBool::new(false),
            under_way: TaskTracker::new(),
        })
    }

    /// Since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.now().since(START)
    }

    pub(crate) fn at(&self) -> At {
        At::from(self.elapsed())
    }

    /// Sleeps until this long after the start.
    pub(crate) async fn until(&self, since_start: Duration) {
        self.clock.sleep_until(START + since_start).await;
    }

    pub(crate) fn books(&self) -> Books {
        self.ota.books(self.at())
    }

    /// Every call handed to the network, in order.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The calls that carried this mutation.
    pub(crate) fn sent_of(&self, correlation_id: &str) -> Vec<Sent> {
        self.sent().into_iter().filter(|sent| sent.correlation_id == correlation_id).collect()
    }

    /// When calls arrived, in whole milliseconds since the start.
    pub(crate) fn arrivals_ms(&self) -> Vec<u64> {
        self.ota.arrivals().iter().map(|arrival| arrival.at.as_micros() / 1_000).collect()
    }

    /// The ids applied to each cell, in the order applied.
    pub(crate) fn applied(&self) -> BTreeMap<String, Vec<String>> {
        let cells = self.ota.cells().into_iter();
        cells
            .map(|book| {
                let key = serde_json::to_string(book.cell.as_ref()).unwrap();
                (key, book.applied.iter().map(ToString::to_string).collect())
            })
            .collect()
    }

    /// Whether a killed process took the word of a pause with it.
    pub(crate) fn lost_a_pause(&self) -> bool {
        self.pause_lost.load(Ordering::Relaxed)
    }

    /// The process at work was killed now.
    pub(crate) fn process_killed(&self) {
        // What was told in this very instant may not have been written.
        if self.pause_told_at.load(Ordering::Relaxed) == self.at().as_micros() {
            self.pause_lost.store(true, Ordering::Relaxed);
        }
    }

    /// Returns when nothing is under way any more.
    pub(crate) async fn quiet(&self) {
        self.under_way.close();
        self.under_way.wait().await;
        self.under_way.reopen();
    }

    /// Puts a call on its way. What comes back does so through `answer`; its other end dropped is a
    /// caller gone away.
    pub(crate) fn carry(self: &Arc<Self>, call: &Call, answer: oneshot::Sender<Reply>) {
        self.sent.lock().unwrap().push(self.seen(call));
        let path = call.url.splitn(4, '/').last().unwrap_or_default();
        let call = ota_sim::Call {
            method: Method::POST,
            path: format!("/{path}"),
            headers: call.headers.clone(),
            body: call.body.clone(),
        };
        let (there, back) = (self.way(), self.way());
        self.under_way.spawn(Arc::clone(self).deliver(call, answer, there, back));
    }

    async fn deliver(
        self: Arc<Self>,
        call: ota_sim::Call,
        mut answer: oneshot::Sender<Reply>,
        there: Duration,
        back: Duration,
    ) {
        pass(there).await;
        let Reaction { ticket, delay, then } = self.ota.receive(self.at(), &call);
        if let Then::Refuse = then {
            pass(back).await;
            let _ = answer.send(Reply::NotConnected { detail: "connection refused".to_owned() });
            return;
        }
        tokio::select! {
            biased;
            () = pass(delay), if !matches!(then, Then::Hang) => self.ota.finish(self.at(), ticket),
            () = answer.closed() => return self.ota.abandon(self.at(), ticket),
        }
        pass(back).await;
        let reply = match then {
            Then::Answer(said)
            | Then::CutInAnswer { answer: said, .. }
            | Then::Drip { answer: said, .. }
            | Then::Huge { answer: said, .. } => self.answered(said),
            Then::Refuse | Then::Cut | Then::Hang | Then::Garbage(_) => {
                Reply::Unknown { detail: "connection closed before the answer".to_owned() }
            }
        };
        let asks = matches!(&reply, Reply::Answered { headers, .. } if headers.contains_key("retry-after"));
        let told = answer.send(reply).is_ok();
        if asks && told {
            self.pause_told_at.store(self.at().as_micros(), Ordering::Relaxed);
        }
        if asks && !told {
            self.pause_lost.store(true, Ordering::Relaxed);
        }
    }

    fn answered(&self, said: Answer) -> Reply {
        Reply::Answered { status: said.status, headers: said.headers, body: said.body, at: self.clock.now() }
    }

    fn way(&self) -> Duration {
        let most = u64::try_from(self.far.as_millis()).unwrap();
        Duration::from_millis(self.chance.lock().unwrap().random_range(0..=most))
    }

    fn seen(&self, call: &Call) -> Sent {
        let text = |headers: &HeaderMap, name: &str| {
            headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        Sent {
            at: self.elapsed(),
            correlation_id: text(&call.headers, "x-correlation-id"),
            idempotency_key: text(&call.headers, "x-idempotency-key"),
            authorization: text(&call.headers, "authorization"),
            body: serde_json::from_slice(&call.body).unwrap(),
        }
    }
}

/// A timer never fires in its own instant: no way must be no timer.
async fn pass(length: Duration) {
    if !length.is_zero() {
        sleep(length).await;
    }
}
