//! The forms in which a 429 or 503 says when to come back.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// What the `Retry-After` header of a refusal looks like.
///
/// Where a form carries a wait, `None` means the exact time until the limit admits again, rounded up
/// to what the form can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// No header.
    Absent,
    /// Whole seconds.
    #[default]
    Exact,
    /// Whole seconds, always these.
    Seconds(u64),
    /// `Sun, 20 Sep 2026 10:02:00 GMT`.
    ImfFixdate(Option<Duration>),
    /// `Sunday, 20-Sep-26 10:02:00 GMT`.
    Rfc850(Option<Duration>),
    /// `Sun Sep 20 10:02:00 2026`.
    Asctime(Option<Duration>),
    /// Seconds with one digit after the point: `1.5`.
    Decimal(Option<Duration>),
    /// An IMF-fixdate one hour ago.
    Past,
    /// This text, whatever it is: `soon`, `-3`, nothing, `9999999999`.
    Raw(String),
}

impl RetryAfter {
    /// Reads a form's name, or a text that stands for itself.
    pub(crate) fn named(text: &str, wait: Option<Duration>) -> Option<Self> {
        Some(match text {
            "absent" => Self::Absent,
            "seconds" => wait.map_or(Self::Exact, |wait| Self::Seconds(wait.as_secs())),
            "imf_fixdate" => Self::ImfFixdate(wait),
            "rfc850" => Self::Rfc850(wait),
            "asctime" => Self::Asctime(wait),
            "decimal" => Self::Decimal(wait),
            "past" => Self::Past,
            "soon" | "" => Self::Raw(text.to_owned()),
            _ if text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.')) => {
                Self::Raw(text.to_owned())
            }
            _ => return None,
        })
    }
}

#[derive(Serialize)]
struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
}

impl Serialize for RetryAfter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (form, wait) = match self {
            Self::Absent => ("absent", None),
            Self::Exact => ("seconds", None),
            Self::Seconds(secs) => ("seconds", Some(Duration::from_secs(*secs))),
            Self::ImfFixdate(wait) => ("imf_fixdate", *wait),
            Self::Rfc850(wait) => ("rfc850", *wait),
            Self::Asctime(wait) => ("asctime", *wait),
            Self::Decimal(wait) => ("decimal", *wait),
            Self::Past => ("past", None),
            Self::Raw(raw) => return Said { form: None, wait: None, raw: Some(raw) }.serialize(to),
        };
        Said { form: Some(form), wait: wait.map(crate::at::show_span), raw: None }.serialize(to)
    }
}
