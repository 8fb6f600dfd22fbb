#![no_std]
#![forbid(unsafe_code)]
//! Traffic control and nftables of Linux over netlink.
//!
//! [`encode`] turns operations into the messages that tc 6.1 and nft send for them, byte for byte; [`decode`]
//! turns what the kernel reports into dumps. Both are pure functions of their arguments. `Kernel` and
//! `Netfilter` send and receive, in the network namespace they were opened in. They need the feature `std`,
//! which is on by default; the rest needs `alloc` only.
//!
//! ```
//! use tidegate_netlink::encode;
//!
//! let words = "qdisc add dev eth0 root handle 1: pfifo limit 100".split(' ').map(str::to_owned);
//! let words: Vec<String> = words.collect();
//! let parsed = tidegate_syntax::tc::parse(&words, &tidegate_syntax::Env::default()).unwrap();
//! let tidegate_syntax::tc::TcCommand::Apply(op) = parsed.command else { unreachable!() };
//! let message = encode::message(&op, &|name| (name == "eth0").then_some(2)).unwrap();
//! // RTM_NEWQDISC: 20 bytes of tcmsg, the kind's name, a struct of one number.
//! assert_eq!((message.kind, message.body.len()), (36, 20 + 12 + 8));
//! ```

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod action;
pub mod decode;
pub mod encode;
mod filter;
#[cfg(feature = "std")]
mod kernel;
mod kind;
#[cfg(feature = "std")]
mod netfilter;

pub use tidegate_netlink_wire::attribute;

#[cfg(feature = "std")]
pub use kernel::{InstalledQdiscs, Kernel, KernelError, RawDump};
#[cfg(feature = "std")]
pub use netfilter::{FlowTable, Netfilter};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
