//! What an experiment showed, as one document: a scenario, its cases (each policy under each load), the runs
//! of each case, and what was published beside what was found. Tables, pages, comparisons and flent's files
//! are made from this and nothing else.
//!
//! Times are nanoseconds from the beginning of a run, sizes bytes of frames, rates bits per second, unless a
//! field has another unit.

mod cases;
mod convergence;
mod figures;
mod parts;

pub use cases::{ExperimentCase, Spread};
pub use figures::{NoSuchFigure, Quantity, figure, figures, group_of};
pub use parts::{
    ArrivalStats, Comparison, EventRecord, Experiment, Lateness, LinkRecord, LinkSeries, LoadRecord,
    NodeRecord, PolicyRecord, ProbeRecord, RunRecord, TransferRecord,
};
