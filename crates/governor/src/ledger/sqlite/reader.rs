//! Threads that read: each call sees one snapshot of the file and never waits for the writer.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::{Fault, Outcome};
use super::schema;
use crate::ledger::LedgerError;

type Call = Box<dyn FnOnce(&Connection) + Send>;

/// The handle of a reading thread; dropped, it waits for it to end.
#[derive(Debug)]
pub(super) struct Reader {
    calls: Mutex<Option<Sender<Call>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Reader {
    pub(super) fn start(path: &Path) -> Result<Self, LedgerError> {
        let conn = schema::open_reader(path)?;
        let (calls, inbox) = channel::<Call>();
        let thread = std::thread::Builder::new()
            .name("ledger-reader".to_owned())
            .spawn(move || inbox.iter().for_each(|call| call(&conn)))
            .map_err(|e| LedgerError::Failed { doing: "start its reader", source: Box::new(e) })?;
        Ok(Self { calls: Mutex::new(Some(calls)), thread: Mutex::new(Some(thread)) })
    }

    /// Reads one snapshot.
    pub(super) async fn run<T, F>(&self, doing: &'static str, work: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |conn| {
            let read = snapshot(conn, work).map_err(|fault| fault.failed(doing));
            // The asker may have gone.
            let _ = reply.send(read);
        });
        {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.as_ref().ok_or(LedgerError::Closed)?.send(call).map_err(|_| LedgerError::Closed)?;
        }
        answer.await.map_err(|_| LedgerError::Closed)?
    }

    /// Takes no more calls; the thread ends when it has done those it has.
    pub(super) fn close(&self) -> Option<JoinHandle<()>> {
        drop(self.calls.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(thread) = self.close() {
            // A panic of the thread has been reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

fn snapshot<T>(conn: &Connection, work: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    conn.prepare_cached("BEGIN")?.execute([])?;
    let read = work(conn);
    let ended = conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
    if ended.is_err() && !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK").map_err(Fault::Sql)?;
    }
    read
}
