//! Changes of a channel in mid-run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::{
    Auth, Channel, Endpoint, Fault, Kind, Latency, Limit, Outage, OverLimit, Pauses, RetryAfter, some_span,
    span,
};

/// A change of one channel in mid-run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// When, after the start.
    #[serde(serialize_with = "span")]
    pub at: Duration,
    /// Which channel.
    pub channel: String,
    /// What.
    #[serde(flatten)]
    pub patch: Patch,
}

macro_rules! patch {
    ($($(#[$doc:meta])* $field:ident: $type:ty $(, $with:literal)?;)*) => {
        /// New values for some keys of a channel; what is `None` stays. A limit that keeps its name (or
        /// place) and its kind keeps what it has counted.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Patch {
            $($(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none" $(, serialize_with = $with)?)]
            pub $field: Option<$type>,)*
            /// New values for some endpoints.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub endpoints: BTreeMap<String, EndpointPatch>,
        }

        impl Patch {
            /// Writes what is given into `channel`.
            pub(crate) fn apply(&self, channel: &mut Channel) {
                $(if let Some(value) = &self.$field {
                    channel.$field = value.clone();
                })*
                for (name, patch) in &self.endpoints {
                    patch.apply(channel.endpoint_mut(name));
                }
            }
        }
    };
}

patch! {
    /// [`Channel::limits`].
    limits: Vec<Limit>;
    /// [`Channel::latency`].
    latency: Latency;
    /// [`Channel::over_limit`].
    over_limit: OverLimit;
    /// [`Channel::retry_after`].
    retry_after: Vec<RetryAfter>;
    /// [`Channel::pauses`].
    pauses: Pauses;
    /// [`Channel::pause_grace`].
    pause_grace: Duration, "some_span";
    /// [`Channel::pause_horizon`].
    pause_horizon: Duration, "some_span";
    /// [`Channel::date_skew`].
    date_skew: i64;
    /// [`Channel::auth`].
    auth: Auth;
    /// [`Channel::faults`].
    faults: Vec<Fault>;
    /// [`Channel::outages`].
    outages: Vec<Outage>;
    /// [`Channel::strict`].
    strict: bool;
    /// [`Channel::confirmation`].
    confirmation: bool;
    /// [`Channel::idempotent`].
    idempotent: bool;
}

impl Patch {
    /// New limits over all endpoints.
    #[must_use]
    pub fn limits(limits: Vec<Limit>) -> Self {
        Self { limits: Some(limits), ..Self::default() }
    }

    /// New limits of one endpoint.
    #[must_use]
    pub fn endpoint_limits(endpoint: impl Into<String>, limits: Vec<Limit>) -> Self {
        let patch = EndpointPatch { limits: Some(limits), ..EndpointPatch::default() };
        Self { endpoints: BTreeMap::from([(endpoint.into(), patch)]), ..Self::default() }
    }
}

/// New values for some keys of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndpointPatch {
    /// [`Endpoint::path`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// [`Endpoint::kind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// [`Endpoint::limits`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<Limit>>,
}

impl EndpointPatch {
    fn apply(&self, endpoint: &mut Endpoint) {
        let patch = self.clone();
        if let Some(path) = patch.path {
            endpoint.path = path;
        }
        if let Some(kind) = patch.kind {
            endpoint.kind = kind;
        }
        if let Some(limits) = patch.limits {
            endpoint.limits = limits;
        }
    }
}
