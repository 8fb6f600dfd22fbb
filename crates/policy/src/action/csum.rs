//! csum: checksums are computed again.

use super::control::Control;

/// csum: checksums are computed again after a packet was rewritten (tc-csum(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Csum {
    /// Which checksums: bits of [`Csum::NAMES`].
    pub sums: u32,
    /// How the packet continues after this action.
    pub control: Control,
}

impl Csum {
    /// The checksum of IPv4's header.
    pub const HEADER: u32 = 1;
    /// The checksum of ICMP and ICMPv6.
    pub const ICMP: u32 = 2;
    /// The checksum of IGMP.
    pub const IGMP: u32 = 4;
    /// The checksum of TCP.
    pub const TCP: u32 = 8;
    /// The checksum of UDP; one that is 0 (none) stays.
    pub const UDP: u32 = 16;
    /// The checksum of UDP-Lite.
    pub const UDPLITE: u32 = 32;
    /// The CRC of SCTP.
    pub const SCTP: u32 = 64;

    /// Their names in listings, in tc's order.
    pub const NAMES: [(u32, &'static str); 7] = [
        (Csum::HEADER, "iph"),
        (Csum::ICMP, "icmp"),
        (Csum::IGMP, "igmp"),
        (Csum::TCP, "tcp"),
        (Csum::UDP, "udp"),
        (Csum::UDPLITE, "udplite"),
        (Csum::SCTP, "sctp"),
    ];
}
