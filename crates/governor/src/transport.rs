//! The transport seam: one call out, one answer back, nothing decided.

pub mod http;

use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use ota_governor_core::time::Timestamp;

/// One request, ready to be sent.
#[derive(Clone)]
pub struct Call {
    /// Where to.
    pub url: String,
    /// With these headers; secrets among them are marked sensitive.
    pub headers: HeaderMap,
    /// The JSON body.
    pub body: Bytes,
    /// From the first byte of connecting to the last of the answer.
    pub timeout: Duration,
    /// How much of an answer is read.
    pub max_answer_bytes: usize,
}

/// What came back.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A status came; the body is what could be read of it in time and within the bound.
    Answered {
        /// The status.
        status: StatusCode,
        /// The headers.
        headers: HeaderMap,
        /// The beginning of the body.
        body: Bytes,
        /// When the headers came.
        at: Timestamp,
    },
    /// No connection came about: no byte of the request left.
    NotConnected {
        /// In words, without secrets.
        detail: String,
    },
    /// Bytes may have left and no answer came.
    Unknown {
        /// In words, without secrets.
        detail: String,
    },
}

/// Sends calls.
#[async_trait]
pub trait Transport: Send + Sync + std::fmt::Debug {
    /// Sends one call and waits for its answer, at most its timeout.
    ///
    /// # Cancel safety
    /// Dropped, the call may or may not have arrived.
    async fn send(&self, call: Call) -> Reply;
}
