#![forbid(unsafe_code)]
//! Experiments over ranges of parameters: which cases a sweep has, the rows of its results, and what they say
//! together.
//!
//! ```text
//! [sweep] of a scenario ─▶ SweepPlan ─▶ cases ─▶ (settings on the text, simulated by the caller) ─▶ rows ─▶ summary
//! ```
//!
//! Pure: no files, clock, processes or output. `tidegate-sessions` carries sweeps out on all processors.

mod axis;
mod bootstrap;
mod choice;
mod condition;
mod file;
mod harm;
mod json;
mod plan;
mod plot;
mod row;
mod summary;
mod tune;

pub use axis::{AxisValues, BadAxis, MAX_VALUES, SweepAxis, ValueRange, number_of};
pub use bootstrap::FEWEST;
pub use choice::{BadSweep, SweepChoice};
pub use condition::SweepCondition;
pub use file::{MAX_REPEATS, SweepFile, read};
pub use harm::Harm;
pub use json::summary_json;
pub use plan::{MAX_CASES, Method, SweepCase, SweepPlan};
pub use plot::{PlotPoint, PlotSeries, PlotWanted, PlotX, SweepPlot};
pub use row::{
    BadRows, FIGURE, FigureRow, KEYS, SweepHead, SweepRun, SweepTable, csv_head, figures_of, numeric,
};
pub use summary::{Difference, IntervalMethod, SummaryRow, SweepQuery, SweepSummary, figure_names};
pub use tune::{BadGoal, FEWEST_TRIED, TuneBound, TuneGoal, TuneLimit, TuneRank, search};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
