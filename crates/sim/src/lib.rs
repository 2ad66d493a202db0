//! A simulated OTA: a strict receiver that enforces limits as calls arrive, misbehaves on order and
//! keeps books of everything it saw.
//!
//! Two layers. [`Ota`] is pure: the caller says what time it is (an [`At`]) and gets a [`Reaction`]
//! back, so it can be driven in virtual time. [`Server`] carries those reactions out over real sockets.
//!
//! ```
//! use std::time::Duration;
//! use ota_sim::{At, Call, Channel, Config, Limit, Ota};
//!
//! let limit = Limit::sliding_window(1, Duration::from_secs(60));
//! let ota = Ota::new(Config::default().channel("booking_com", Channel::default().strict(false).limit(limit)));
//! let call = Call::post("/booking_com/rates/sync").header("authorization", "Bearer t");
//!
//! let first = ota.receive(At::ZERO, &call);
//! assert_eq!(first.then.status(), Some(200));
//! ota.finish(At::ZERO + first.delay, first.ticket);
//!
//! let second = ota.receive(At::from_secs(59), &call);
//! assert_eq!(second.then.status(), Some(429));
//! ota.finish(At::from_secs(59) + second.delay, second.ticket);
//! assert_eq!(ota.books(At::from_secs(60)).total.refused, 1);
//! ```

/// The commands and code of the README are tried with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod at;
mod books;
mod call;
mod clock;
mod config;
mod limit;
mod ota;
mod reaction;
mod server;
mod wire;

pub use at::At;
pub use books::{
    Arrival, Books, CellBook, CellKey, ChannelBooks, InventoryBook, LimitBooks, Tally, Window, Worst,
};
pub use call::Call;
pub use config::{
    Act, Auth, Change, Channel, Config, ConfigError, Each, Endpoint, EndpointPatch, Fault, KeyFault, Kind,
    Latency, Limit, Outage, OutageKind, OverLimit, Patch, Pauses, RetryAfter, Rule, Share, Tail, Token,
};
pub use ota::Ota;
pub use reaction::{Answer, Reaction, Then, Ticket};
pub use server::Server;
