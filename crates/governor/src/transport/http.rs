//! Calls over HTTP: keep-alive, HTTP/1.1 and HTTP/2, TLS by the platform's roots, no redirects.

use std::error::Error as _;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use reqwest::{Client, Response};

use super::{Call, Reply, Transport};
use crate::clock::Clock;

/// Sends calls over HTTP.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    client: Client,
    clock: Clock,
}

impl HttpTransport {
    /// A transport with connections of its own.
    ///
    /// # Errors
    /// If the platform offers no TLS roots.
    pub fn try_new(clock: Clock) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // A request is sent again only by a lane, which knows what that means.
            .retry(reqwest::retry::never())
            .user_agent(concat!("ota-governor/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, clock })
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, call: Call) -> Reply {
        let deadline = tokio::time::Instant::now() + call.timeout;
        let max = call.max_answer_bytes;
        let request =
            self.client.post(&call.url).headers(call.headers).body(call.body).timeout(call.timeout).send();
        match request.await {
            Ok(response) => {
                let at = self.clock.now();
                let status = response.status();
                let headers = response.headers().clone();
                let body = tokio::time::timeout_at(deadline, read(response, max)).await.unwrap_or_default();
                Reply::Answered { status, headers, body, at }
            }
            Err(error) if error.is_connect() || error.is_builder() => {
                Reply::NotConnected { detail: describe(error) }
            }
            Err(error) => Reply::Unknown { detail: describe(error) },
        }
    }
}

/// The beginning of the body: whatever came before it was cut, too long or too late. The status has
/// spoken already.
async fn read(mut response: Response, max: usize) -> Bytes {
    let mut body = BytesMut::new();
    while body.len() < max {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = max.saturating_sub(body.len()).min(chunk.len());
                body.extend_from_slice(chunk.get(..room).unwrap_or_default());
            }
            Ok(None) | Err(_) => break,
        }
    }
    body.freeze()
}

/// The error with its causes and without the URL, which may carry a key.
fn describe(error: reqwest::Error) -> String {
    let timed_out = error.is_timeout();
    let error = error.without_url();
    let mut text = if timed_out { "no answer in time".to_owned() } else { error.to_string() };
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = inner.source();
    }
    text
}
