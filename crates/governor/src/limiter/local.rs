//! The limiter of one process.
