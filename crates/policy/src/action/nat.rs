//! nat: addresses become others, packet by packet, without memory.

use super::Control;
use core::net::Ipv4Addr;

/// Addresses of a network become those of another, bits beyond the mask kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    /// Sources are translated (`egress`); else destinations.
    pub egress: bool,
    /// The address that is looked for.
    pub old: Ipv4Addr,
    /// What it becomes.
    pub new: Ipv4Addr,
    /// The bits that are compared and changed.
    pub mask: u32,
    /// How things go on.
    pub control: Control,
}
