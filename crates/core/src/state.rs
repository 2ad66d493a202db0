//! The states of a mutation and the reasons that go with them: the words everything speaks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word used in the ledger, in JSON, in logs and on the page.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text { $($word => Ok(Self::$variant),)* _ => Err(UnknownWord { word: text.to_owned() }) }
            }
        }
    };
}

/// A word that is none of those known for its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word {word:?}")]
pub struct UnknownWord {
    word: String,
}

words! {
    /// Where a mutation stands. `committed`, `dead_lettered`, `superseded` and `cancelled` are final.
    State {
        /// Accepted, not sent since it last became due.
        Queued = "queued",
        /// Its request is being sent, or was sent and not answered yet.
        InFlight = "in_flight",
        /// Parked until a stored time, with a reason.
        Deferred = "deferred",
        /// The channel took it.
        Committed = "committed",
        /// Given up, kept with its history.
        DeadLettered = "dead_lettered",
        /// A newer value of its cell took its place.
        Superseded = "superseded",
        /// Taken back before it was sent.
        Cancelled = "cancelled",
    }
}

impl State {
    /// Whether the mutation may still move by itself.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::InFlight | Self::Deferred)
    }
}

words! {
    /// Why a mutation is deferred.
    DeferReason {
        /// The channel answered 429.
        Throttled = "throttled",
        /// The channel answered a 5xx or 408.
        ServerError = "server_error",
        /// No connection came about.
        Network = "network",
        /// The bytes left, no answer came.
        UnknownOutcome = "unknown_outcome",
        /// The channel answered 401.
        Auth = "auth",
    }
}

words! {
    /// Why a mutation was dead-lettered.
    DeadReason {
        /// The channel refused it for good: a 3xx, or a 4xx other than 401, 408 and 429.
        ClientRejection = "client_rejection",
        /// All attempts were used.
        RetryBudgetExhausted = "retry_budget_exhausted",
        /// Its stay date or `expires_at` passed before it was sent.
        Expired = "expired",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse::<State>().unwrap(), *state);
        }
        for reason in DeferReason::ALL {
            assert_eq!(reason.as_str().parse::<DeferReason>().unwrap(), *reason);
        }
        assert!("done".parse::<State>().is_err());
    }
}
