#![forbid(unsafe_code)]
//! Measurements of a real line, from start to the document that tables, pages and comparisons are made of.
//!
//! | module | what it measures | needs on the other computer |
//! |---|---|---|
//! | [`measure`] | delay, loss and rate both ways, idle and loaded, by flent's tests | `tidegate serve` |
//! | [`quick`] | latency under load, rates, bottleneck | a server, a page, any host that replies |
//! | [`verify`] | the same load with and without a policy, in turns | `tidegate serve` |
//! | [`loss`] | packet loss of each direction; also from captures of both sides | `tidegate serve` |
//! | [`doctor`] | what keeps this computer from shaping as configured | nothing |
//!
//! [`simulated`] carries out a scenario's file on all processors, [`sweep`] one over ranges of parameters,
//! and [`bundle`] puts all that results follow from into a directory. [`predict`](mod@predict) tries a policy
//! on a line as it was measured; [`trial`] is what a policy's files come to for a trial. [`autorate`] changes
//! a shaper's rate as the line allows. [`KeptPath`] is a server whose results are kept when it breaks off,
//! for the estimators of `tidegate-measure`. Nothing is printed here, and nothing reads the command line; a
//! flag that the caller sets ends a measurement early.

pub mod autorate;
pub mod bundle;
pub mod doctor;
mod error;
pub mod gym;
mod kept_path;
pub mod loss;
pub mod measure;
pub mod predict;
pub mod quick;
pub mod routes;
pub mod simulated;
pub mod sweep;
pub mod trial;
pub mod tune;
pub mod verify;

pub use error::{Error, Result};
pub use kept_path::KeptPath;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
