#![no_std]
#![forbid(unsafe_code)]
//! The model machine: devices with their queueing trees, and netfilter's tables before them.
//!
//! One [`Gateway`] is one Linux machine. Front ends bring it [`Op`](tidegate_policy::Op)s and read dumps; a
//! driver (replay, the simulator, the lab, the daemon) brings packets and the time.

extern crate alloc;

mod blocks;
mod device;
mod firewall;
mod links;
mod machine;
mod nat;
mod redirect;
mod stack;

pub use device::{DeviceId, DeviceKind, DeviceSpec, Encap};
pub use firewall::{Checkpoint, tos_priority};
pub use machine::{EgressPath, Gateway, GatewayContext};
pub use redirect::ReceiveOutcome;
pub use tidegate_qdisc::{
    BacklogLocation, CakeReason, CakeTin, DropReason, Event, EventKind, Switches, XmitStatus,
};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
