#![forbid(unsafe_code)]
//! Measuring with real sockets and by the real clock.
//!
//! [`ping`] asks hosts again and again and notes every answer; [`hops`] finds who stands on the way; [`load`] fills a line at whose far end nobody helps.

mod clock;
mod error;
pub mod hops;
pub mod load;
mod names;
pub mod ping;

pub use clock::Clock;
pub use error::Error;
pub use names::{Family, addresses};
