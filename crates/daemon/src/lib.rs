#![forbid(unsafe_code)]
//! A policy run by tidegate's own queueing disciplines (qdiscs) on real devices, in a process of its own; and
//! starting, querying, changing and ending such a process.
//!
//! ```text
//! files ──▶ loader ──▶ Wanted (machine.rs) ──▶ dataplane::Engine ◀──▶ dataplane::packet_io
//!                                                  ▲
//! apply, top, tc, capture ── Client ──▶ DEV.sock ──┘ requests.rs
//! ```
//!
//! [`run()`] is the process itself. [`start()`] runs `tidegate daemon` (this executable, with
//! [`DaemonOptions::words`]) in the background and waits until packets pass through it; [`Client`] sends it
//! requests in JSON, a line in each direction; [`reload()`] has it run another policy without losing a
//! packet. [`Daemon`] is the state of a device's daemon, [`RuntimeDir`] the place of its files.

// First: its macros are for all that follows.
#[macro_use]
pub mod error;

mod client;
mod counter;
mod follow;
mod machine;
mod marks;
mod names;
mod options;
mod packet_io;
mod policy;
mod presence;
mod reload;
mod requests;
mod run;
mod runtime;
pub mod ssh;
mod start;
mod watchdog;
mod words;

pub use client::{ANSWER, Client};
pub use error::{Error, ErrorContext, ErrorKind, Result};
pub use machine::device_spec;
pub use names::{names_from_json, names_on, names_to_json};
pub use options::{DaemonOptions, PacketIoBackend};
pub use policy::MessageHandler;
pub use presence::{Daemon, MOST_AT_ONCE, Silence, each, running_policy};
pub use reload::operations;
pub use requests::device_snapshot;
pub use run::{SPLIT_BELOW, run};
pub use runtime::RuntimeDir;
pub use start::{reload, start};
pub use words::apply_command;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
