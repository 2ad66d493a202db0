//! One connection: requests in, reactions out.

use std::fmt::Write as _;
use std::io;

use bytes::BytesMut;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reaction::{Answer, Reaction, Then, Ticket};

use super::request::{Progress, Request, take};
use super::{Desk, control};

/// What becomes of the connection after a call.
enum After {
    Keep,
    Close,
    /// Closed with a reset, as a host does where nobody listens.
    Reset,
}

/// Most bytes read ahead while an answer is due.
const MOST_AHEAD: usize = 1_024 * 1_024;

/// Serves a connection until either side has enough.
pub(super) async fn serve(mut stream: TcpStream, desk: Desk, stop: CancellationToken) {
    // Answers are small: waiting to fill a packet would only distort the times.
    let _ = stream.set_nodelay(true);
    let mut buffer = BytesMut::with_capacity(4_096);
    let after = tokio::select! {
        () = stop.cancelled() => After::Reset,
        after = converse(&mut stream, &mut buffer, &desk) => after.unwrap_or(After::Close),
    };
    match after {
        After::Reset => {
            let _ = stream.set_zero_linger();
        }
        After::Keep | After::Close => {
            let _ = stream.shutdown().await;
        }
    }
}

async fn converse(stream: &mut TcpStream, buffer: &mut BytesMut, desk: &Desk) -> io::Result<After> {
    loop {
        let request = match take(buffer) {
            Progress::Whole(request) => request,
            Progress::More => {
                if stream.read_buf(buffer).await? == 0 {
                    return Ok(After::Close);
                }
                continue;
            }
            Progress::Ask => {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                if stream.read_buf(buffer).await? == 0 {
                    return Ok(After::Close);
                }
                continue;
            }
            Progress::Bad(fault) => {
                let text = format!(
                    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{fault}",
                    fault.len()
                );
                stream.write_all(text.as_bytes()).await?;
                return Ok(After::Close);
            }
        };
        let after = if request.call.path.starts_with("/_sim/") {
            let answer = control::answer(desk, &request.call);
            answer_whole(stream, &answer, &request).await?
        } else {
            react(stream, buffer, desk, &request).await?
        };
        match after {
            After::Keep if request.keep => {}
            After::Keep | After::Close => return Ok(After::Close),
            After::Reset => return Ok(After::Reset),
        }
    }
}

/// Gives the ticket back, also when the connection's task is dropped in the middle.
struct InFlight<'a> {
    desk: &'a Desk,
    ticket: Option<Ticket>,
}

impl InFlight<'_> {
    /// The answer leaves. Said before its last bytes do: whoever has read them may call again at once.
    fn leaves(mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.desk.ota.finish(self.desk.now(), ticket);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.desk.ota.abandon(self.desk.now(), ticket);
        }
    }
}

async fn react(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    desk: &Desk,
    request: &Request,
) -> io::Result<After> {
    let Reaction { ticket, delay, then } = desk.ota.receive(desk.now(), &request.call);
    let in_flight = InFlight { desk, ticket: Some(ticket) };
    if !delay.is_zero() && !stays(stream, buffer, Some(Instant::now() + delay)).await {
        return Ok(After::Close);
    }
    match then {
        Then::Answer(answer) => {
            in_flight.leaves();
            answer_whole(stream, &answer, request).await
        }
        Then::Refuse => Ok(After::Reset),
        Then::Cut => {
            in_flight.leaves();
            Ok(After::Close)
        }
        Then::CutInAnswer { answer, after } => {
            let mut bytes = head(&answer, answer.body.len(), true);
            bytes.extend_from_slice(answer.body.get(..after).unwrap_or_default());
            in_flight.leaves();
            stream.write_all(&bytes).await?;
            Ok(After::Close)
        }
        Then::Hang => {
            stays(stream, buffer, None).await;
            in_flight.leaves();
            Ok(After::Close)
        }
        Then::Drip { answer, interval, piece } => {
            stream.write_all(&head(&answer, answer.body.len(), request.keep)).await?;
            let (most, last) = answer.body.split_at(answer.body.len().saturating_sub(piece.max(1)));
            for part in most.chunks(piece.max(1)) {
                stream.write_all(part).await?;
                if !stays(stream, buffer, Some(Instant::now() + interval)).await {
                    return Ok(After::Close);
                }
            }
            in_flight.leaves();
            stream.write_all(last).await?;
            Ok(After::Keep)
        }
        Then::Huge { answer, bytes } => {
            in_flight.leaves();
            let length = usize::try_from(bytes).unwrap_or(usize::MAX);
            stream.write_all(&head(&answer, length, false)).await?;
            let block = vec![b' '; HUGE_BLOCK];
            let mut left = length;
            while left > 0 {
                let part = block.get(..left.min(HUGE_BLOCK)).unwrap_or_default();
                stream.write_all(part).await?;
                left = left.saturating_sub(part.len());
            }
            Ok(After::Close)
        }
        Then::Garbage(bytes) => {
            in_flight.leaves();
            stream.write_all(&bytes).await?;
            Ok(After::Close)
        }
    }
}

/// Bytes of a huge body written at once.
const HUGE_BLOCK: usize = 64 * 1_024;

/// Waits until `until`, or for ever; false if the caller goes away before.
async fn stays(stream: &mut TcpStream, buffer: &mut BytesMut, until: Option<Instant>) -> bool {
    let due = async {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(due);
    loop {
        tokio::select! {
            biased;
            () = &mut due => return true,
            read = stream.read_buf(buffer), if buffer.len() < MOST_AHEAD => {
                if !matches!(read, Ok(1..)) {
                    return false;
                }
            }
        }
    }
}

async fn answer_whole(stream: &mut TcpStream, answer: &Answer, request: &Request) -> io::Result<After> {
    let mut bytes = head(answer, answer.body.len(), request.keep);
    if request.call.method != Method::HEAD && !is_bodiless(answer.status) {
        bytes.extend_from_slice(&answer.body);
    }
    stream.write_all(&bytes).await?;
    Ok(After::Keep)
}

/// Whether HTTP allows such an answer no body.
fn is_bodiless(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn head(answer: &Answer, length: usize, keep: bool) -> Vec<u8> {
    let mut text = String::with_capacity(256);
    let reason = answer.status.canonical_reason().unwrap_or("Unknown");
    let _ = write!(text, "HTTP/1.1 {} {reason}\r\n", answer.status.as_u16());
    let mut bytes = text.into_bytes();
    for (name, value) in &answer.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    let close = if keep { "" } else { "connection: close\r\n" };
    if is_bodiless(answer.status) {
        bytes.extend_from_slice(format!("{close}\r\n").as_bytes());
    } else {
        bytes.extend_from_slice(format!("{close}content-length: {length}\r\n\r\n").as_bytes());
    }
    bytes
}
