//! Expectations of a policy, tested on the simulated link and the engine.
//!
//! ```
//! use tidegate_trial::TrialLoad;
//! use tidegate_trial::expect::{Bound, Classes, Expected, Subject, expectation};
//!
//! let Ok(Expected::Measured(measured)) = expectation("voip: p99 < 20 ms while rrul", &Classes::new()) else {
//! panic!() }; assert_eq!((measured.subject, measured.bound), (Subject::Probe("voip-up".into()),
//! Bound::Time(20e6))); assert_eq!(measured.workload, tidegate_trial::Workload::Named(TrialLoad::Rrul));
//! // A mistake has its place in the words.
//! let wrong = expectation("voip: q99 < 20 ms while rrul", &Classes::new()).unwrap_err();
//! assert_eq!((wrong.at, wrong.reason.as_str()), (6..9, "unknown figure"));
//! ```

mod evaluate;
mod suite;
mod words;

pub use evaluate::{TestResults, Verdict, evaluate};
pub use suite::{Case, OPTIONS, Suite, parse};
pub use words::{Bound, Classes, Compare, Ending, Expected, Figure, Measured, Subject, parse as expectation};
