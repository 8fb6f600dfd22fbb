#![no_std]
#![forbid(unsafe_code)]
//! The queueing disciplines, packet-exact with Linux.
//!
//! A [`Shaper`] is the root of one device's egress: packets are [offered](Shaper::offer),
//! [polled](Shaper::poll) out, and [timeouts](Shaper::timeout) give the time of the next poll. Inside is a
//! tree of [`QdiscNode`]s. A `QdiscNode` does the counting that every qdisc has in common and runs one
//! [`Discipline`]; a qdisc owns its children. Time, randomness and packets come in through [`Context`].

extern crate alloc;

pub mod algo;
mod batch;
mod classful;
mod classify;
mod config;
mod context;
mod custom;
mod discipline;
mod ingress;
mod kind;
mod node;
mod pages;
mod paths;
mod shaper;

pub use classful::{Classful, InnerClasses};
pub use classify::{ClassifyResult, Consumed};
pub use context::{Context, DeviceInfo, DropReason, Event, EventKind, EventRing, RandomContext, Switches};
pub use custom::{CustomKind, custom, custom_params};
pub use discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Rehash, Trimmed, Visit};
pub use ingress::{NO_BLOCK, dump_block};
pub use kind::{CakeReason, CakeTin};
pub use node::QdiscNode;
pub use shaper::{BacklogLocation, IngressVerdict, Shaper, XmitStatus};
pub use tidegate_classify::Redirect;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
