//! How one channel behaves.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::{Fault, Limit, Outage, RetryAfter, Share, some_span, span};

/// One channel's behaviour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Channel {
    /// Limits over all its endpoints.
    pub limits: Vec<Limit>,
    /// Its endpoints; `rates`, `availability` and `restrictions` are always there.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// How long answers take.
    pub latency: Latency,
    /// What becomes of a call over a limit.
    pub over_limit: OverLimit,
    /// The `Retry-After` of its 429s, taken in turn.
    pub retry_after: Vec<RetryAfter>,
    /// What a `Retry-After` asks to keep quiet, for the books.
    pub pauses: Pauses,
    /// How long after such an answer left calls are counted apart, as under way already.
    #[serde(serialize_with = "span")]
    pub pause_grace: Duration,
    /// The longest pause that the books hold a caller to.
    #[serde(serialize_with = "span")]
    pub pause_horizon: Duration,
    /// Seconds that its clock is ahead, in `Date` and in every date it names.
    pub date_skew: i64,
    /// Whose calls it takes.
    pub auth: Auth,
    /// How it misbehaves; the first that strikes a call counts.
    pub faults: Vec<Fault>,
    /// When it is away.
    pub outages: Vec<Outage>,
    /// Whether the form of calls is checked.
    pub strict: bool,
    /// Whether 2xx carry `X-OTA-Confirmation-ID`.
    pub confirmation: bool,
    /// Whether idempotency keys of successes are remembered.
    pub idempotent: bool,
}

impl Default for Channel {
    fn default() -> Self {
        let endpoint =
            |name: &str, kind| (name.to_owned(), Endpoint::new(format!("/{{ota}}/{name}/sync"), kind));
        Self {
            limits: Vec::new(),
            endpoints: BTreeMap::from([
                endpoint("rates", Kind::Rate),
                endpoint("availability", Kind::Availability),
                endpoint("restrictions", Kind::Restriction),
            ]),
            latency: Latency::default(),
            over_limit: OverLimit::Refuse,
            retry_after: vec![RetryAfter::Exact],
            pauses: Pauses::Endpoint,
            pause_grace: Duration::from_millis(50),
            pause_horizon: Duration::from_secs(86_400),
            date_skew: 0,
            auth: Auth::default(),
            faults: Vec::new(),
            outages: Vec::new(),
            strict: true,
            confirmation: true,
            idempotent: true,
        }
    }
}

impl Channel {
    /// Adds a limit over all endpoints.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
        self
    }

    /// Adds a limit of one endpoint.
    #[must_use]
    pub fn endpoint_limit(mut self, endpoint: &str, limit: Limit) -> Self {
        self.endpoint_mut(endpoint).limits.push(limit);
        self
    }

    /// Sets the path of an endpoint; `{ota}` stands for the slug.
    #[must_use]
    pub fn path(mut self, endpoint: &str, path: impl Into<String>) -> Self {
        self.endpoint_mut(endpoint).path = path.into();
        self
    }

    /// Sets how long answers take.
    #[must_use]
    pub fn latency(mut self, min: Duration, max: Duration) -> Self {
        self.latency = Latency { min, max: max.max(min), tail: None };
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Adds an outage.
    #[must_use]
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outages.push(outage);
        self
    }

    /// Sets the forms of `Retry-After`, taken in turn.
    #[must_use]
    pub fn retry_after(mut self, forms: impl IntoIterator<Item = RetryAfter>) -> Self {
        self.retry_after = forms.into_iter().collect();
        self
    }

    /// Sets whose calls are taken.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets whether the form of calls is checked.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    pub(crate) fn endpoint_mut(&mut self, name: &str) -> &mut Endpoint {
        self.endpoints
            .entry(name.to_owned())
            .or_insert_with(|| Endpoint::new(format!("/{{ota}}/{name}/sync"), Kind::Other))
    }
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoint {
    /// Its path; `{ota}` stands for the slug.
    pub path: String,
    /// What its calls carry.
    pub kind: Kind,
    /// Its own limits, besides the channel's.
    pub limits: Vec<Limit>,
}

impl Endpoint {
    /// An endpoint without limits.
    pub fn new(path: impl Into<String>, kind: Kind) -> Self {
        Self { path: path.into(), kind, limits: Vec::new() }
    }
}

/// What calls carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Amount, currency and inventory.
    Rate,
    /// Inventory.
    Availability,
    /// Restrictions of a stay.
    Restriction,
    /// Anything; the body is not looked at.
    Other,
}

/// How long answers take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// At least.
    #[serde(serialize_with = "span")]
    pub min: Duration,
    /// At most.
    #[serde(serialize_with = "span")]
    pub max: Duration,
    /// Now and then, much longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}

impl Default for Latency {
    fn default() -> Self {
        Self { min: Duration::from_millis(2), max: Duration::from_millis(40), tail: None }
    }
}

/// The slow ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tail {
    /// How many calls.
    pub share: Share,
    /// At least.
    #[serde(serialize_with = "span")]
    pub min: Duration,
    /// At most.
    #[serde(serialize_with = "span")]
    pub max: Duration,
}

/// What becomes of a call over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OverLimit {
    /// 429.
    Refuse,
    /// It is taken, and takes this much longer.
    Slow(#[serde(serialize_with = "span")] Duration),
}

/// What a `Retry-After` asks to keep quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pauses {
    /// The endpoint.
    Endpoint,
    /// The property, at this endpoint.
    Property,
    /// The whole channel.
    Channel,
}

/// Whose calls a channel takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Auth {
    /// The header with the token.
    pub header: String,
    /// What stands before the token in it.
    pub prefix: String,
    /// The tokens that are accepted, one after the other; with none, any that is not empty.
    pub tokens: Vec<Token>,
}

impl Default for Auth {
    fn default() -> Self {
        Self { header: "authorization".to_owned(), prefix: "Bearer ".to_owned(), tokens: Vec::new() }
    }
}

impl Auth {
    /// `Authorization: Bearer …` with these tokens, one after the other.
    pub fn tokens(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self { tokens: tokens.into_iter().collect(), ..Self::default() }
    }
}

/// One accepted token. When it expires the next in the list is accepted instead; the last one that
/// expires leaves none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    /// The token.
    pub value: String,
    /// When it expires, after the start.
    #[serde(serialize_with = "some_span", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Duration>,
    /// After how many calls with it it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_calls: Option<u64>,
}

impl Token {
    /// One that does not expire.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), expires_at: None, after_calls: None }
    }

    /// Expires this long after the start.
    #[must_use]
    pub fn expires_at(mut self, at: Duration) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Expires after so many calls.
    #[must_use]
    pub fn after_calls(mut self, calls: u64) -> Self {
        self.after_calls = Some(calls);
        self
    }
}
