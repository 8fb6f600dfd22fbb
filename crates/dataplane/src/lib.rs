#![forbid(unsafe_code)]
//! Policies run by tidegate's own qdiscs on real links: a [`packet_io`] takes packets out of the kernel's
//! hands, the [`engine`] decides when each may continue, the [`daemon`] is their loop, and the socket by
//! which others ask and change.

pub mod daemon;
pub mod engine;
pub mod packet_io;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
