#![forbid(unsafe_code)]
//! Measuring with real sockets and by the real clock.
//!
//! [`ping`] pings hosts on a schedule and notes every reply, [`round_trips`] does so without ICMP; [`hops`]
//! finds the hops on the path; [`load`] fills a line without a helper at its remote end. [`ServerSession`] is
//! the remote end of a [`tidegate_measure::stream::Path`], and [`serve`] is the server itself.

mod blind;
mod chance;
mod clock;
mod error;
mod flow;
pub mod hops;
mod line;
pub mod load;
mod names;
pub mod ping;
pub mod probe_targets;
pub mod quoted;
pub mod round_trips;
mod sending;
pub mod serve;
mod server;
mod target;

pub use blind::send_blind;
pub use clock::ProbeClock;
pub use error::Error;
pub use flow::{FlowOpener, MeasuredFlow};
pub use names::{AddressFamily, addresses};
pub use server::ServerSession;
pub use target::ServerTarget;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The text of a new token for a server, drawn by the kernel.
///
/// # Errors
/// The kernel's source of random numbers is not there.
pub fn new_token() -> std::io::Result<String> {
    Ok(tidegate_probe_wire::Token::drawn(&chance::random_bytes()?))
}
