//! The built command attacked from outside: as processes, against a simulated OTA with its books.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a test may fail it, and reads best as it is called"
)]

#[path = "it/answers.rs"]
mod answers;
#[path = "it/auth.rs"]
mod auth;
#[path = "it/beside.rs"]
mod beside;
#[path = "it/desk.rs"]
mod desk;
#[path = "it/order.rs"]
mod order;
#[path = "it/push.rs"]
mod push;
#[path = "it/refusals.rs"]
mod refusals;
#[path = "it/stopping.rs"]
mod stopping;
