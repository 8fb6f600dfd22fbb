//! An experiment ([`tidegate_measure::experiment::Experiment`]) on a page, and as charts; the figures are
//! `tidegate_analysis`'s.

mod charts;
mod compare;
mod courses;
mod latency;
mod page;
pub(crate) mod show;
mod topology;

pub use charts::charts;
pub use compare::{comparison_page, comparison_text};
pub use page::page;
