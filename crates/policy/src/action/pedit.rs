//! pedit: bytes of a packet become others, in words of 32 bits.

use super::control::Control;
use alloc::vec::Vec;

/// pedit: 32-bit words of a packet are rewritten, one after the other (tc-pedit(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pedit {
    /// The words, in the order in which they are rewritten.
    pub keys: Vec<PeditKey>,
    /// How the packet continues after this action.
    pub control: Control,
}

/// One 32-bit word that is rewritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeditKey {
    /// The header that [`PeditKey::offset`] is counted from.
    pub header: PeditHeader,
    /// The value is added; otherwise it is set.
    pub add: bool,
    /// The value, in network byte order.
    pub value: u32,
    /// The bits of the word that stay, in network byte order.
    pub mask: u32,
    /// Bytes from the header's begin to the word; negative: in front of it.
    pub offset: i32,
    /// A byte of the packet moves the word further (`at`).
    pub at: Option<PeditAt>,
}

/// How many bytes further a word is: a byte of the packet under a mask, shifted right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeditAt {
    /// Bytes from the header's begin to that byte.
    pub offset: i32,
    /// The bits of that byte that count.
    pub mask: u32,
    /// How many bits it is shifted to the right.
    pub shift: u32,
}

/// The header that offsets are counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeditHeader {
    /// The network header, written without a name.
    #[default]
    Network,
    /// The link header.
    Ethernet,
    /// The network header, meant to be IPv4's; it is not checked.
    Ipv4,
    /// The network header, meant to be IPv6's; it is not checked.
    Ipv6,
    /// What follows the network header, meant to be TCP's.
    Tcp,
    /// What follows the network header, meant to be UDP's.
    Udp,
}

impl PeditHeader {
    /// Its name in tc's listings.
    pub const fn name(self) -> &'static str {
        match self {
            PeditHeader::Network => "network",
            PeditHeader::Ethernet => "eth",
            PeditHeader::Ipv4 => "ipv4",
            PeditHeader::Ipv6 => "ipv6",
            PeditHeader::Tcp => "tcp",
            PeditHeader::Udp => "udp",
        }
    }
}
