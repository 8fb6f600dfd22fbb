//! vlan: tags of 802.1Q and 802.1ad are put on, changed and taken off.

use super::control::Control;

/// vlan: tags of 802.1Q and 802.1ad are put on, changed or taken off (tc-vlan(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// What is done to the packet's tags.
    pub how: VlanHow,
    /// How the packet continues after this action.
    pub control: Control,
}

/// What vlan does to a packet's tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanHow {
    /// The outermost tag is taken off.
    Pop,
    /// Another one is put on.
    Push(VlanTag),
    /// The outermost is changed.
    Modify(VlanTag),
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The VLAN's number (VID), 0 to 4095.
    pub id: u16,
    /// The tag's own EtherType: [`VlanTag::DOT1Q`] or [`VlanTag::DOT1AD`].
    pub protocol: u16,
    /// Its priority (PCP), 0 to 7, if one was named.
    pub priority: Option<u8>,
}

impl VlanTag {
    /// The EtherType of a customer's tag (802.1Q).
    pub const DOT1Q: u16 = 0x8100;
    /// The EtherType of a service tag (802.1ad, Q-in-Q).
    pub const DOT1AD: u16 = 0x88a8;
}
