//! Headers put before a packet, and taken off again.

use crate::header::{Head, ethertype, proto};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes that PPPoE puts before a packet: its header and PPP's protocol number (RFC 2516).
pub const PPPOE_LEN: usize = 8;
/// Bytes of the IPv4 header that a tunnel puts before a packet.
pub const OUTER_LEN: usize = 20;
/// Bytes of the IPv6 header that a tunnel puts before a packet.
const OUTER_V6_LEN: usize = 40;
/// Length of the header with the tunnel encapsulation limit, in bytes (RFC 2473 section 4.1.1).
const LIMIT_LEN: usize = 8;
/// Bytes of the plain GRE header (RFC 2784).
pub const GRE_LEN: usize = 4;
/// The most bytes that a tunnel puts before a packet.
const MOST: usize = OUTER_V6_LEN + LIMIT_LEN;
/// The hop limit of an IPv6 tunnel that is not reported another.
const HOP_LIMIT: u8 = 64;

/// The outer header of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The outer source address.
    pub src: IpAddr,
    /// Its destination, of the same family.
    pub dst: IpAddr,
    /// Its time to live; 0: the packet's own (in IPv6: 64).
    pub ttl: u8,
    /// With a GRE header? In IPv4 only.
    pub gre: bool,
    /// How many more tunnels the packet may enter (RFC 2473); `None`: no limit is set. IPv6 only.
    pub limit: Option<u8>,
}

impl Outer {
    /// Bytes it puts before a packet.
    pub fn header_len(&self) -> usize {
        match self.dst {
            IpAddr::V4(_) => OUTER_LEN + if self.gre { GRE_LEN } else { 0 },
            IpAddr::V6(_) => OUTER_V6_LEN + if self.limit.is_some() { LIMIT_LEN } else { 0 },
        }
    }
}

/// The PPPoE frame of session 1 around a packet of `len` bytes (RFC 2516).
pub fn pppoe(packet: &Head, len: u32) -> Head {
    let ppp: u16 = if packet.ethertype() == ethertype::IPV6 { 0x0057 } else { 0x0021 };
    let ([l0, l1], [p0, p1]) = ((len as u16).wrapping_add(2).to_be_bytes(), ppp.to_be_bytes());
    packet.wrapped(ethertype::PPPOE, &[0x11, 0, 0, 1, l0, l1, p0, p1])
}

/// What is in a PPPoE frame; `None` if it is none, or not with IP in it.
pub fn of_pppoe(frame: &Head) -> Option<Head> {
    let inner = match (frame.ethertype(), frame.network().get(6..PPPOE_LEN)?) {
        (ethertype::PPPOE, [0x00, 0x21]) => ethertype::IPV4,
        (ethertype::PPPOE, [0x00, 0x57]) => ethertype::IPV6,
        _ => return None,
    };
    Some(frame.unwrapped(inner, PPPOE_LEN))
}

/// A packet of `len` bytes behind the outer header of a tunnel. Of the inner DS field only ECN is taken
/// over, and congestion that the packet has experienced stays its own (RFC 6040, section 4.1, as Linux does
/// it).
pub fn tunnelled(packet: &Head, len: u32, outer: Outer) -> Head {
    let mut bytes = [0u8; MOST];
    let ecn = match packet.dsfield() & 3 {
        3 => 2,
        ecn => ecn,
    };
    let ethertype = match (outer.src, outer.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            in_v4(&mut bytes, packet, len, (src, dst), outer);
            bytes[1] = ecn;
            ethertype::IPV4
        }
        (src, dst) => {
            in_v6(&mut bytes, packet, len, (v6(src), v6(dst)), outer);
            bytes[1] = ecn << 4;
            ethertype::IPV6
        }
    };
    packet.wrapped(ethertype, &bytes[..outer.header_len()])
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(address) => address.to_ipv6_mapped(),
    }
}

/// The protocol number of what is inside.
fn carried(packet: &Head) -> u8 {
    if packet.ethertype() == ethertype::IPV6 { proto::IPV6 } else { proto::IPIP }
}

/// The outer header of IPv4, with GRE's behind it (RFC 2003, 4213, 2784).
fn in_v4(bytes: &mut [u8; MOST], packet: &Head, len: u32, (src, dst): (Ipv4Addr, Ipv4Addr), outer: Outer) {
    let inner = packet.network();
    let is_v6 = packet.ethertype() == ethertype::IPV6;
    let own_ttl = inner.get(if is_v6 { 7 } else { 8 }).copied().unwrap_or(64);
    let own_df = !is_v6 && inner.get(6).is_some_and(|flags| flags & 0x40 != 0);
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(len as u16).wrapping_add(outer.header_len() as u16).to_be_bytes());
    bytes[6] = if own_df { 0x40 } else { 0 };
    bytes[8] = if outer.ttl == 0 { own_ttl } else { outer.ttl };
    bytes[9] = if outer.gre { proto::GRE } else { carried(packet) };
    bytes[12..16].copy_from_slice(&src.octets());
    bytes[16..20].copy_from_slice(&dst.octets());
    bytes[22..24].copy_from_slice(&packet.ethertype().to_be_bytes());
}

/// The outer header of IPv6, with the option that limits nesting behind it (RFC 2473).
fn in_v6(bytes: &mut [u8; MOST], packet: &Head, len: u32, (src, dst): (Ipv6Addr, Ipv6Addr), outer: Outer) {
    let options = (outer.header_len() - OUTER_V6_LEN) as u16;
    bytes[0] = 0x60;
    bytes[4..6].copy_from_slice(&(len as u16).wrapping_add(options).to_be_bytes());
    let next = carried(packet);
    bytes[6] = next;
    bytes[7] = if outer.ttl == 0 { HOP_LIMIT } else { outer.ttl };
    bytes[8..24].copy_from_slice(&src.octets());
    bytes[24..40].copy_from_slice(&dst.octets());
    if let Some(limit) = outer.limit {
        bytes[40..48].copy_from_slice(&[next, 0, 4, 1, limit, 1, 1, 0]);
        bytes[6] = proto::DESTINATION_OPTIONS;
    }
}

/// What is in a tunnel's packet, with its outer header and the bytes taken off; `None` if it is none: IPIP,
/// 6in4, plain GRE and either family in IPv6 are.
pub fn of_tunnelled(packet: &Head) -> Option<(Head, Outer, usize)> {
    let outer = match packet.ethertype() {
        ethertype::IPV4 => of_v4(packet.network()),
        ethertype::IPV6 => of_v6(packet.network()),
        _ => None,
    };
    let (inner, outer) = outer?;
    Some((packet.unwrapped(inner, outer.header_len()), outer, outer.header_len()))
}

fn of_v4(n: &[u8]) -> Option<(u16, Outer)> {
    if n.len() < OUTER_LEN || n[0] & 0x0f != 5 {
        return None;
    }
    let (gre, inner) = match n[9] {
        proto::IPIP => (false, ethertype::IPV4),
        proto::IPV6 => (false, ethertype::IPV6),
        proto::GRE => match *n.get(OUTER_LEN..OUTER_LEN + GRE_LEN)? {
            [0, 0, a, b] => (true, u16::from_be_bytes([a, b])),
            _ => return None,
        },
        _ => return None,
    };
    let address = |at: usize| IpAddr::from([n[at], n[at + 1], n[at + 2], n[at + 3]]);
    Some((inner, Outer { src: address(12), dst: address(16), ttl: n[8], gre, limit: None }))
}

fn of_v6(n: &[u8]) -> Option<(u16, Outer)> {
    let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(n.get(at..at + 16)?).ok()?));
    let (src, dst) = (address(8)?, address(24)?);
    let (next, limit) = match (n[6], n.get(OUTER_V6_LEN..OUTER_V6_LEN + LIMIT_LEN)) {
        (proto::DESTINATION_OPTIONS, Some(&[next, 0, 4, 1, limit, ..])) => (next, Some(limit)),
        (next, _) => (next, None),
    };
    let inner = match next {
        proto::IPIP => ethertype::IPV4,
        proto::IPV6 => ethertype::IPV6,
        _ => return None,
    };
    Some((inner, Outer { src, dst, ttl: n[7], gre: false, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_on_comes_off_again() {
        let mut bytes = [0u8; 28];
        (bytes[0], bytes[1], bytes[6], bytes[8], bytes[9]) = (0x45, 0xbb, 0x40, 63, proto::UDP);
        let packet = Head::from_network(ethertype::IPV4, &bytes);
        let outer =
            Outer { src: [10, 7, 0, 1].into(), dst: [10, 8, 0, 1].into(), ttl: 0, gre: false, limit: None };
        let frame = pppoe(&packet, 28);
        assert_eq!(&frame.network()[..8], &[0x11, 0, 0, 1, 0, 30, 0, 0x21]);
        assert_eq!(of_pppoe(&frame).map(|p| p.network().to_vec()), Some(bytes.to_vec()));
        for (gre, len, protocol) in [(false, 48, proto::IPIP), (true, 52, proto::GRE)] {
            let tunnelled = tunnelled(&packet, 28, Outer { gre, ..outer });
            let n = tunnelled.network();
            // DSCP is not taken over, and of CE only that the transport is capable; DF and the time to live
            // are.
            assert_eq!(
                (n[1], n[3], n[6], n[8], n[9], n.len()),
                (2, len, 0x40, 63, protocol, usize::from(len))
            );
            let (inner, seen, _) = of_tunnelled(&tunnelled).expect("a tunnel's packet");
            assert_eq!(
                (inner.network(), seen.src, seen.dst, seen.gre),
                (&bytes[..], outer.src, outer.dst, gre)
            );
        }
        assert!(of_tunnelled(&packet).is_none() && of_pppoe(&packet).is_none());
    }

    #[test]
    fn either_family_goes_through_ipv6() {
        let mut four = [0u8; 28];
        (four[0], four[1], four[9]) = (0x45, 0x03, proto::UDP);
        let mut six = [0u8; 48];
        (six[0], six[1], six[6]) = (0x60, 0x20, proto::UDP);
        let [src, dst] = [1, 2].map(|n| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n)));
        for (inner, ethertype, protocol) in
            [(&four[..], ethertype::IPV4, proto::IPIP), (&six[..], ethertype::IPV6, proto::IPV6)]
        {
            let packet = Head::from_network(ethertype, inner);
            for (limit, bytes) in [(None, 40), (Some(4), 48)] {
                let outer = Outer { src, dst, ttl: 0, gre: false, limit };
                let tunnelled = tunnelled(&packet, inner.len() as u32, outer);
                let n = tunnelled.network();
                let length = usize::from(u16::from_be_bytes([n[4], n[5]]));
                assert_eq!((n[0], n[1], n[7], length + 40), (0x60, 0x20, 64, inner.len() + bytes));
                assert_eq!(if limit.is_some() { n[40] } else { n[6] }, protocol);
                let (found, seen, off) = of_tunnelled(&tunnelled).expect("a tunnel's packet");
                assert_eq!((found.network(), found.ethertype(), off), (inner, ethertype, bytes));
                assert_eq!(seen, Outer { ttl: 64, ..outer });
            }
        }
    }
}
