//! The simulated OTA judged from outside: in virtual time, and over real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a helper of a test may fail it, and reads best as it is called"
)]

#[path = "it/books.rs"]
mod books;
#[path = "it/calls.rs"]
mod calls;
#[path = "it/config.rs"]
mod config;
#[path = "it/control.rs"]
mod control;
#[path = "it/enforcement.rs"]
mod enforcement;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/receiver.rs"]
mod receiver;
#[path = "it/retry_after.rs"]
mod retry_after;
#[path = "it/sockets.rs"]
mod sockets;
