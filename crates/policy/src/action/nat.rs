//! nat: addresses become others, packet by packet, without memory.

use super::control::Control;
use core::net::Ipv4Addr;

/// nat: addresses of one network become those of another, host bits kept, packet by packet and without
/// connections (tc-nat(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    /// Sources are translated (`egress`); else destinations.
    pub egress: bool,
    /// The address that is looked for, in the bits of the mask.
    pub old: Ipv4Addr,
    /// The address that it becomes, in the bits of the mask.
    pub new: Ipv4Addr,
    /// The bits that are compared and changed: /24 is 0xffff_ff00.
    pub mask: u32,
    /// How the packet continues after this action.
    pub control: Control,
}
