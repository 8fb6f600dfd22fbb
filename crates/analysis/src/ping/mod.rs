//! What pings showed ([`tidegate_measure::pinged::Pinged`]): its document, and ping-exp's.

mod pickle;
mod pingexp;
mod read;
mod write;

pub use pingexp::from_pingexp;
pub use read::from_json;
pub use write::to_json;
