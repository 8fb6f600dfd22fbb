//! A trial ([`tidegate_measure::trial::TrialDocument`]): what tables and pages derive from it, and its
//! document.
//!
//! Member names of the document are those of the structs in [`tidegate_measure::trial`], units included;
//! times are nanoseconds, sizes bytes, rates bits per second. `answers` holds pairs `[sent, took]`, `took`
//! being `null` where none came; `window` is `[began, ended]`.

mod document;
mod figures;

pub use document::{from_json, to_json};
pub use figures::{
    ClassFigures, FigurePair, Pair, classes_at_work, every_class, goodput, hardest, label, main_probe, node,
    pairs, part, window_steps,
};
