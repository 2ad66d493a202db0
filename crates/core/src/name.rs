//! Names: short checked texts that are cheap to clone, one type per thing named.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// Why a text is not the name it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be {rule}")]
pub struct NameError {
    /// The rule that the text breaks, as a noun phrase.
    pub rule: &'static str,
}

fn is_slug(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn is_label(text: &str) -> bool {
    (1..=128).contains(&text.chars().count())
        && text.chars().all(|c| !c.is_control() && c != '/' && c != ':' && !c.is_whitespace())
}

fn is_printable(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.chars().count()) && text.chars().all(|c| !c.is_control())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("Checks and takes the text: ", $rule, ".")]
            ///
            /// # Errors
            /// If the text breaks that rule.
            pub fn try_new(text: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> bool = $check;
                if check(text) { Ok(Self(Arc::from(text))) } else { Err(NameError { rule: $rule }) }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::try_new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// The slug of a channel, such as `booking_com`.
    ChannelName, "1 to 64 of a-z, 0-9, _ and -", is_slug
);
name!(
    /// The name of an account: the credential in use at a channel.
    AccountName, "1 to 128 characters without blanks, : and /", is_label
);
name!(
    /// The name of an endpoint: a class of calls with limits.
    EndpointName, "1 to 64 of a-z, 0-9, _ and -", is_slug
);
name!(
    /// The name of a limit, as configured or derived from its place.
    LimitName, "1 to 256 printable characters", |text| is_printable(text, 256)
);
name!(
    /// A property (hotel) as the channel names it. The channel's own pattern is checked at acceptance.
    PropertyId, "1 to 64 printable characters", |text| is_printable(text, 64)
);
name!(
    /// A room type.
    RoomTypeCode, "2 to 16 printable characters", |text| text.chars().count() >= 2 && is_printable(text, 16)
);
name!(
    /// A rate plan.
    RatePlanCode, "2 to 24 printable characters", |text| text.chars().count() >= 2 && is_printable(text, 24)
);
name!(
    /// The producer's unique name of one mutation.
    CorrelationId, "1 to 64 printable characters", |text| is_printable(text, 64)
);
name!(
    /// A name that several mutations share, to cancel or report them by.
    BatchName, "1 to 128 printable characters", |text| is_printable(text, 128)
);

impl Default for AccountName {
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_breaks_its_rule_is_refused_with_the_rule() {
        assert!(ChannelName::try_new("booking_com").is_ok());
        assert_eq!(
            ChannelName::try_new("Booking").unwrap_err().to_string(),
            "must be 1 to 64 of a-z, 0-9, _ and -"
        );
        assert!(RoomTypeCode::try_new("D").is_err());
        assert!(RatePlanCode::try_new(&"x".repeat(25)).is_err());
        assert!(CorrelationId::try_new("a\nb").is_err());
    }
}
