//! What rules find of the header that a packet carries, behind its network header.

use crate::headers::{self, Outer};
use tidegate_packet::header::proto;
use tidegate_packet::{LinuxChange, LinuxVersion};
use tidegate_policy::netfilter::Condition;

/// What a condition finds of the header that a packet carries; what is `None` it does not find, and does not
/// hold, inverted or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedHeader {
    /// Its IP protocol number, behind IPv6's extension headers.
    pub protocol: Option<u8>,
    /// The packet is a later fragment, which has no such header.
    pub is_later: bool,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// The byte with TCP's flags (RFC 9293 section 3.1).
    pub tcp_flags: Option<u8>,
    /// Type and code of ICMP and ICMPv6.
    pub icmp: Option<(u8, u8)>,
}

impl CarriedHeader {
    /// As a condition sees it in the bytes of a packet, the network header first, in a release of Linux.
    pub fn seen_by(what: &Condition, network: &[u8], linux: LinuxVersion) -> CarriedHeader {
        CarriedHeader::of(&Outer::read(network), what, network, linux)
    }

    pub(super) fn of(outer: &Outer, what: &Condition, network: &[u8], linux: LinuxVersion) -> CarriedHeader {
        let Outer { protocol, ports, tcp_flags, icmp, .. } = *outer;
        let is_later = protocol.is_some() && outer.at.is_none();
        let mut header = CarriedHeader { protocol, is_later, ports, tcp_flags, icmp };
        if is_later && reads_any_bytes(what) && !linux.has(LinuxChange::LaterFragments) {
            let taken = taken_for_it(outer.v6, network);
            let has_ports = protocol.is_some_and(headers::has_ports);
            header.ports = taken.filter(|_| has_ports).and_then(headers::ports);
            let is_tcp = protocol == Some(proto::TCP);
            header.tcp_flags = taken.filter(|_| is_tcp).and_then(|bytes| bytes.get(13).copied());
        }
        header
    }
}

/// Is it compiled to an expression that reads one field of a packet, and not to one of iptables' own matches?
fn reads_any_bytes(what: &Condition) -> bool {
    matches!(what, Condition::SourcePort(_) | Condition::DestinationPort(_) | Condition::TcpFlags(..))
}

/// The bytes that such an expression takes for the header in a later fragment: of IPv4 the payload, of IPv6,
/// where the place of the header stays 0, the packet's first.
fn taken_for_it(v6: bool, network: &[u8]) -> Option<&[u8]> {
    let ihl = usize::from(network.first()? & 15) * 4;
    network.get(if v6 { 0 } else { ihl }..)
}
