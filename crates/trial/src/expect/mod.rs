//! What is expected of a policy, held against the simulated link and the engine.

mod judge;
mod suite;
mod words;

pub use judge::{Judged, Verdict, judge};
pub use suite::{Case, OPTIONS, Suite, parse};
pub use words::{Bound, Classes, Compare, Ending, Expected, Figure, Measured, Subject, parse as expectation};
