//! An experiment ([`tidegate_measure::experiment::Experiment`]): its figures as tables and series, its
//! comparisons, its document and those of other programs (flent, mahimahi).

mod compare;
mod comparison;
mod document;
mod flent;
mod mahimahi;
mod names;
pub mod series;
mod show;
pub mod tables;
mod unflent;

pub use compare::{Change, Comparing, ComparisonRow, Side, by, comparison_json};
pub use comparison::{ComparisonText, comparison_text, in_words};
pub use document::{from_json, to_json};
pub use flent::flent_files;
pub use mahimahi::mahimahi_files;
pub use names::{file_name, joined};
pub use show::{
    Happened, Moment, RunView, Under, answers, called, distinct, end_of, happened, is_share, label, probe,
    spread, title, typical, written,
};
pub use unflent::from_flent;
