//! Estimators on links of known truth, in virtual time: what each measures beside what is so.
//!
//! What they find is in docs/measure-grid.md. An estimator that says it must not be believed is counted
//! as such; one that is wrong without saying so fails the test.

mod delays;
mod links;
mod overhead;
mod rates;
mod table;
