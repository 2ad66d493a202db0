//! The one thread that writes: it commits what has gathered in one transaction, then answers all.
//!
//! A group that fails is rolled back whole and its calls are run again one by one, each in its own
//! transaction, so that one bad call (or a disk with room for the small ones only) fails alone.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::fault::{Fault, Outcome};
use super::lock::DispatcherLock;
use super::marks::Marks;
use super::tx::{Lanes, Moved, Tx};
use crate::ledger::LedgerError;

/// Calls that may wait for the writer.
const WAITING: usize = 256;
/// Most rows of one commit, so that a claim never waits long behind a flood of entries.
const GROUP_ROWS: usize = 8_000;
/// How often another process's changes are looked for.
const LOOK: Duration = Duration::from_millis(250);

/// A call on its way to the writer.
trait Call: Send {
    fn rows(&self) -> usize;
    fn run(&mut self, tx: &mut Tx<'_>) -> Outcome<()>;
    fn answer(self: Box<Self>, end: Result<(), Fault>);
}

struct Ask<T, F> {
    doing: &'static str,
    rows: usize,
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, LedgerError>>,
    _room: OwnedSemaphorePermit,
}

impl<T: Send, F: FnMut(&mut Tx<'_>) -> Outcome<T> + Send> Call for Ask<T, F> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Outcome<()> {
        self.result = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, end: Result<(), Fault>) {
        let answer = match (end, self.result) {
            (Ok(()), Some(result)) => Ok(result),
            (Ok(()), None) => Err(LedgerError::Closed),
            (Err(fault), _) => Err(fault.failed(self.doing)),
        };
        // The asker may have gone; what was done stays done.
        let _ = self.reply.send(answer);
    }
}

/// The handle of the writer's thread; the last one dropped waits for it to end.
#[derive(Debug)]
pub(super) struct Writer {
    calls: Mutex<Option<Sender<Box<dyn Call>>>>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer's thread works with.
pub(super) struct Desk {
    pub(super) conn: Connection,
    pub(super) ledger_id: String,
    pub(super) path: PathBuf,
    pub(super) marks: Arc<Marks>,
    /// Let go of only when the connection is closed.
    pub(super) lock: Option<DispatcherLock>,
}

impl Writer {
    pub(super) fn start(desk: Desk) -> std::io::Result<Self> {
        let (calls, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || serve(desk, &inbox))?;
        Ok(Self {
            calls: Mutex::new(Some(calls)),
            room: Arc::new(Semaphore::new(WAITING)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs `work` in the next transaction and answers once that is durable. `work` may run twice, each
    /// time in a transaction that has seen nothing of the other.
    ///
    /// # Cancel safety
    /// Dropped, the work may or may not be done.
    pub(super) async fn run<T, F>(&self, doing: &'static str, rows: usize, work: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Outcome<T> + Send + 'static,
    {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| LedgerError::Closed)?;
        let (reply, answer) = oneshot::channel();
        let ask = Ask { doing, rows, work, result: None, reply, _room: room };
        {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = calls.as_ref().ok_or(LedgerError::Closed)?;
            calls.send(Box::new(ask)).map_err(|_| LedgerError::Closed)?;
        }
        answer.await.map_err(|_| LedgerError::Closed)?
    }

    /// Takes no more calls; the thread ends when it has done those it has.
    pub(super) fn close(&self) -> Option<JoinHandle<()>> {
        self.room.close();
        drop(self.calls.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(thread) = self.close() {
            // A panic of the thread has been reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

fn serve(mut desk: Desk, inbox: &Receiver<Box<dyn Call>>) {
    let mut lanes = Lanes::default();
    let mut seen = data_version(&desk.conn);
    loop {
        let first = match inbox.recv_timeout(LOOK) {
            Ok(call) => Some(call),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Some(first) = first {
            let mut rows = first.rows();
            let mut group = vec![first];
            while rows < GROUP_ROWS {
                let Ok(call) = inbox.try_recv() else { break };
                rows = rows.saturating_add(call.rows());
                group.push(call);
            }
            desk.serve_group(group, &mut lanes);
        }
        // Only other connections' commits move this number, and only other processes write by others.
        let version = data_version(&desk.conn);
        if version.is_some() && version != seen {
            seen = version;
            desk.marks.move_all();
        }
    }
    desk.finish();
}

fn data_version(conn: &Connection) -> Option<i64> {
    conn.prepare_cached("PRAGMA data_version").ok()?.query_row([], |row| row.get(0)).ok()
}

impl Desk {
    fn serve_group(&mut self, mut group: Vec<Box<dyn Call>>, lanes: &mut Lanes) {
        match self.commit(&mut group, lanes) {
            Ok(moved) => {
                // First the marks: who has the answer finds them moved.
                self.announce(&moved);
                for call in group {
                    call.answer(Ok(()));
                }
            }
            Err(End::NotBegun(fault)) => {
                let fault = Arc::new(fault);
                for call in group {
                    call.answer(Err(Fault::Shared(Arc::clone(&fault))));
                }
            }
            Err(End::Broken(fault)) if group.len() < 2 => {
                if let Some(call) = group.pop() {
                    call.answer(Err(fault));
                }
            }
            Err(End::Broken(_)) => {
                for call in group {
                    self.serve_group(vec![call], lanes);
                }
            }
        }
    }

    fn commit(&mut self, group: &mut [Box<dyn Call>], lanes: &mut Lanes) -> Result<Moved, End> {
        self.conn
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]))
            .map_err(|e| End::NotBegun(Fault::Sql(e)))?;
        let done = self.run_all(group, lanes);
        if done.is_err() {
            lanes.forget();
            if !self.conn.is_autocommit() {
                // A rollback that fails leaves the transaction to be rolled back by the next look at the file.
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        }
        done.map_err(End::Broken)
    }

    fn run_all(&mut self, group: &mut [Box<dyn Call>], lanes: &mut Lanes) -> Outcome<Moved> {
        let mut tx = Tx::new(&self.conn, lanes, &self.ledger_id);
        for call in group {
            call.run(&mut tx)?;
        }
        let moved = tx.flush()?;
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(moved)
    }

    fn announce(&self, moved: &Moved) {
        for lane in &moved.lanes {
            self.marks.move_lane(lane);
        }
        for scope in &moved.scopes {
            self.marks.move_scope(scope);
        }
        if moved.set || !moved.scopes.is_empty() {
            self.marks.move_set();
        }
    }

    fn finish(self) {
        let Self { conn, path, lock, .. } = self;
        if let Err((_, error)) = conn.close() {
            tracing::warn!(ledger = %path.display(), %error, "closing the ledger");
        }
        drop(lock);
    }
}

/// How a group ended that was not committed.
enum End {
    /// Nothing was run: another process keeps the file locked.
    NotBegun(Fault),
    /// All was rolled back.
    Broken(Fault),
}
