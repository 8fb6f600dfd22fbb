//! A bundle: a directory with everything that results follow from, and what does it all again. It is what
//! goes beside a paper (the badges of the ACM for artefacts: available, functional, reproduced).
//!
//! ```text
//! scenario ─▶ inputs (all files its runs read) ─▶ commands of tidegate, run on the copies ─▶ results, figures
//!                └────────── SHA256SUMS, provenance.json, reproduce.sh, CITATION.cff ◀──────────┘
//! ```
//! Its results are made by the commands that it holds, from the inputs that it holds.

mod check;
mod commands;
mod document;
mod inputs;
mod make;
mod names;
mod steps;
mod sums;
mod texts;
mod walk;

pub use check::{CheckedBundle, check};
pub use commands::{BundleCommand, option};
pub use document::{BundleCheck, BundleFault, BundledFile, ProgramFile, Provenance};
pub use inputs::OutsideFile;
pub use make::{BundleJob, BundlePlot, make};
pub use steps::{Outcome, ProgramRun};
pub use texts::Citation;
