//! The whole governor in virtual time: its lanes, its ledger and its limiter against a simulated OTA
//! that is as far away as a network makes it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test may fail it, and reads best as it is called"
)]

#[path = "it/process.rs"]
mod process;
#[path = "it/retry_after.rs"]
mod retry_after;
#[path = "it/seeds.rs"]
mod seeds;
#[path = "it/world.rs"]
mod world;
