//! Reading one HTTP/1.1 request from a buffer.

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::call::Call;

/// Most bytes of a head.
const MOST_HEAD: usize = 64 * 1_024;
/// Most bytes of a body.
const MOST_BODY: usize = 16 * 1_024 * 1_024;

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) call: Call,
    /// Whether the caller wants to go on with this connection.
    pub(super) keep: bool,
}

/// How far reading has come.
#[derive(Debug)]
pub(super) enum Progress {
    /// A whole request, taken from the buffer.
    Whole(Request),
    /// More bytes are needed.
    More,
    /// More bytes are needed, and the caller waits for leave to send them.
    Ask,
    /// This is not HTTP.
    Bad(&'static str),
}

/// Takes the next request from `buffer`, if it is all there.
pub(super) fn take(buffer: &mut BytesMut) -> Progress {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if buffer.len() < MOST_HEAD => return Progress::More,
        Ok(httparse::Status::Partial) => return Progress::Bad("the head is too long"),
        Err(_) => return Progress::Bad("the head is not HTTP/1.1"),
    };
    let Some(method) = head.method.and_then(|method| Method::try_from(method).ok()) else {
        return Progress::Bad("the method is not one");
    };
    let path = head.path.unwrap_or_default().to_owned();
    let persistent = head.version == Some(1);
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for field in head.headers.iter() {
        match (HeaderName::try_from(field.name), HeaderValue::from_bytes(field.value)) {
            (Ok(name), Ok(value)) => {
                headers.append(name, value);
            }
            _ => return Progress::Bad("a header is not one"),
        }
    }
    let call = Call { method, path, headers, body: Bytes::new() };
    let has = |name: &str, word: &str| {
        call.text_of(name).is_some_and(|value| value.to_ascii_lowercase().contains(word))
    };
    let keep = if persistent { !has("connection", "close") } else { has("connection", "keep-alive") };
    let rest = buffer.get(length..).unwrap_or_default();
    let body = if has("transfer-encoding", "chunked") { chunked(rest) } else { sized(rest, &call) };
    match body {
        Ok(Some((body, used))) => {
            buffer.advance(length.saturating_add(used));
            Progress::Whole(Request { call: Call { body, ..call }, keep })
        }
        Ok(None) if rest.is_empty() && has("expect", "100-continue") => Progress::Ask,
        Ok(None) => Progress::More,
        Err(fault) => Progress::Bad(fault),
    }
}

/// A body and the bytes it took up, once it is all there.
type Body = Result<Option<(Bytes, usize)>, &'static str>;

fn sized(rest: &[u8], call: &Call) -> Body {
    let length = match call.headers.get("content-length") {
        None => 0,
        Some(_) => match call.text_of("content-length").and_then(|text| text.parse::<usize>().ok()) {
            Some(length) if length <= MOST_BODY => length,
            _ => return Err("the content-length is too long or not a number"),
        },
    };
    Ok(rest.get(..length).map(|body| (Bytes::copy_from_slice(body), length)))
}

fn chunked(rest: &[u8]) -> Body {
    let mut body = BytesMut::new();
    let mut at = 0_usize;
    loop {
        let tail = rest.get(at..).unwrap_or_default();
        let (head, size) = match httparse::parse_chunk_size(tail) {
            Ok(httparse::Status::Complete((head, size))) => {
                (head, usize::try_from(size).unwrap_or(usize::MAX))
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err("a chunk has no size"),
        };
        if size > MOST_BODY.saturating_sub(body.len()) {
            return Err("the body is too long");
        }
        let tail = tail.get(head..).unwrap_or_default();
        if size == 0 {
            return trailers(tail)
                .map(|end| end.map(|end| (body.freeze(), at.saturating_add(head).saturating_add(end))));
        }
        let Some(chunk) = tail.get(..size) else { return Ok(None) };
        match tail.get(size..size.saturating_add(2)) {
            None => return Ok(None),
            Some(b"\r\n") => {}
            Some(_) => return Err("a chunk does not end where it said"),
        }
        body.extend_from_slice(chunk);
        at = at.saturating_add(head).saturating_add(size).saturating_add(2);
    }
}

/// Skips the trailers up to the empty line.
fn trailers(tail: &[u8]) -> Result<Option<usize>, &'static str> {
    if tail.starts_with(b"\r\n") {
        return Ok(Some(2));
    }
    if tail.len() > MOST_HEAD {
        return Err("the trailers are too long");
    }
    Ok(tail.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at.saturating_add(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Request {
        match take(&mut BytesMut::from(text)) {
            Progress::Whole(request) => request,
            other @ (Progress::More | Progress::Ask | Progress::Bad(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sized_body_is_read_only_when_it_is_all_there() {
        let text = "POST /a HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(whole(text).call.body, "hello");
        for cut in 1..text.len() {
            let part = take(&mut BytesMut::from(&text.as_bytes()[..cut]));
            assert!(matches!(part, Progress::More), "{cut}: {part:?}");
        }
    }

    #[test]
    fn a_chunked_body_is_put_together_and_what_follows_is_left() {
        let mut buffer = BytesMut::from(
            "POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\nGET /",
        );
        assert!(matches!(take(&mut buffer), Progress::Whole(request) if request.call.body == "hello"));
        assert_eq!(&buffer[..], b"GET /");
    }

    #[test]
    fn a_caller_that_waits_for_leave_gets_it_and_one_that_speaks_otherwise_is_told() {
        let ask = "POST /a HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
        assert!(matches!(take(&mut BytesMut::from(ask)), Progress::Ask));
        assert!(matches!(take(&mut BytesMut::from("\x16\x03\x01\r\n\r\n")), Progress::Bad(_)));
        let long = "POST /a HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n";
        assert!(matches!(take(&mut BytesMut::from(long)), Progress::Bad(_)));
    }

    #[test]
    fn connections_are_kept_as_the_version_and_the_header_say() {
        assert!(whole("GET / HTTP/1.1\r\n\r\n").keep);
        assert!(!whole("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").keep);
        assert!(!whole("GET / HTTP/1.0\r\n\r\n").keep);
    }
}
