//! skbmod: the link header, and congestion marks.

use super::Control;

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skbmod {
    /// The destination of the frame.
    pub destination: Option<[u8; 6]>,
    /// Its source.
    pub source: Option<[u8; 6]>,
    /// Its EtherType.
    pub ethertype: Option<u16>,
    /// Both addresses change places, and nothing else is done.
    pub swap: bool,
    /// Congestion is marked, and nothing else is done.
    pub ecn: bool,
    /// How things go on.
    pub control: Control,
}
