#![forbid(unsafe_code)]
//! The egress of one Linux network device, for simulators and other event loops: its queueing disciplines
//! (qdiscs) come from tc commands, packets are offered to it and taken from it, time is an argument.
//!
//! [`EgressDevice`] owns the packet pool, the timers and the random numbers that the qdiscs of
//! [`tidegate_qdisc`] need, checks every argument, and reports the end of each packet exactly once. It is
//! what the C library (`tidegate-capi`) is made of.

mod commands;
mod config;
mod device;
mod error;
mod limits;
mod packet;
mod track;

pub use commands::TcOutput;
pub use config::EgressConfig;
pub use device::{EgressDevice, EgressStats};
pub use error::Error;
pub use limits::{MAX_COMMANDS, MAX_LENGTH, MAX_OUTPUT, MAX_PACKETS, MAX_RATE, MAX_STEP, MAX_TIME};
pub use packet::{DropCause, DroppedPacket, OfferedPacket, PacketFields, SentPacket};
pub use tidegate_packet::{Handle, Nanos, Time};
pub use tidegate_qdisc::XmitStatus;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
