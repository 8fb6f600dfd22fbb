//! The result of a whole visit to the gym, as a document.

use crate::front::{CaseRow, GymComparison};
use crate::run::GymRecord;
use serde::Serialize;

/// The form of the document: it changes when a member changes its meaning or goes away.
pub const GYM_FORM: u64 = 1;

/// What was found: every score, the comparison, and the records of some cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GymDocument {
    /// [`GYM_FORM`].
    pub tidegate_gym: u64,
    /// The version of tidegate.
    pub version: String,
    /// The command that gives the same document.
    pub command: String,
    /// The qdisc that held the rates.
    pub shaper: String,
    /// Seconds of each run before it was measured, and measured.
    pub seconds: [f64; 2],
    /// Names of the controllers, in the order of all lists; the baselines come last.
    pub controllers: Vec<String>,
    /// How many of them are baselines.
    pub baselines: usize,
    /// A row for each case.
    pub rows: Vec<CaseRow>,
    /// The comparison.
    pub comparison: GymComparison,
    /// Runs without a score: the case, the controller, and why.
    pub failures: Vec<GymFailure>,
    /// Cases in detail.
    pub details: Vec<CaseDetail>,
}

/// A run without a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GymFailure {
    /// The case's name.
    pub case: String,
    /// The controller's.
    pub controller: String,
    /// Why.
    pub why: String,
}

/// A case in detail: time series and decisions of the controllers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseDetail {
    /// Its place in [`GymDocument::rows`].
    pub row: usize,
    /// What happens in it, in a sentence.
    pub about: String,
    /// A record for each controller, the baselines but the known capacity left out.
    pub records: Vec<DetailRecord>,
}

/// The record of one controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetailRecord {
    /// Its place in [`GymDocument::controllers`].
    pub controller: usize,
    /// What happened.
    pub record: GymRecord,
}
