//! A packet from the bytes of a recorded frame.

use super::fields::{Packet, has_ports, is_icmp};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_packet::Head;
use tidegate_packet::header::{ethertype, proto};

/// What a recorded frame begins with: the link types of pcap files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Ethernet's 14 bytes (link type 1).
    Ethernet,
    /// The network packet itself (link types 101, 228, 229).
    Bare,
    /// Linux's cooked form, 16 bytes (113).
    Cooked,
    /// Its second version, 20 bytes (276).
    Cooked2,
}

impl Framing {
    /// By the number of the link type in a pcap file.
    pub const fn of_link_type(number: u32) -> Option<Framing> {
        match number {
            1 => Some(Framing::Ethernet),
            101 | 228 | 229 => Some(Framing::Bare),
            113 => Some(Framing::Cooked),
            276 => Some(Framing::Cooked2),
            _ => None,
        }
    }

    /// The EtherType of a frame, and the bytes before its network header.
    fn open(self, frame: &[u8]) -> Option<(u16, usize)> {
        let kind = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        Some(match self {
            Framing::Ethernet => (kind(12)?, 14),
            Framing::Cooked => (kind(14)?, 16),
            Framing::Cooked2 => (kind(0)?, 20),
            Framing::Bare => match frame.first()? >> 4 {
                4 => (ethertype::IPV4, 0),
                6 => (ethertype::IPV6, 0),
                _ => return None,
            },
        })
    }
}

/// Reads a recorded frame that was `length` bytes long, of which `frame` are known; a VLAN tag before the
/// packet is taken off, as the card does. `None`: it is cut too short to be anything.
///
/// Bytes that words have no name for are kept, so that filters read what was sent.
pub fn of_frame(frame: &[u8], length: usize, framing: Framing) -> Option<Packet> {
    let (mut kind, mut at) = framing.open(frame)?;
    while matches!(kind, ethertype::VLAN | ethertype::QINQ) {
        kind = u16::from_be_bytes([*frame.get(at + 2)?, *frame.get(at + 3)?]);
        at += 4;
    }
    let bytes = frame.get(at..)?;
    let length = u16::try_from(length.checked_sub(at)?).unwrap_or(u16::MAX);
    let mut packet =
        Packet { ethertype: kind, protocol: 0, ports: (0, 0), tcp_flags: 0, ..Packet::default() };
    packet.length = match kind {
        ethertype::IPV4 => ipv4(&mut packet, bytes)?,
        ethertype::IPV6 => ipv6(&mut packet, bytes)?,
        ethertype::ARP => {
            let end = |at: usize| -> Option<IpAddr> { Some(Ipv4Addr::from(array::<4>(bytes, at)?).into()) };
            (packet.source, packet.destination) = (end(14)?, end(24)?);
            28
        }
        _ => length,
    };
    // A frame that left by an offloading card may be longer than its header can hold.
    packet.length = packet.length.max(packet.shortest());
    if packet.is_ip() {
        transport(&mut packet, bytes);
    }
    packet.raw_bytes = unnamed(&packet, bytes);
    Some(packet)
}

/// Fills in the network header; returns the length it claims.
fn ipv4(packet: &mut Packet, bytes: &[u8]) -> Option<u16> {
    packet.ihl = bytes.first()? & 15;
    if bytes.len() < 20 || packet.ihl < 5 {
        return None;
    }
    (packet.dsfield, packet.protocol) = (bytes[1], bytes[9]);
    let end = |at: usize| -> Option<IpAddr> { Some(Ipv4Addr::from(array::<4>(bytes, at)?).into()) };
    (packet.source, packet.destination) = (end(12)?, end(16)?);
    Some(u16::from_be_bytes([bytes[2], bytes[3]]))
}

fn ipv6(packet: &mut Packet, bytes: &[u8]) -> Option<u16> {
    if bytes.len() < 40 {
        return None;
    }
    (packet.dsfield, packet.protocol) = (bytes[0] << 4 | bytes[1] >> 4, bytes[6]);
    let end = |at: usize| -> Option<IpAddr> { Some(Ipv6Addr::from(array::<16>(bytes, at)?).into()) };
    (packet.source, packet.destination) = (end(8)?, end(24)?);
    Some(u16::from_be_bytes([bytes[4], bytes[5]]).saturating_add(40))
}

fn transport(packet: &mut Packet, bytes: &[u8]) {
    let at = packet.network_header();
    if has_ports(packet.protocol)
        && let Some(ports) = array::<4>(bytes, at)
    {
        packet.ports = (u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]]));
    }
    if packet.protocol == proto::TCP {
        packet.tcp_flags = bytes.get(at + 13).copied().unwrap_or(0);
    }
    if is_icmp(packet.protocol)
        && let Some(kind) = array::<2>(bytes, at)
    {
        packet.icmp = (kind[0], kind[1]);
    }
}

/// Bytes that differ from those the described packet would have.
fn unnamed(packet: &Packet, bytes: &[u8]) -> Vec<(u8, u8)> {
    let head = packet.head();
    let known = head.network().iter().zip(bytes).take(Head::NETWORK);
    (0..)
        .zip(known)
        .filter(|(_, (ours, theirs))| ours != theirs)
        .map(|(at, (_, theirs))| (at, *theirs))
        .collect()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frame of a described packet, as a card would see it.
    fn frame(words: &str) -> (Packet, Vec<u8>) {
        let packet = Packet::parse(words).expect("a packet");
        let mut frame = vec![0; 12];
        frame.extend(packet.ethertype.to_be_bytes());
        frame.extend(packet.head().network());
        (packet, frame)
    }

    #[test]
    fn a_frame_is_read_as_the_packet_it_was_made_of() {
        let table = [
            "tcp 192.168.1.7:51820 > 1.1.1.1:443 dscp CS1 len 120",
            "udp [2001:db8::1]:5060 > [2001:db8::2]:5060 dscp EF ecn ect0",
            "icmp 10.0.0.1 > 8.8.8.8 type 3/1",
            "arp 192.168.1.1 > 192.168.1.7",
            "gre 10.0.0.1 > 10.0.0.2 ihl 6 octet 24=0x30",
        ];
        for words in table {
            let (packet, frame) = frame(words);
            let length = usize::from(packet.length) + 14;
            assert_eq!(of_frame(&frame, length, Framing::Ethernet), Some(packet.clone()), "{words}");
            let tagged = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
            assert_eq!(of_frame(&tagged, length + 4, Framing::Ethernet), Some(packet), "{words}, tagged");
        }
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        let (_, frame) = frame("tcp 192.168.1.7:51820 > 1.1.1.1:443");
        for cut in [0, 10, 20, 33] {
            assert_eq!(of_frame(&frame[..cut], 100, Framing::Ethernet), None, "{cut} bytes");
        }
        assert!(of_frame(&frame[..34], 100, Framing::Ethernet).is_some());
    }
}
