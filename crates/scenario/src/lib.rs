#![forbid(unsafe_code)]
//! Experiments that a file describes: policies compared under loads, between hosts and machines, in virtual
//! time.
//!
//! ```text
//! text ──▶ parse ──▶ Scenario ──▶ prepare (policies loaded, each tried once)
//!                      └─ cases × repeats: lay (a World) ──▶ run (read step by step) ──▶ document ──▶ expectations
//! ```
//!
//! Pure: no files, clock, processes or output. Files that a scenario names come through [`Files`]; its
//! traffic is carried by a [`run::TrafficDriver`], simulated hosts ([`Simulated`]) or real ones
//! (`tidegate-lab`). The same text and seed give the same document to the byte.
//!
//! ```
//! use std::path::Path;
//! use tidegate_scenario::{NoFiles, parse, simulate};
//!
//! let text = r#"
//! duration = "5s"
//! [home]
//! up = "1mbit"
//! down = "10mbit"
//! [policies.none]
//! [policies.fair]
//! gateway = ["tc qdisc add dev eth0 root handle 1: htb default 1",
//!            "tc class add dev eth0 parent 1: classid 1:1 htb rate 900kbit",
//!            "tc qdisc add dev eth0 parent 1:1 fq_codel"]
//! [[traffic]]
//! tcp = "a -> server"
//! [[traffic]]
//! ping = "b -> server"
//! every = "100ms"
//! [[expect]]
//! figure = "ping.median"
//! of = "fair/load"
//! over = "none/load"
//! below = 0.5
//! "#;
//! let mut scenario = parse(Path::new("home.toml"), text, &NoFiles).unwrap();
//! let experiment = simulate(&mut scenario, &NoFiles).unwrap();
//! assert_eq!(experiment.runs.len(), 2);
//! // With the queue under control, a ping waits less than half as long beside an upload.
//! assert!(experiment.comparisons[0].held);
//! ```

mod begin;
mod bounds;
mod choice;
mod composed;
pub mod document;
mod drive;
mod expectations;
mod experiment;
mod file;
mod files;
pub mod lay;
pub mod library;
pub mod model;
pub mod prepare;
pub mod presets;
pub mod quantities;
mod recorded;
pub mod run;
pub mod series;
pub mod settings;
pub mod shell;
mod simulated;
pub mod tables;
pub mod transactions;

pub use choice::CaseChoice;
pub use composed::{TraceSpec, joined_names, split_names};
pub use drive::run;
pub use expectations::check;
pub use experiment::{can_be_simulated, cases, link_seconds, simulate, simulate_case};
pub use file::{BadCommand, command_of, parse, parse_command};
pub use files::{FileError, Files, NoFiles, PolicyCommands, PolicyEnd, PolicyFile};
pub use recorded::{BadRecording, recording};
pub use run::RunError;
pub use simulated::Simulated;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
