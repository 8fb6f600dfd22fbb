#![forbid(unsafe_code)]
//! A policy tried on a simulated home link, on an idle link and under several loads, without the policy and
//! with it.
//!
//! The link is behind a modem with a big dumb buffer. People's traffic continues beside every load, and
//! classes that none of it reaches get a conversation made from the policy's own rules.
//!
//! ```text
//! TrialPolicy (machine, devices) ─┬─ reach: which class each conversation takes
//!                                 └─ loads × without/with ──▶ home ──▶ document (measure::trial::TrialDocument) ──▶ verdict
//! Suite (expect) ──▶ figures: each load simulated once; packets: where they end ──▶ verdicts
//! ```
//!
//! Pure: no files, clock, processes or output. Whoever loads a policy, from a script or a page, gives it as
//! [`Configured`].
//!
//! ```
//! use tidegate_packet::{Pool, Rate, Seeded, Nanos};
//! use tidegate_shims::Machine;
//! use tidegate_trial::{Configured, TrialLoad, TrialDevices, TrialPolicy, TrialProbe, TrialSettings, Trial};
//!
//! let mut machine = Machine::for_script(["eth0"]);
//! let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
//! for line in ["qdisc add dev eth0 root handle 1: htb default 1",
//!              "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
//!              "qdisc add dev eth0 parent 1:1 handle 10: fq_codel"] {
//!     let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
//!     assert_eq!(machine.shim(&mut pool, &mut draws).tc(&words, None).code, 0);
//! }
//! let configured = Configured { machine, commands: 3, wan: None, lan: None, notes: Vec::new(), names:
//! Default::default() }; let policy = TrialPolicy::new(configured, TrialDevices::default()).unwrap();
//! assert_eq!(policy.wan, "eth0");
//!
//! let (up, down) = (Rate::bits(1_200_000), Rate::bits(10_000_000));
//! let settings = TrialSettings {
//!     duration: Nanos::secs(5),
//!     load: vec![TrialLoad::Tcp1up],
//!     probes: vec![TrialProbe::Ping],
//!     ..TrialSettings::new("home.sh", up, down)
//! };
//! let mut trial = Trial::new(&settings, &policy);
//! trial.explore();
//! trial.simulate(&|| ());
//! let document = trial.document();
//! let median = |run: usize| {
//!     let run = &document.runs[run];
//!     run.probes[0].figures(run.window).rtt.percentile(50.0).unwrap()
//! };
//! // Beside an upload a ping waits ten times as long without the policy.
//! assert!(median(0) > 10 * median(1));
//! assert!(!document.verdict.is_empty());
//! ```

mod command;
mod document;
mod drops;
pub mod expect;
mod figures;
mod home;
mod household;
mod loads;
mod modem;
mod neighbours;
mod notes;
mod policy;
mod reach;
mod same;
mod settings;
mod state;
mod transfers;
mod trial;
mod verdict;
mod versions;
mod words;
mod worse;

pub use command::TrialCommand;
pub use home::{InstalledTrees, START};
pub use loads::{LAST_HOST, Transfers, Workload};
pub use policy::{Configured, PolicyError, TrialDevices, TrialPolicy};
pub use reach::DeviceClass;
pub use same::difference;
pub use settings::{ModemBuffer, OLD_NAMES, TrialLine, TrialLoad, TrialProbe, TrialSettings};
pub use state::Trial;
pub use trial::measure;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
