//! Loads for a line at whose remote end no one helps: echo requests in both directions, datagrams that end at
//! the provider's first router, downloads from any web server.
//!
//! Each counts what went through by tenths of a second, so that anyone who looks can ask for a rate between
//! two moments.

mod echo;
mod meter;
mod outward;
mod web;

pub use echo::echoes;
pub use meter::{ByteMeter, RunningLoad};
pub use outward::outward;
pub use web::{Page, downloads};
