//! What every limiter keeps.
