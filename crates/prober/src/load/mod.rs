//! Loads for a line without a helper at its remote end: echo requests in both directions, datagrams that end
//! at the provider's first router, downloads from any web server.
//!
//! Each counts its bytes by tenths of a second, so that the rate between two moments is known.

mod echo;
mod meter;
mod outward;
mod web;

pub use echo::echoes;
pub use meter::{ByteMeter, RunningLoad};
pub use outward::outward;
pub use web::{Page, downloads};
