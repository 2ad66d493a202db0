//! The limiter seam: who may call when.
//!
//! A permit is the right to make one call now, taken from *all* limits that apply or from none. A
//! refusal ("not before T", "never fits") is a value, not an error; an error is never a grant.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod lanes;
pub mod local;

use std::time::Duration;

use async_trait::async_trait;
use ota_governor_core::lane::LaneKey;
use ota_governor_core::mutation::Priority;
use ota_governor_core::name::{LimitName, PropertyId};
use ota_governor_core::time::Timestamp;
use serde::Serialize;

use crate::ledger::Hold;

/// What is asked of the limiter.
#[derive(Debug, Clone)]
pub struct Ask {
    /// For calls of this lane.
    pub lane: LaneKey,
    /// The most urgent mutation the permit is for: among askers that share a limit the most urgent goes
    /// first, then the earlier.
    pub priority: Priority,
    /// At most so many permits at once, at least one: what fits now is granted together.
    pub want: usize,
    /// What one call costs.
    pub cost: u64,
    /// Candidate properties in order of urgency, for lanes keyed by property; else empty.
    pub properties: Vec<PropertyId>,
    /// A turn further off than this is refused at once and takes nothing; `None` waits for ever.
    pub max_wait: Option<Duration>,
}

/// The limiter's answer.
#[derive(Debug)]
pub enum Grant {
    /// The calls may leave now: at least one permit, at most as many as wanted.
    Granted(Vec<Permit>),
    /// Not before `wait` from now; nothing was taken.
    Refused {
        /// How long until the turn would come; `None`: held until it is lifted by hand.
        wait: Option<Duration>,
        /// What binds: the name of the limit, or the hold in words.
        by: String,
    },
    /// The cost can never fit this limit.
    NeverFits {
        /// The limit.
        limit: LimitName,
    },
}

/// Something that wants to know when a permit's call is over.
pub trait Release: Send + Sync + std::fmt::Debug {
    /// The call of this permit is over: `sent` tells whether its bytes may have left.
    fn release(&self, permit: PermitId, sent: bool);
}

/// Names one permit for as long as its call lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId {
    /// The group of limits it was taken from.
    pub group: u32,
    /// Its number there.
    pub number: u64,
}

/// The right to make one call now.
///
/// Dropped without a word it counts as a call that ended when it was dropped: the safe side.
#[derive(Debug)]
pub struct Permit {
    id: PermitId,
    property: Option<PropertyId>,
    granted_at: Timestamp,
    release: Option<std::sync::Arc<dyn Release>>,
}

impl Permit {
    /// For limiters: a permit whose end is told to `release`.
    pub fn new(
        id: PermitId,
        property: Option<PropertyId>,
        granted_at: Timestamp,
        release: std::sync::Arc<dyn Release>,
    ) -> Self {
        Self { id, property, granted_at, release: Some(release) }
    }

    /// Its name.
    pub const fn id(&self) -> PermitId {
        self.id
    }

    /// The property it was granted for, on lanes keyed by property.
    pub const fn property(&self) -> Option<&PropertyId> {
        self.property.as_ref()
    }

    /// When it was granted.
    pub const fn granted_at(&self) -> Timestamp {
        self.granted_at
    }

    /// The call was answered or given up, now.
    pub fn answered(mut self) {
        self.end(true);
    }

    /// No call was made: it is as if the permit had never been taken.
    pub fn unused(mut self) {
        self.end(false);
    }

    fn end(&mut self, sent: bool) {
        if let Some(release) = self.release.take() {
            release.release(self.id, sent);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.end(true);
    }
}

/// Why the limiter could not answer.
#[derive(Debug, thiserror::Error)]
pub enum LimiterError {
    /// The lane has no limits configured.
    #[error("no limits are configured for the lane {lane}")]
    UnknownLane {
        /// The lane.
        lane: LaneKey,
    },
    /// The limiter's store is away; nothing was granted.
    #[error("the limiter's store is away")]
    Away {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// One budget as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitStatus {
    /// The limit's name.
    pub limit: LimitName,
    /// The lanes it applies to.
    pub lanes: Vec<LaneKey>,
    /// The property, for a limit per property.
    pub property: Option<PropertyId>,
    /// The rule in words: `sliding_window 90 per 1m, burst 3`.
    pub rule: String,
    /// Calls that may leave right now as far as this limit goes.
    pub left: u64,
    /// Calls that count against it in its window, or in flight.
    pub used: u64,
    /// The most it admits.
    pub max: u64,
    /// When the next call fits, if none does now.
    pub next_at: Option<Timestamp>,
}

/// Gives out permits.
#[async_trait]
pub trait Limiter: Send + Sync + std::fmt::Debug {
    /// Waits for its turn and takes permits.
    ///
    /// # Errors
    /// If the lane is unknown or the store is away; never a grant.
    ///
    /// # Cancel safety
    /// Dropped, the asker leaves the line and whatever was granted to it is given back.
    async fn acquire(&self, ask: Ask) -> Result<Grant, LimiterError>;

    /// Puts the holds that are in place now; replaces all from before. Turns already waited for obey.
    fn set_holds(&self, holds: Vec<Hold>);

    /// When the lane's next call could leave as far as limits and holds go, and what binds: `None` now.
    async fn outlook(
        &self,
        lane: &LaneKey,
        property: Option<&PropertyId>,
    ) -> Result<Option<Outlook>, LimiterError>;

    /// Every budget that is not idle, and every limit without a property.
    async fn status(&self) -> Result<Vec<LimitStatus>, LimiterError>;
}

/// What a lane waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// What binds: a limit's name, or a hold in words.
    pub by: String,
    /// Until when; `None`: until it is lifted.
    pub until: Option<Timestamp>,
}
