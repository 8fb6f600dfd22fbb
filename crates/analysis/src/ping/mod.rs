//! What pings showed ([`tidegate_measure::pinged::Pinged`]): its document, and ping-exp's.

mod document;
mod pickle;
mod pingexp;

pub use document::{from_json, to_json};
pub use pingexp::from_pingexp;
