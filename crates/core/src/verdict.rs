//! What an answer means for the mutation in the request.

/// The meaning of an answer, or of its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// 2xx: the channel took it.
    Committed,
    /// 429: too many calls.
    Throttled,
    /// 5xx or 408: the channel is unwell; trying again is safe.
    ServerError,
    /// No connection came about: nothing was sent.
    Network,
    /// Bytes left and no answer came: it may or may not have been taken.
    UnknownOutcome,
    /// 401: the token is not accepted (any more).
    Unauthorized,
    /// 3xx or another 4xx: the channel will never take it.
    Rejected,
}

impl Verdict {
    /// The verdict of a status (RFC 9110, section 15). Redirects are never followed: a push that is
    /// redirected goes to the wrong address.
    pub const fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Committed,
            401 => Self::Unauthorized,
            429 => Self::Throttled,
            408 | 500..=599 => Self::ServerError,
            _ => Self::Rejected,
        }
    }

    /// Whether it counts towards a lane's breaker.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Throttled | Self::ServerError | Self::Network | Self::UnknownOutcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_the_verdict_of_its_class() {
        assert_eq!(Verdict::of_status(204), Verdict::Committed);
        assert_eq!(Verdict::of_status(401), Verdict::Unauthorized);
        assert_eq!(Verdict::of_status(408), Verdict::ServerError);
        assert_eq!(Verdict::of_status(429), Verdict::Throttled);
        assert_eq!(Verdict::of_status(599), Verdict::ServerError);
        for status in [100, 301, 307, 400, 403, 404, 409, 418, 422, 600, 999] {
            assert_eq!(Verdict::of_status(status), Verdict::Rejected, "{status}");
        }
    }
}
