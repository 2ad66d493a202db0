//! Taking a call for good: idempotency, then the store.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::wire::Read;

/// The answers to successes by endpoint, property and key. Failures are not remembered: a call that
/// failed is really made again.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<Key, First>);

/// Endpoint, property and idempotency key.
type Key = (Box<str>, Box<str>, Box<str>);

/// The first success with a key.
#[derive(Clone, Debug)]
pub(super) struct First {
    content: (u64, u64),
    pub(super) confirmation: String,
    pub(super) body: Bytes,
}

/// What is known of a call's key.
#[derive(Debug)]
pub(super) enum Lookup {
    /// Nothing.
    New,
    /// It was taken with this content.
    Same(First),
    /// It was taken with other content.
    Other,
}

impl Known {
    pub(super) fn look_up(&self, endpoint: &str, read: &Read) -> Lookup {
        match self.0.get(&key(endpoint, read)) {
            None => Lookup::New,
            Some(first) if first.content == content(read) => Lookup::Same(first.clone()),
            Some(_) => Lookup::Other,
        }
    }

    pub(super) fn remember(&mut self, endpoint: &str, read: &Read, confirmation: String, body: Bytes) {
        if read.idempotency_key.is_some() {
            self.0.insert(key(endpoint, read), First { content: content(read), confirmation, body });
        }
    }
}

fn key(endpoint: &str, read: &Read) -> Key {
    let text = |text: Option<&str>| text.unwrap_or_default().into();
    (endpoint.into(), text(read.property.as_deref()), text(read.idempotency_key.as_deref()))
}

/// What the call sets, without its correlation id: a key may be made from the values alone, and the
/// same values under another id are the same values. Two hashes make a chance match out of the question.
fn content(read: &Read) -> (u64, u64) {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        read.cell.hash(&mut hasher);
        for (name, value) in &read.fields {
            name.hash(&mut hasher);
            value.to_string().hash(&mut hasher);
        }
        hasher.finish()
    };
    (hash(0), hash(1))
}
