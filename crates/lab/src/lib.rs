#![forbid(unsafe_code)]
//! Real hosts at the edges of a simulated network, by the real clock.
//!
//! ```text
//! host (a namespace: real TCP, real programs) ──▶ TUN ──▶ Driver ── inject ──▶ sim::World (links, buffers, machines with qdiscs)
//!      ▲                                                   │  ▲                         │
//!      └────────────────────────────── TUN ◀───────────────┘  └───── arrived ───────────┘
//! ```
//! The network is the simulator's own, driven by another clock: [`Driver`] gets the time and the packets from
//! an [`Environment`], which is the machine's clock and TUN devices ([`Edges`]), or a list (its test).
//! [`experiment`] carries out a scenario's file that way, as `tidegate_scenario` does in virtual time.

mod conversations;
mod driver;
mod edges;
pub mod experiment;
mod frames;
mod host;
mod icmp;
mod lateness;
pub mod load;
mod router;

pub use driver::{Driver, DriverStats, Environment, Party};
pub use edges::Edges;
pub use host::{HostError, HostSpec, LabHost};
pub use lateness::LatenessHistogram;
pub use router::{Router, RouterDevice, RouterSpec};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
