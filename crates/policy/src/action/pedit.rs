//! pedit: octets of a packet become others, in words of 32 bits.

use super::Control;

/// Words that are rewritten one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pedit {
    /// Them.
    pub keys: Vec<PeditKey>,
    /// How things go on.
    pub control: Control,
}

/// One word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeditKey {
    /// Where offsets begin.
    pub header: PeditHeader,
    /// The value is added; else it is set.
    pub add: bool,
    /// The value, in the order of the wire.
    pub value: u32,
    /// The bits that stay.
    pub mask: u32,
    /// Octets from there.
    pub offset: i32,
    /// An octet of the packet moves the word further.
    pub at: Option<PeditAt>,
}

/// How far an octet of the packet moves a word: that octet under a mask, shifted right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeditAt {
    /// The octet's offset.
    pub offset: i32,
    /// Its bits that count.
    pub mask: u32,
    /// So many bits to the right.
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
    /// The network header, meant to be IPv4's; nobody looks.
    Ipv4,
    /// The network header, meant to be IPv6's; nobody looks.
    Ipv6,
    /// What follows the network header, meant to be TCP's.
    Tcp,
    /// What follows the network header, meant to be UDP's.
    Udp,
}

impl PeditHeader {
    /// Its name in listings.
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
