#![forbid(unsafe_code)]
//! Policies on real links: by the kernel's disciplines, or by our own.
//!
//! The kernel back end: operations become netlink messages, are sent, and what the kernel says comes back to the operation it is about. [`encode`] holds pure functions
//! from operations to octets, the same that tc sends, and [`decode`] from octets to dumps; [`Kernel`] is the door they go through.
//!
//! The user-space back end: a [`door`] takes packets out of the kernel's hands, the [`engine`] decides when each may go on.

pub mod attribute;
pub mod daemon;
pub mod decode;
pub mod door;
pub mod encode;
pub mod engine;
mod kernel;
mod netfilter;
pub mod plan;

pub use kernel::{Kernel, Standing, Told, Trouble};
pub use netfilter::{FlowTable, Netfilter};
