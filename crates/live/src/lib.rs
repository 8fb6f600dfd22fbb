#![forbid(unsafe_code)]
//! The kernel back end: operations become netlink messages, are sent, and what the kernel says comes back to the operation it is about.
//!
//! [`encode`] holds pure functions from operations to octets, the same that tc sends, and [`decode`] from octets to dumps; [`Kernel`] is the door they go through.

pub mod attribute;
pub mod decode;
pub mod door;
pub mod encode;
mod kernel;

pub use kernel::{Kernel, Standing, Trouble};
