//! What policies would have done with a capture ([`tidegate_measure::replayed::Replayed`]): figures as
//! tables, its document.

pub mod tables;
mod write;

pub use write::to_json;
