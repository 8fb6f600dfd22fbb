#![no_std]
#![forbid(unsafe_code)]
//! What netlink messages are made of, without IO: [`attribute`]s, and the [`numbers`] that Linux gives their
//! kinds.
//!
//! ```
//! use tidegate_netlink_wire::attribute::each;
//!
//! // What is cut short ends them.
//! let bytes = [8, 0, 1, 0, b'l', b'o', 0, 0, 9, 0];
//! assert_eq!(each(&bytes).collect::<Vec<_>>(), [(1, &b"lo\0\0"[..])]);
//! ```

extern crate alloc;

pub mod attribute;
pub mod numbers;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
