//! What becomes of an experiment ([`tidegate_measure::experiment::Experiment`]): JSON and back, a page, charts, files for flent.

mod charts;
mod compare;
mod courses;
mod flent;
mod held;
mod latency;
mod mahimahi;
mod page;
mod read;
mod series;
pub(crate) mod show;
mod tables;
mod topology;
mod unflent;
mod write;

use crate::chart::Look;

pub use charts::charts;
pub use compare::{Change, Comparing, Row, Side, comparison_json, comparison_page, comparison_text};
pub use flent::flent_files;
pub use held::{Told, in_words, told};
pub use mahimahi::mahimahi_files;
pub(crate) use page::document as page_document;
pub use page::page;
pub use read::from_json;
pub use unflent::from_flent;
pub use write::to_json;

/// The member that tells the form, and its number: it changes when a member changes its meaning or goes away.
const FORM: (&str, u64) = ("tidegate_experiment", 1);
