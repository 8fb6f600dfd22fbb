//! csum: checksums are computed anew.

use super::Control;

/// Which checksums are computed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Csum {
    /// The bits of [`Csum::NAMES`].
    pub sums: u32,
    /// How things go on.
    pub control: Control,
}

impl Csum {
    /// IPv4's header.
    pub const HEADER: u32 = 1;
    /// ICMP and ICMPv6.
    pub const ICMP: u32 = 2;
    /// IGMP.
    pub const IGMP: u32 = 4;
    /// TCP.
    pub const TCP: u32 = 8;
    /// UDP.
    pub const UDP: u32 = 16;
    /// UDP-Lite.
    pub const UDPLITE: u32 = 32;
    /// SCTP.
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
