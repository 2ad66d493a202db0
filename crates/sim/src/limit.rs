//! Enforcement: what a limit has counted, and whether it admits one call more.

mod gate;
mod meter;

pub(crate) use gate::{Gates, Hold, Refusal, Scope};
