#![no_std]
#![forbid(unsafe_code)]
//! Capture files: pcap (tcpdump's) and pcapng, read piece by piece and written.
//!
//! Nothing here opens a file. A [`Parser`] is given the bytes that follow those it has used and returns what
//! they are, or how many it needs; a [`Writer`] returns bytes. So a capture of any length is read with as
//! much memory as its longest block takes.
//!
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

extern crate alloc;

mod broken;
mod ng;
mod old;
mod packet;
mod parser;
mod words;
mod write;

pub use broken::{Broken, Cause};
pub use packet::{CaptureDirection, CapturedPacket, LONGEST, Next};
pub use parser::Parser;
pub use write::{Interface, Record, TcVerdict, Writer};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Link types by their registered numbers (<https://www.tcpdump.org/linktypes.html>).
pub mod link {
    /// Ethernet.
    pub const ETHERNET: u16 = 1;
    /// PPP in HDLC-like framing.
    pub const PPP: u16 = 9;
    /// An IP packet and nothing before it.
    pub const RAW: u16 = 101;
    /// What Linux puts before packets of "any" device.
    pub const SLL: u16 = 113;
    /// An IPv4 packet and nothing before it.
    pub const IPV4: u16 = 228;
    /// An IPv6 packet and nothing before it.
    pub const IPV6: u16 = 229;
    /// What Linux puts before packets of "any" device, second version.
    pub const SLL2: u16 = 276;
}
