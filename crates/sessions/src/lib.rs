#![forbid(unsafe_code)]
//! Measurements of a real line, from start to the document that tables, pages and comparisons are made of.
//!
//! | module | what it measures | with what at the far end |
//! |---|---|---|
//! | [`measure`] | delays, losses and rates each way, idle and under load, by flent's tests | `tidegate
//! serve` |
//! | [`quick`] | half a minute: latency under load, rates, where the queue is | `tidegate serve`, a page, or
//! any host that answers pings |
//! | [`verify`] | the same load with and without a policy, in turns | `tidegate serve` |
//! | [`loss`] | what is lost each way; also from captures of both sides | `tidegate serve` |
//! | [`doctor`] | what keeps this computer from shaping as it was told | nothing |
//!
//! [`simulated`] carries out a scenario's file on all processors, and [`predict`](mod@predict) tries a policy
//! on a line as it was measured. [`KeptPath`] is a server whose results are kept when it breaks off, for the
//! estimators of `tidegate-measure`. Nothing is printed here, and nothing reads the command line; a flag that
//! the caller sets ends a measurement early.

pub mod doctor;
mod error;
mod kept_path;
pub mod loss;
pub mod measure;
pub mod predict;
pub mod quick;
pub mod routes;
pub mod simulated;
pub mod verify;

pub use error::{Error, Result};
pub use kept_path::KeptPath;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
