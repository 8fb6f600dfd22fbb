#![no_std]
#![forbid(unsafe_code)]
//! Foreign text, safe to print.
//!
//! Scripts, file names, result files, device names and servers choose bytes that end on someone's terminal.
//! A terminal takes some of them as commands (ESC, CSI, OSC: ECMA-48), and some characters make text look
//! different from what it is (bidirectional overrides, zero-width characters: Unicode TR 36 and 39,
//! CVE-2021-42574). Here they become visible: `\x1b`, `\u{202e}`.
//!
//! [`line()`] and [`lines`] are for text, [`json`] for a document in JSON (it stays the same document),
//! [`Filter`] for bytes that come piece by piece.
//!
//! Pure: no clock, no IO, no global state.

extern crate alloc;

mod excerpt;
mod filter;
mod visible;

pub use excerpt::excerpt;
pub use filter::Filter;
pub use visible::{Visible, is_visible, json, line, lines, shell_bytes, shell_word};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
