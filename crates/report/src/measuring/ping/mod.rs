//! The results of pings ([`tidegate_measure::pinged::Pinged`]): text, six panels, a page, and a terminal's
//! view while they run.

mod page;
mod panels;
mod screen;
mod text;
mod words;

pub use page::page;
pub use panels::six_panels;
pub use screen::screen;
pub use text::text;
