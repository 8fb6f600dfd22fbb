//! mpls: labels of MPLS are pushed, changed and popped.

use super::control::Control;

/// mpls: a label of MPLS is pushed, changed or popped (tc-mpls(8), RFC 3032).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpls {
    /// What is done to the packet's labels.
    pub how: MplsHow,
    /// How the packet continues after this action.
    pub control: Control,
}

/// What mpls does to a packet's labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MplsHow {
    /// The outermost label is taken off; the packet is then of this EtherType.
    Pop(u16),
    /// Another one is put before the network header; the packet is then of this EtherType
    /// ([`MplsFields::UNICAST`] or [`MplsFields::MULTICAST`]).
    Push(u16, MplsFields),
    /// Fields of the outermost label are changed.
    Modify(MplsFields),
    /// The outermost label's time to live is decremented.
    DecTtl,
}

/// The fields of a label that are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MplsFields {
    /// The label, 0 to 0xfffff.
    pub label: Option<u32>,
    /// The traffic class, 0 to 7.
    pub class: Option<u8>,
    /// It is the bottom of the stack.
    pub bottom: Option<bool>,
    /// The time to live, 1 to 255.
    pub ttl: Option<u8>,
}

impl MplsFields {
    /// The EtherType of MPLS.
    pub const UNICAST: u16 = 0x8847;
    /// The EtherType of MPLS with labels that upstream routers assign (RFC 5332).
    pub const MULTICAST: u16 = 0x8848;
    /// The label that never is in a packet (implicit null, RFC 3032).
    pub const IMPLICIT_NULL: u32 = 3;
}
