#![forbid(unsafe_code)]
//! Controllers of a shaper's rates, tried on lines that vary: a closed loop in virtual time.
//!
//! [`run_case`] plays a [`GymCase`] with a controller and gives its [`GymScore`]; [`compare`] says which
//! controller is best at what.

mod case;
mod choice;
mod document;
mod front;
mod named;
mod network;
mod protocol;
mod run;
mod score;
mod seen;
mod shaper;

pub use case::{GymCase, GymFaults, GymLine, GymLoad, USUAL_MEAN};
pub use choice::ControllerChoice;
pub use document::{CaseDetail, DetailRecord, GYM_FORM, GymDocument, GymFailure};
pub use front::{CaseRow, ControllerSummary, GymComparison, compare, p95_at_use};
pub use named::{NAMED_FAILURES, NamedFailure};
pub use protocol::{ANSWER_RATES, CONTROLLER_FORM, MAX_ANSWER, ProgramAnswer, ProgramCall};
pub use run::{GymError, GymRecord, GymRun, MadeDecision, run_case};
pub use score::GymScore;
pub use shaper::ShaperKind;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
