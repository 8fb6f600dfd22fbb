//! vlan: tags of 802.1Q and 802.1ad are put on, changed and taken off.

use super::Control;

/// What is done to a packet's tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// It.
    pub how: VlanHow,
    /// How things go on.
    pub control: Control,
}

/// One of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanHow {
    /// The outermost tag is taken off.
    Pop,
    /// Another one is put on.
    Push(VlanTag),
    /// The outermost is changed.
    Modify(VlanTag),
}

/// A tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The VLAN.
    pub id: u16,
    /// The tag's own EtherType: [`VlanTag::DOT1Q`] or [`VlanTag::DOT1AD`].
    pub protocol: u16,
    /// Its priority, if one was named.
    pub priority: Option<u8>,
}

impl VlanTag {
    /// 802.1Q.
    pub const DOT1Q: u16 = 0x8100;
    /// 802.1ad.
    pub const DOT1AD: u16 = 0x88a8;
}
