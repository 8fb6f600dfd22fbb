//! Estimators on links of known truth, in virtual time: what each measures beside what is so.
//!
//! The results are in docs/measure-grid.md. An estimator that reports itself as unreliable is counted as
//! such; one that is wrong without a caveat fails the test.

mod delays;
mod links;
mod overhead;
mod rates;
mod recordings;
mod table;
