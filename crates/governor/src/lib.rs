//! The pacing layer between hotel software and the channels it pushes to.
//!
//! Mutations go in through [`ledger`], calls leave through [`transport`] exactly as fast as
//! [`limiter`] allows, and every mutation ends committed or dead-lettered.

pub mod clock;
pub mod config;
pub mod governor;
pub mod intake;
pub mod ledger;
pub mod limiter;
pub mod token;
pub mod transport;
pub mod wire;

mod auth;
mod event;
mod holds;
mod lane;

pub use lane::LaneView;
pub use ota_governor_core as core;
