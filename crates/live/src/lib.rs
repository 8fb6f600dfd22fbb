#![forbid(unsafe_code)]
//! The kernel back end: operations become netlink messages, are sent, and what the kernel says comes back to the operation it is about.
//!
//! [`encode`] holds pure functions from operations to octets, the same that tc sends; [`Kernel`] is the door they go through.

pub mod attribute;
pub mod encode;
