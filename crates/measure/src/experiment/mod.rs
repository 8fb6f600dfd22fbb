//! What an experiment showed, as one document: a scenario, its cases (each policy under each load), the runs
//! of each case, and what was published beside what was found. Tables, pages, comparisons and flent's files
//! are made from this and nothing else.
//!
//! Times are nanoseconds from the beginning of a run, sizes bytes of frames, rates bits per second, unless a
//! field says otherwise.

mod cases;
mod figures;
mod parts;

pub use cases::{Case, Spread};
pub use figures::{NoSuchFigure, Value, figure, figures, group_of};
pub use parts::{
    Arrivals, Cable, Comparison, Event, Experiment, Lateness, LinkSeries, Load, Node, Policy, Probe, Run,
    Transfer,
};
