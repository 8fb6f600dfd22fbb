#![forbid(unsafe_code)]
//! Results evaluated: figures as rows and series, comparisons and their significance, documents read and
//! written.
//!
//! | module | of what | figures | documents |
//! |---|---|---|---|
//! | [`trial`] | a policy on a home link | pairs of runs, classes at work | JSON, both ways |
//! | [`experiment`] | policies under loads | tables, series, comparisons with significance | JSON both ways,
//! flent's files both ways, mahimahi's |
//! | [`ping`] | repeated pings | | JSON both ways, ping-exp's files read |
//! | [`replayed`] | a capture under policies | tables | JSON |
//! | [`verify`] | the same load with and without a policy, in turns | rows, each with its verdict | JSON |
//! | [`watch`] | devices at work | what happened between two snapshots | snapshots read, JSON, Prometheus'
//! text |
//! | [`outcome`] | scores of probes for applications | | members of the documents above |
//! | [`quick`], [`calibrate`], [`record`], [`doctor`], [`loss`], [`overhead`] | a line, a computer | | JSON |
//!
//! Pure: no files, clock, processes or output. `tidegate-report` draws it and lays it out for people.
//!
//! ```
//! use tidegate_analysis::experiment::{Comparing, Side};
//! use tidegate_measure::experiment::{Experiment, LoadRecord, PolicyRecord, ProbeRecord, RunRecord};
//!
//! // Five repeats of a ping under one load, of 100 ms and of 20 ms.
//! let side = |label: &str, ms: u64| {
//!     let probe = |n| ProbeRecord { id: "ping".into(), answers: vec![(0, Some((ms + n) * 1_000_000))],
//!     ..ProbeRecord::default() };
//!     let run = |n: u32| RunRecord {
//!         policy: "p".into(),
//!         load: "l".into(),
//!         repeat: n,
//!         window: (0, 1_000_000_000),
//!         probes: vec![probe(u64::from(n))],
//!         ..RunRecord::default()
//!     };
//!     let policies = vec![PolicyRecord { name: "p".into(), ..PolicyRecord::default() }];
//!     let loads = vec![LoadRecord { name: "l".into(), ..LoadRecord::default() }];
//!     let experiment = Experiment { policies, loads, runs: (0..5).map(run).collect(),
//!     ..Experiment::default() }; Side { label: label.into(), experiment }
//! };
//! let sides = [side("before", 100), side("after", 20)];
//! let comparing = Comparing::new(&sides);
//! let median = comparing.rows.iter().find(|row| row.figure == "ping.median").unwrap();
//! let change = median.change(1).unwrap();
//! assert_eq!((change.percent.map(|p| p.round()), change.significant), (Some(-78.0), Some(true)));
//! ```

pub mod calibrate;
pub mod data;
pub mod doctor;
pub mod experiment;
mod json;
pub mod loss;
pub mod outcome;
pub mod overhead;
pub mod ping;
pub mod quick;
pub mod record;
pub mod replayed;
pub mod trial;
pub mod verify;
pub mod watch;

pub use json::DocumentError;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
