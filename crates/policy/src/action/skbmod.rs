//! skbmod: the link header, and congestion marks.

use super::control::Control;

/// skbmod: the link header is rewritten, or congestion marked (tc-skbmod(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skbmod {
    /// The frame's destination address becomes this (`set dmac`).
    pub destination: Option<[u8; 6]>,
    /// The frame's source address becomes this (`set smac`).
    pub source: Option<[u8; 6]>,
    /// The frame's EtherType becomes this (`set etype`).
    pub ethertype: Option<u16>,
    /// Both addresses change places, and nothing else is done.
    pub swap: bool,
    /// An ECN-capable packet gets the CE mark (RFC 3168), and nothing else is done.
    pub ecn: bool,
    /// How the packet continues after this action.
    pub control: Control,
}
