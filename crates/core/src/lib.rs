//! The pure rules of ota-governor.
//!
//! This crate owns what is *true* about mutations, cells, limits, retries and answers, and nothing
//! that *happens*: it does no I/O, reads no clock and draws no chance of its own. Every decision
//! takes the time (and, where needed, a source of chance) as an argument, so that stores can make
//! it atomic and tests can drive it through a year in a millisecond.

pub mod health;
pub mod idempotency;
pub mod lane;
pub mod limit;
pub mod mutation;
pub mod name;
pub mod order;
pub mod retry;
pub mod state;
pub mod time;
pub mod verdict;
