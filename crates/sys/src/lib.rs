#![deny(clippy::undocumented_unsafe_blocks)]
//! The outside world: namespaces, mounts, links, processes. The only crate with unsafe code.
//!
//! Nothing here knows what traffic control is: a sandbox runs a program, a link has a name and a kind.

// System calls are made through `libc` and `rustix`, whose numbers, constants and structures are those of the
// target.
#[cfg(not(target_os = "linux"))]
compile_error!("tidegate-sys speaks Linux's system calls: namespaces, rtnetlink, nfqueue, BPF");
#[cfg(not(any(target_env = "gnu", target_env = "musl")))]
compile_error!("tidegate-sys is written for glibc and musl; uClibc and Android are not supported");
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "aarch64",
    target_arch = "arm",
    target_arch = "riscv64",
    target_arch = "mips",
)))]
compile_error!("tidegate-sys was not checked on this architecture; add it here once its assertions hold");
#[cfg(all(target_arch = "x86_64", target_pointer_width = "32"))]
compile_error!(
    "tidegate-sys does not support x32, whose system calls mix 32-bit pointers and 64-bit numbers"
);

mod address;
pub mod apart;
pub mod attach;
pub mod boot;
pub mod bpf;
pub mod confine;
mod control;
pub mod datagrams;
pub mod ethtool;
#[doc(hidden)]
pub mod fuzzing;
pub mod icmp;
mod ifreq;
pub mod input_file;
pub mod interrupt;
pub mod link_monitor;
mod messages;
pub mod namespace;
pub mod namespace_thread;
pub mod netlink;
pub mod netlink_socket;
pub mod nfqueue;
pub mod offload;
pub mod output_file;
pub mod packet_socket;
pub mod poll;
pub mod process;
pub mod scheduling;
pub mod service;
pub mod socket;
mod sockopt;
pub mod stamped;
pub mod tap;
pub mod terminal;
pub mod tun;
pub mod unix;
pub mod until;
pub mod wait;

pub use tidegate_netlink_wire::{attribute, numbers};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
