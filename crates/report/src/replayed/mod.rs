//! What policies would have done with a capture ([`tidegate_measure::replayed::Replayed`]): text, JSON, a page.

mod page;
mod tables;
mod text;
mod write;

pub use page::page;
pub use text::text;
pub use write::to_json;

/// The member that tells the form, and its number: it changes when a member changes its meaning or goes away.
const FORM: (&str, u64) = ("tidegate_replayed", 1);
