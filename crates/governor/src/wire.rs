//! What one mutation looks like on the wire.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use ota_governor_core::name::EndpointName;
use secrecy::{ExposeSecret, SecretString};

use crate::config::Channel;
use crate::ledger::Job;
use crate::transport::Call;

/// Makes the calls of one lane: what is the same for all of them is built once.
#[derive(Debug)]
pub struct Wire {
    url: String,
    headers: HeaderMap,
    auth_header: HeaderName,
    auth_prefix: String,
    timeout: std::time::Duration,
    max_answer_bytes: usize,
}

/// A configured header that cannot be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("header {name:?} cannot be sent: its {part} holds characters that headers do not allow")]
pub struct WireError {
    name: String,
    part: &'static str,
}

impl Wire {
    /// The wire of one endpoint.
    ///
    /// # Errors
    /// If a configured header is none.
    pub fn try_new(channel: &Channel, endpoint: &EndpointName) -> Result<Self, WireError> {
        let header = |name: &str| {
            HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| WireError { name: name.to_owned(), part: "name" })
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &channel.headers {
            let mut value =
                HeaderValue::from_str(value).map_err(|_| WireError { name: name.clone(), part: "value" })?;
            // An extra header may be a key.
            value.set_sensitive(true);
            headers.insert(header(name)?, value);
        }
        let settings = channel.endpoints.get(endpoint);
        let path = settings.map_or("", |settings| settings.path.as_str());
        Ok(Self {
            url: format!("{}{path}", channel.base_url),
            headers,
            auth_header: header(&channel.auth_header).unwrap_or(AUTHORIZATION),
            auth_prefix: channel.auth_prefix.clone(),
            timeout: settings.and_then(|settings| settings.timeout).unwrap_or(channel.timeout),
            max_answer_bytes: channel.max_answer_bytes,
        })
    }

    /// The call that carries this job.
    pub fn call(&self, job: &Job, token: &SecretString) -> Call {
        let mut headers = self.headers.clone();
        let credential = format!("{}{}", self.auth_prefix, token.expose_secret());
        if let Ok(mut value) = HeaderValue::from_str(&credential) {
            value.set_sensitive(true);
            headers.insert(self.auth_header.clone(), value);
        }
        if let Ok(key) = HeaderValue::from_str(&job.idempotency_key) {
            headers.insert(HeaderName::from_static("x-idempotency-key"), key);
        }
        // Printable text that is not ASCII goes as its UTF-8 bytes.
        if let Ok(id) = HeaderValue::from_bytes(job.mutation.correlation_id.as_str().as_bytes()) {
            headers.insert(HeaderName::from_static("x-correlation-id"), id);
        }
        Call {
            url: self.url.clone(),
            headers,
            body: Bytes::from(job.mutation.body()),
            timeout: self.timeout,
            max_answer_bytes: self.max_answer_bytes,
        }
    }

    /// How long a call may take.
    pub const fn timeout(&self) -> std::time::Duration {
        self.timeout
    }
}
