//! What must never be starved: without it the link, or the administrator's access to it, breaks, and the
//! policy cannot be fixed any more.
//!
//! Neighbours are resolved (ARP, RFC 826; neighbour and router discovery, RFC 4861), addresses are assigned
//! (DHCP, RFC 2131 and 8415), a port is opened (802.1X), a PPPoE session is kept alive (RFC 2516), and the
//! SSH session stays open from which the policy was applied. Such packets bypass the queues, up to a rate;
//! beyond that they are queued by the policy, so the bypass cannot be abused.

use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Nanos, Time};

/// Packets of one kind that may pass at once.
const BURST: u64 = 50;
/// How long it takes until another may.
const EVERY: Nanos = Nanos(10_000_000);
/// EtherTypes: 802.1X, PPPoE's discovery.
const EAPOL: u16 = 0x888e;
const PPPOE_DISCOVERY: u16 = 0x8863;
/// PPP protocols from here on control a link and are no packets (RFC 1661, section 2).
const PPP_CONTROL: u16 = 0x8000;
/// ICMPv6: router solicitation to redirect.
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
/// Ports of DHCP's both sides, of both versions.
const DHCP: [u16; 4] = [67, 68, 546, 547];

/// An SSH session, as this machine's packets of it look: address and port here and there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Here.
    pub here: std::net::SocketAddr,
    /// There.
    pub there: std::net::SocketAddr,
}

/// Why a packet must not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Link,
    Neighbours,
    Addresses,
    Session,
}

/// The kinds of packets that may bypass, and how many have recently.
#[derive(Clone, Debug, Default)]
pub(super) struct FastPath {
    session: Option<Session>,
    /// By kind, when those that passed would have passed one by one.
    until: [Time; 4],
}

impl FastPath {
    /// The session from which all this is done.
    pub(super) fn keep(&mut self, session: Option<Session>) {
        self.session = session;
    }

    /// May this packet pass by now?
    pub(super) fn takes(&mut self, now: Time, head: &Head) -> bool {
        let Some(kind) = self.kind(head) else { return false };
        let until = &mut self.until[kind as usize];
        let from = (*until).max(now);
        if from.0 - now.0 > EVERY.0 * (BURST - 1) {
            return false;
        }
        *until = Time(from.0 + EVERY.0);
        true
    }

    fn kind(&self, head: &Head) -> Option<Kind> {
        let packet = head.network();
        let at = |place: usize| packet.get(place).copied();
        let word = |place: usize| Some(u16::from_be_bytes([at(place)?, at(place + 1)?]));
        let (protocol, transport) = match head.ethertype() {
            ethertype::ARP => return Some(Kind::Neighbours),
            EAPOL | PPPOE_DISCOVERY => return Some(Kind::Link),
            ethertype::PPPOE => return (word(6)? >= PPP_CONTROL).then_some(Kind::Link),
            ethertype::IPV4 => (at(9)?, usize::from(at(0)? & 15) * 4),
            ethertype::IPV6 => (at(6)?, 40),
            _ => return None,
        };
        match protocol {
            proto::ICMPV6 if head.ethertype() == ethertype::IPV6 => {
                DISCOVERY.contains(&at(transport)?).then_some(Kind::Neighbours)
            }
            proto::UDP => {
                let ports = [word(transport)?, word(transport + 2)?];
                ports.iter().all(|port| DHCP.contains(port)).then_some(Kind::Addresses)
            }
            proto::TCP => {
                let Session { here, there } = self.session?;
                let ours = |ends: [&std::net::SocketAddr; 2]| {
                    word(transport) == Some(ends[0].port())
                        && word(transport + 2) == Some(ends[1].port())
                        && addresses(packet) == Some(ends.map(|end| end.ip().to_canonical()))
                };
                (ours([&here, &there]) || ours([&there, &here])).then_some(Kind::Session)
            }
            _ => None,
        }
    }
}

/// Source and destination of an IP packet.
fn addresses(packet: &[u8]) -> Option<[std::net::IpAddr; 2]> {
    if packet.first()? >> 4 == 6 {
        let one = |place: usize| Some(<[u8; 16]>::try_from(packet.get(place..place + 16)?).ok()?.into());
        return Some([one(8)?, one(24)?]);
    }
    let one = |place: usize| Some(<[u8; 4]>::try_from(packet.get(place..place + 4)?).ok()?.into());
    Some([one(12)?, one(16)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(protocol: u8, transport: &[u8]) -> Head {
        let mut packet = vec![0; 20];
        (packet[0], packet[9]) = (0x45, protocol);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(transport);
        Head::from_network(ethertype::IPV4, &packet)
    }

    fn ports(from: u16, to: u16) -> Vec<u8> {
        [from.to_be_bytes(), to.to_be_bytes()].concat()
    }

    fn icmpv6(kind: u8) -> Head {
        let mut packet = vec![0; 48];
        (packet[0], packet[6], packet[40]) = (0x60, proto::ICMPV6, kind);
        Head::from_network(ethertype::IPV6, &packet)
    }

    fn ppp(protocol: u16) -> Head {
        Head::from_network(ethertype::PPPOE, &[&[0x11, 0, 0, 1, 0, 10][..], &protocol.to_be_bytes()].concat())
    }

    #[test]
    fn link_control_bypasses_the_queues_and_nothing_else() {
        let mut express = FastPath::default();
        express.keep(Some(Session {
            here: "10.0.0.1:22".parse().expect("an address"),
            there: "[::ffff:10.0.0.2]:50000".parse().expect("an address"),
        }));
        for (head, takes, what) in [
            (Head::from_network(ethertype::ARP, &[0; 28]), true, "ARP"),
            (Head::from_network(EAPOL, &[0; 28]), true, "802.1X"),
            (ppp(0xc021), true, "PPP's link control"),
            (ppp(0x0021), false, "IP in PPPoE"),
            (icmpv6(135), true, "neighbour solicitation"),
            (icmpv6(128), false, "a ping"),
            (ip(proto::UDP, &ports(68, 67)), true, "DHCP"),
            (ip(proto::UDP, &ports(53, 67)), false, "a datagram to DHCP's port"),
            (ip(proto::UDP, &[0, 68]), false, "a datagram cut short"),
            (ip(proto::TCP, &ports(22, 50_000)), true, "the session"),
            (ip(proto::TCP, &ports(50_000, 22)), false, "the other way, from here"),
            (ip(proto::TCP, &ports(22, 50_001)), false, "another session"),
            (Head::from_network(ethertype::IPV4, &[]), false, "nothing"),
        ] {
            assert_eq!(express.takes(Time(0), &head), takes, "{what}");
        }
    }

    #[test]
    fn so_many_a_second_and_no_more() {
        let mut express = FastPath::default();
        let arp = Head::from_network(ethertype::ARP, &[0; 28]);
        let mut passed = |from_ms: u64| {
            (0..1000).filter(|n| express.takes(Time((from_ms * 1000 + n) * 1000), &arp)).count() as u64
        };
        assert_eq!([passed(0), passed(1000), passed(1001)], [BURST, BURST, 0]);
    }
}
