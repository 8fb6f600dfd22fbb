#![forbid(unsafe_code)]
//! Measuring with real sockets and by the real clock.
//!
//! [`ping`] asks hosts again and again and notes every answer; [`hops`] finds finding the hops on the path; [`load`]
//! fills a line at whose far end nobody helps. [`Far`] is the far end of a
//! [`tidegate_measure::stream::Path`], and [`serve`] is what stands there.

mod blind;
mod chance;
mod clock;
mod error;
mod far;
mod flow;
pub mod hops;
mod line;
pub mod load;
mod names;
pub mod ping;
pub mod quoted;
mod sending;
pub mod serve;
mod target;

pub use blind::send_blind;
pub use clock::Clock;
pub use error::Error;
pub use far::Far;
pub use flow::{Carried, Flow};
pub use names::{Family, addresses};
pub use target::Target;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The text of a new token for a server, drawn by the kernel.
///
/// # Errors
/// The kernel's source of random numbers is not there.
pub fn new_token() -> std::io::Result<String> {
    Ok(tidegate_probe_wire::Token::drawn(&chance::octets()?))
}
