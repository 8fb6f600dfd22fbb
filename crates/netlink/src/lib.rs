#![forbid(unsafe_code)]
//! Traffic control and nftables of Linux over netlink.
//!
//! [`encode`] turns operations into the messages that tc 6.1 and nft send for them, byte for byte; [`decode`] turns what the kernel tells into dumps.
//! Both are pure functions of their arguments. [`Kernel`] and [`Netfilter`] send and receive, in the network namespace they were opened in.

pub mod attribute;
pub mod decode;
pub mod encode;
mod kernel;
mod netfilter;

pub use kernel::{InstalledQdiscs, Kernel, KernelError, RawDump};
pub use netfilter::{FlowTable, Netfilter};
