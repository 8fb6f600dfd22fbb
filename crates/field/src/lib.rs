#![forbid(unsafe_code)]
//! Measuring over real networks: sockets, threads and this machine's clock.
//!
//! [`Far`] is the real [`tidegate_measure::stream::Path`]; [`serve`] is what stands at its other end.

mod chance;
mod clock;
mod error;
mod far;
mod flow;
mod line;
mod sending;
pub mod serve;

pub use clock::Clock;
pub use error::Error;
pub use far::{Family, Far, Target};
pub use flow::{Carried, Flow};
