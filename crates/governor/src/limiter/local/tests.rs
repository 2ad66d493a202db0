//! Local limiter.
