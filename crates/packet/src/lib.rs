#![no_std]
#![forbid(unsafe_code)]
//! What every room speaks in: time and rates, handles and marks, packets and the pool they live in, flow keys
//! and their hashes.
//!
//! Pure: no clock, no IO, no global randomness.

extern crate alloc;

pub mod checksum;
mod dissect;
pub mod encap;
mod flow;
pub mod header;
mod kernel;
mod lfsr;
mod linux;
mod numbers;
mod pool;
mod random;
mod sums;
mod units;
mod wheel;

pub use dissect::{Dissector, dissect, dissect_inner, fragment, innermost, transport};
pub use flow::{Addrs, FlowKeys, HashKey, Labelled, jenkins, siphash};
pub use header::Head;
pub use kernel::KernelModel;
pub use lfsr::Lfsr113;
pub use linux::{LinuxChange, LinuxChangeRow, LinuxVersion, UnknownLinux};
pub use pool::{Fifo, IntrusiveList, Meta, Pkt, Pool, QueueLocation, RedirectedTo, Scratch, truesize};
pub use random::{RandomSource, Seeded};
pub use sums::Transport;
pub use units::{FwMark, Handle, Jiffies, Nanos, Rate, Time};
pub use wheel::{PeriodicTimer, Timer, Wheel};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
