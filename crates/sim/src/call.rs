//! A call as it reaches the channel.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// One request, completely read.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Call {
    /// A `POST` to `path` with no headers and an empty body.
    pub fn post(path: impl Into<String>) -> Self {
        Self { method: Method::POST, path: path.into(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// Adds a header; one that HTTP does not allow is left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            self.headers.append(name, value);
        }
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a JSON body and its `Content-Type`.
    #[must_use]
    pub fn json(self, body: &serde_json::Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
