//! A packet's fields: what its headers say, and what the machine knows of it.

use core::net::{IpAddr, Ipv4Addr};
use tidegate_packet::header::{ethertype, proto, tcp_flags};
use tidegate_packet::{FwMark, Head, Meta};
use tidegate_policy::netfilter::Connstate;

/// The port a packet comes from where its words name none.
pub const ANY_PORT: u16 = 40_000;
/// Bytes of the network packet where its words name none.
const PLAIN_LENGTH: u16 = 500;
/// The length of an echo, as ping sends it: this much after the network header.
const ECHO: u16 = 64;
/// An ARP message for IPv4 on Ethernet.
const ARP_LENGTH: u16 = 28;

/// A packet, described: its header fields, and what the machine knows of it.
///
/// ```
/// use tidegate_inspect::Packet;
/// let packet = Packet::parse("tcp 192.168.1.7:51820 > 1.1.1.1:443 dscp CS1 len 120 ack").unwrap();
/// assert_eq!((packet.dsfield, packet.length), (0x20, 120));
/// assert_eq!(packet.to_string(), "tcp 192.168.1.7:51820 > 1.1.1.1:443 dscp CS1 len 120");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// EtherType.
    pub ethertype: u16,
    /// IP protocol; 0 where it is no IP.
    pub protocol: u8,
    /// Sender; `0.0.0.0` where the protocol has no addresses.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// Ports of both; 0 where the protocol has none ([`has_ports`]).
    pub ports: (u16, u16),
    /// Type and code, of ICMP and ICMPv6.
    pub icmp: (u8, u8),
    /// The flags of TCP, as in the header.
    pub tcp_flags: u8,
    /// The DS field: DSCP and ECN.
    pub dsfield: u8,
    /// Bytes of the network packet.
    pub length: u16,
    /// Words of the IPv4 header, 5 to 15.
    pub ihl: u8,
    /// The firewall mark that it comes with.
    pub mark: u32,
    /// The priority that it comes with (`skb->priority`): a number, or a class.
    pub priority: u32,
    /// What it is to its connection; `None`: whatever nothing before it makes it.
    pub state: Option<Connstate>,
    /// It goes against the direction in which its connection began.
    pub reply: bool,
    /// Bytes that its connection has carried before, in its own direction.
    pub carried: u64,
    /// The mark of its connection.
    pub connmark: u32,
    /// The device it comes in by.
    pub from: Option<String>,
    /// The device it leaves by.
    pub to: Option<String>,
    /// Unnamed bytes: the offset from the beginning of the network header, and the value. Ascending.
    pub raw_bytes: Vec<(u8, u8)>,
}

impl Default for Packet {
    /// A TCP segment without addresses.
    fn default() -> Packet {
        Packet {
            ethertype: ethertype::IPV4,
            protocol: proto::TCP,
            source: Ipv4Addr::UNSPECIFIED.into(),
            destination: Ipv4Addr::UNSPECIFIED.into(),
            ports: (ANY_PORT, 0),
            icmp: (0, 0),
            tcp_flags: tcp_flags::ACK,
            dsfield: 0,
            length: PLAIN_LENGTH,
            ihl: 5,
            mark: 0,
            priority: 0,
            state: None,
            reply: false,
            carried: 0,
            connmark: 0,
            from: None,
            to: None,
            raw_bytes: Vec::new(),
        }
    }
}

/// Does a protocol begin with two ports?
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, proto::TCP | proto::UDP | 33 | 132 | 136)
}

/// Is it ICMP, for either family?
pub const fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, proto::ICMP | proto::ICMPV6)
}

impl Packet {
    /// Does it carry IP?
    pub fn is_ip(&self) -> bool {
        matches!(self.ethertype, ethertype::IPV4 | ethertype::IPV6)
    }

    /// IPv6?
    pub fn is_ipv6(&self) -> bool {
        self.ethertype == ethertype::IPV6
    }

    /// Bytes of the network header.
    pub fn network_header(&self) -> usize {
        match self.ethertype {
            ethertype::IPV4 => usize::from(self.ihl) * 4,
            ethertype::IPV6 => 40,
            _ => 0,
        }
    }

    /// Bytes of all headers: no packet of this protocol is shorter.
    pub fn shortest(&self) -> u16 {
        let inner = match self.protocol {
            _ if self.ethertype == ethertype::ARP => ARP_LENGTH,
            _ if !self.is_ip() => 0,
            proto::TCP => 20,
            proto::UDP | proto::ICMP | proto::ICMPV6 | 136 => 8,
            132 | 33 => 12,
            _ => 0,
        };
        self.network_header() as u16 + inner
    }

    /// The default length of such a packet.
    pub fn usual_length(&self) -> u16 {
        match self.protocol {
            _ if self.ethertype == ethertype::ARP => ARP_LENGTH,
            proto::ICMP | proto::ICMPV6 if self.is_ip() => self.network_header() as u16 + ECHO,
            _ => PLAIN_LENGTH,
        }
    }

    /// The type of an echo request in its family.
    pub fn echo_request(&self) -> (u8, u8) {
        if self.protocol == proto::ICMPV6 { (128, 0) } else { (8, 0) }
    }

    /// The packet that replies to it: ends swapped, without devices, marks or sizes.
    pub fn answer(&self) -> Packet {
        let icmp = match (self.protocol, self.icmp) {
            (proto::ICMP, (8, 0)) => (0, 0),
            (proto::ICMP, (0, 0)) => (8, 0),
            (proto::ICMPV6, (128, 0)) => (129, 0),
            (proto::ICMPV6, (129, 0)) => (128, 0),
            (_, icmp) => icmp,
        };
        // What answers a SYN acknowledges it (RFC 9293, section 3.5).
        let opens = self.protocol == proto::TCP && self.tcp_flags & tcp_flags::SYN != 0;
        let tcp_flags = if opens { self.tcp_flags | tcp_flags::ACK } else { self.tcp_flags };
        Packet {
            tcp_flags,
            source: self.destination,
            destination: self.source,
            ports: (self.ports.1, self.ports.0),
            icmp,
            from: self.to.clone(),
            to: self.from.clone(),
            reply: !self.reply,
            state: Some(Connstate::Established),
            mark: 0,
            priority: 0,
            raw_bytes: Vec::new(),
            ..self.clone()
        }
    }

    /// Its front: the headers, as far as a machine keeps them.
    pub fn head(&self) -> Head {
        let mut bytes = match self.ethertype {
            ethertype::IPV4 => self.ipv4(),
            ethertype::IPV6 => self.ipv6(),
            ethertype::ARP => self.arp(),
            _ => Vec::new(),
        };
        bytes.resize(usize::from(self.length).min(Head::NETWORK).max(bytes.len()), 0);
        bytes.truncate(Head::NETWORK);
        for (at, value) in &self.raw_bytes {
            if let Some(byte) = bytes.get_mut(usize::from(*at)) {
                *byte = *value;
            }
        }
        Head::from_network(self.ethertype, &bytes)
    }

    /// What a machine knows of it where frames count so many bytes of a link header.
    pub fn meta(&self, link_header: u32) -> Meta {
        let mut meta = Meta::of(&self.head(), u32::from(self.length) + link_header);
        meta.mark = FwMark(self.mark);
        meta.priority = self.priority;
        meta
    }

    fn ipv4(&self) -> Vec<u8> {
        let mut bytes = vec![0x40 | self.ihl & 15, self.dsfield];
        bytes.extend(self.length.to_be_bytes());
        // Not fragmented, and not to be.
        bytes.extend([0, 0, 0x40, 0, 64, self.protocol, 0, 0]);
        for address in [self.source, self.destination] {
            bytes.extend(v4(address));
        }
        bytes.resize(self.network_header().max(20), 0);
        bytes.extend(self.transport());
        bytes
    }

    fn ipv6(&self) -> Vec<u8> {
        let mut bytes = vec![0x60 | self.dsfield >> 4, self.dsfield << 4, 0, 0];
        bytes.extend(self.length.saturating_sub(40).to_be_bytes());
        bytes.extend([self.protocol, 64]);
        for address in [self.source, self.destination] {
            bytes.extend(v6(address));
        }
        bytes.extend(self.transport());
        bytes
    }

    fn arp(&self) -> Vec<u8> {
        // A request for IPv4 on Ethernet (RFC 826).
        let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(v4(self.source));
        bytes.extend([0; 6]);
        bytes.extend(v4(self.destination));
        bytes
    }

    /// What follows the network header.
    fn transport(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if has_ports(self.protocol) {
            bytes.extend(self.ports.0.to_be_bytes());
            bytes.extend(self.ports.1.to_be_bytes());
        }
        match self.protocol {
            proto::TCP => {
                let acknowledges = u8::from(self.tcp_flags & tcp_flags::ACK != 0);
                bytes.extend([
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    0,
                    acknowledges,
                    0x50,
                    self.tcp_flags,
                    0xff,
                    0xff,
                    0,
                    0,
                    0,
                    0,
                ]);
            }
            proto::UDP => {
                let length = self.length.saturating_sub(self.network_header() as u16);
                bytes.extend(length.to_be_bytes());
                bytes.extend([0, 0]);
            }
            proto::ICMP | proto::ICMPV6 => {
                bytes.extend([self.icmp.0, self.icmp.1, 0, 0, 0, 1, 0, 1]);
                if self.quotes() {
                    bytes.extend(self.quoted().head().network());
                }
            }
            _ => {}
        }
        bytes
    }

    /// Is it an error message, which quotes the packet it is about (RFC 792, RFC 4443)?
    pub fn quotes(&self) -> bool {
        match self.protocol {
            proto::ICMP => matches!(self.icmp.0, 3 | 4 | 5 | 11 | 12),
            proto::ICMPV6 => matches!(self.icmp.0, 1..=4),
            _ => false,
        }
    }

    /// The packet that an error message is about: a segment that its receiver had sent.
    pub fn quoted(&self) -> Packet {
        let header = if self.is_ipv6() { 40 } else { 20 };
        Packet {
            ethertype: self.ethertype,
            source: self.destination,
            destination: self.source,
            ports: (ANY_PORT, 443),
            length: header + 20,
            ..Packet::default()
        }
    }
}

/// IPv4's four bytes; none of another family.
fn v4(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

/// IPv6's sixteen bytes; none of another family.
fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(_) => [0; 16],
    }
}
