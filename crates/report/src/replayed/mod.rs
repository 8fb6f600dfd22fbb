//! What policies would have done with a capture ([`tidegate_measure::replayed::Replayed`]): text, a page.

mod page;
mod text;

pub use page::page;
pub use text::text;
