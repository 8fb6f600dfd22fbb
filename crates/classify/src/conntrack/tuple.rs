//! One direction of a connection, and which packets go that way.

use crate::headers::Outer;
use tidegate_packet::header::proto;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// Sender; IPv4 in the last four bytes.
    pub source: [u8; 16],
    /// Receiver.
    pub destination: [u8; 16],
    /// Are the addresses IPv6? Those of IPv4 are in the last four bytes.
    pub v6: bool,
    /// IP protocol number (IANA): 6 is TCP.
    pub protocol: u8,
    /// Sender's port; an echo's identifier.
    pub sport: u16,
    /// Receiver's port; type and code of an ICMP message.
    pub dport: u16,
    /// The zone: connections of different zones have nothing to do with each other.
    pub zone: u16,
}

impl Tuple {
    pub(super) fn back(self) -> Tuple {
        let (sport, dport) = match self.protocol {
            proto::ICMP | proto::ICMPV6 => (self.sport, answering(self.dport)),
            _ => (self.dport, self.sport),
        };
        Tuple { source: self.destination, destination: self.source, sport, dport, ..self }
    }
}

/// Requests of ICMP and ICMPv6 and what answers them: echo, timestamp, information, address mask; echo, node
/// information.
pub(super) const QUERIES: [(u8, u8); 6] = [(8, 0), (13, 14), (15, 16), (17, 18), (128, 129), (139, 140)];

/// Type and code of the answer to a request, and of the request for an answer.
fn answering(message: u16) -> u16 {
    let [kind, code] = message.to_be_bytes();
    let other = QUERIES.iter().find_map(|(request, answer)| match kind {
        k if k == *request => Some(*answer),
        k if k == *answer => Some(*request),
        _ => None,
    });
    u16::from_be_bytes([other.unwrap_or(kind), code])
}

/// How a packet is looked up; `None`: it cannot be.
pub(super) fn tuple(outer: &Outer) -> Option<Tuple> {
    let protocol = outer.protocol?;
    let ports = match protocol {
        proto::ICMP | proto::ICMPV6 => {
            let (kind, code) = outer.icmp.unwrap_or_default();
            Some((outer.icmp_ident.unwrap_or(0), u16::from_be_bytes([kind, code])))
        }
        proto::TCP | proto::UDP | 33 | 132 | 136 => outer.ports,
        _ => Some((0, 0)),
    };
    let (sport, dport) = ports?;
    let Outer { v6, source, destination, .. } = *outer;
    Some(Tuple { source, destination, v6, protocol, sport, dport, zone: 0 })
}
