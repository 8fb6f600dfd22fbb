//! Header bytes: what a packet carries for filters to read, and how to write and read them.
//!
//! Only the front of a packet is kept: the 14 octets of the Ethernet header and the first [`Head::NETWORK`] octets after it.

use crate::checksum;

/// EtherTypes.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// 802.1Q.
    pub const VLAN: u16 = 0x8100;
    /// 802.1ad.
    pub const QINQ: u16 = 0x88a8;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// PPPoE session.
    pub const PPPOE: u16 = 0x8864;
}

/// IP protocol numbers.
pub mod proto {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IPv4 in IP.
    pub const IPIP: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// GRE.
    pub const GRE: u8 = 47;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6's options for the destination.
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// TCP flag bits, as in the header's octet 13.
pub mod tcp_flags {
    /// No more data from sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// Acknowledgement field significant.
    pub const ACK: u8 = 0x10;
    /// Urgent pointer significant.
    pub const URG: u8 = 0x20;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// The octets of a packet's front: Ethernet header, then network header and what follows.
#[derive(Clone, Debug)]
pub struct Head {
    bytes: [u8; Head::ETHERNET + Head::NETWORK],
    len: u8,
}

impl Default for Head {
    fn default() -> Head {
        Head { bytes: [0; Head::ETHERNET + Head::NETWORK], len: Head::ETHERNET as u8 }
    }
}

impl Head {
    /// Octets of the link header.
    pub const ETHERNET: usize = 14;
    /// Octets kept from the network header on.
    pub const NETWORK: usize = 114;

    /// From the octets of a frame that begin with its Ethernet header; what is too long is cut.
    pub fn from_frame(frame: &[u8]) -> Head {
        let mut head = Head::default();
        let n = frame.len().min(head.bytes.len());
        head.bytes[..n].copy_from_slice(&frame[..n]);
        head.len = n.max(Head::ETHERNET) as u8;
        head
    }

    /// From the octets of an IP packet; the Ethernet header is filled with zero addresses and the given type.
    pub fn from_network(ethertype: u16, packet: &[u8]) -> Head {
        let mut head = Head::default();
        let n = packet.len().min(Head::NETWORK);
        head.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        head.bytes[Head::ETHERNET..Head::ETHERNET + n].copy_from_slice(&packet[..n]);
        head.len = (Head::ETHERNET + n) as u8;
        head
    }

    /// The same packet behind these octets, of this EtherType; what is too long is cut.
    pub fn wrapped(&self, ethertype: u16, before: &[u8]) -> Head {
        let mut head = self.clone();
        let (inner, room) = (self.network(), &mut head.bytes[Head::ETHERNET..]);
        let front = before.len().min(room.len());
        let rest = inner.len().min(room.len() - front);
        room[..front].copy_from_slice(&before[..front]);
        room[front..front + rest].copy_from_slice(&inner[..rest]);
        head.len = (Head::ETHERNET + front + rest) as u8;
        head.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        head
    }

    /// The same packet without its first octets, of this EtherType.
    pub fn unwrapped(&self, ethertype: u16, octets: usize) -> Head {
        let inner = self.network().get(octets..).unwrap_or(&[]);
        let mut head = Head::from_network(ethertype, inner);
        head.bytes[..12].copy_from_slice(&self.bytes[..12]);
        head
    }

    /// The octets from the network header on.
    pub fn network(&self) -> &[u8] {
        &self.bytes[Head::ETHERNET..usize::from(self.len)]
    }

    /// The same, to change.
    pub fn network_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[Head::ETHERNET..usize::from(self.len)]
    }

    /// The 32-bit big-endian word at `offset` from the network header (negative: in the Ethernet header); `None` outside.
    pub fn word(&self, offset: i32) -> Option<u32> {
        let at = usize::try_from(offset + Head::ETHERNET as i32).ok()?;
        let bytes = self.bytes[..usize::from(self.len)].get(at..at + 4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Turns a bit of the frame round, if it is among the octets kept.
    pub fn flip(&mut self, octet: usize, bit: u32) {
        if let Some(octet) = self.bytes[..usize::from(self.len)].get_mut(octet) {
            *octet ^= 1 << (bit & 7);
        }
    }

    /// The octet at `offset` from the network header (negative: in the Ethernet header), as far as octets are kept.
    pub fn octet(&self, offset: i32) -> Option<u8> {
        let at = usize::try_from(offset + Head::ETHERNET as i32).ok()?;
        self.bytes[..usize::from(self.len)].get(at).copied()
    }

    /// The outer EtherType.
    pub fn ethertype(&self) -> u16 {
        u16::from_be_bytes([self.bytes[12], self.bytes[13]])
    }

    /// The outer header's DS field (IPv4 TOS octet, IPv6 traffic class); 0 for anything else.
    pub fn dsfield(&self) -> u8 {
        let n = self.network();
        match n.first().map(|b| b >> 4) {
            Some(4) if n.len() >= 2 => n[1],
            Some(6) if n.len() >= 2 => n[0] << 4 | n[1] >> 4,
            _ => 0,
        }
    }

    /// Overwrites the outer header's DS field (an ECN mark, a DSCP rewrite). IPv4's checksum stays right.
    pub fn set_dsfield(&mut self, value: u8) {
        let n = self.network_mut();
        match n.first().map(|b| b >> 4) {
            Some(4) if n.len() >= 2 => checksum::rewrite(n, 1, &[value]),
            Some(6) if n.len() >= 2 => {
                n[0] = n[0] & 0xf0 | value >> 4;
                n[1] = n[1] & 0x0f | value << 4;
            }
            _ => {}
        }
    }
}
