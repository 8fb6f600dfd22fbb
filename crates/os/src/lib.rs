#![deny(clippy::undocumented_unsafe_blocks)]
// Each file declares the calls it makes, with structures in which it names what it uses.
#![allow(clashing_extern_declarations)]
//! The outside world: namespaces, mounts, links, processes. The only crate with unsafe code.
//!
//! Nothing here knows what traffic control is: a sandbox runs a program, a link has a name and a kind.

pub mod apart;
pub mod boot;
pub mod bpf;
pub mod datagrams;
pub mod ethtool;
pub mod icmp;
pub mod interrupt;
pub mod netlink;
pub mod news;
pub mod nfqueue;
pub mod offload;
pub mod packet_socket;
pub mod place;
pub mod poll;
pub mod process;
pub mod sandbox;
pub mod service;
pub mod socket;
pub mod stamped;
pub mod talk;
pub mod tap;
pub mod terminal;
pub mod tun;
pub mod turn;
pub mod unix;
pub mod wait;
