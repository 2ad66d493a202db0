//! The OTA behind real sockets: HTTP/1.1 spoken by hand, since most of what it must do is what an HTTP
//! library rightly refuses to do.

mod connection;
mod control;
mod request;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::at::At;
use crate::books::Books;
use crate::ota::Ota;

/// A running server. Dropping it stops it, without waiting.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    desk: Desk,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What every connection needs.
#[derive(Clone, Debug)]
struct Desk {
    ota: Arc<Ota>,
    start: Instant,
    /// The OTA's time at `start`.
    base: At,
}

impl Desk {
    fn now(&self) -> At {
        self.base + self.start.elapsed()
    }

    fn instant(&self, at: At) -> Instant {
        // A day is as good as never: whoever waits looks again.
        self.start + at.since(self.base).min(self.start.elapsed().saturating_add(Duration::from_secs(86_400)))
    }
}

impl Server {
    /// Listens on `addr` (port 0 takes a free one) and lets `ota`'s time go on from
    /// where it stands, with the real time behind it unless its epoch is configured.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    #[expect(clippy::unused_async, reason = "starting may come to wait, and always needs a runtime")]
    pub async fn start(ota: Arc<Ota>, addr: SocketAddr) -> io::Result<Self> {
        // Bound but never listening: keeps the port ours while an outage refuses connections.
        let holder = socket(addr)?;
        let addr = holder.local_addr()?;
        ota.set_wall(wall_clock());
        let base = ota.now();
        let listener = ota.listening(base).0.then(|| listen(addr)).transpose()?;
        let desk = Desk { ota, start: Instant::now(), base };
        let server =
            Self { addr, desk: desk.clone(), stop: CancellationToken::new(), tasks: TaskTracker::new() };
        let (stop, tasks) = (server.stop.clone(), server.tasks.clone());
        server.tasks.spawn(async move {
            accept(listener, addr, &desk, &stop, &tasks).await;
            drop(holder);
        });
        Ok(server)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and the address, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The OTA behind it.
    pub fn ota(&self) -> &Arc<Ota> {
        &self.desk.ota
    }

    /// The time on its clock.
    pub fn now(&self) -> At {
        self.desk.now()
    }

    /// The OTA's books up to now.
    pub fn books(&self) -> Books {
        self.desk.ota.books(self.now())
    }

    /// Closes the listener and every connection, and waits until they are.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server's dates are those of the real clock, and this is where it is read"
)]
fn wall_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

fn socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    socket(addr)?.listen(1_024)
}

/// Accepts connections while the OTA can be reached; while it cannot, there is no listener.
async fn accept(
    mut listener: Option<TcpListener>,
    addr: SocketAddr,
    desk: &Desk,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) {
    // Connections of one stretch of being reachable; they end with it.
    let mut stretch = stop.child_token();
    loop {
        let changed = desk.ota.changed();
        tokio::pin!(changed);
        // Registered before the look, so that no change falls between.
        changed.as_mut().enable();
        let (open, next) = desk.ota.listening(desk.now());
        if !open && listener.take().is_some() {
            stretch.cancel();
            stretch = stop.child_token();
        }
        if open && listener.is_none() {
            listener = listen(addr).ok();
        }
        // A listener that could not be had is tried for again soon.
        let retry = open && listener.is_none();
        let edge = next.map_or_else(|| desk.instant(At::MAX), |at| desk.instant(at));
        let edge = if retry { Instant::now() + Duration::from_millis(20) } else { edge };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = &mut changed => break,
                () = tokio::time::sleep_until(edge) => break,
                accepted = take(listener.as_ref()) => match accepted {
                    Ok(stream) => {
                        tasks.spawn(connection::serve(stream, desk.clone(), stretch.clone()));
                    }
                    // Out of file descriptors, most likely: let some close.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
            }
        }
    }
}

async fn take(listener: Option<&TcpListener>) -> io::Result<tokio::net::TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}
