//! Headers put before a packet, and taken off again.

use crate::header::{Head, ethertype, proto};

/// Octets that PPPoE puts before a packet: its header and PPP's protocol number (RFC 2516).
pub const PPPOE_LEN: usize = 8;
/// Octets of the IPv4 header that a tunnel puts before a packet.
pub const OUTER_LEN: usize = 20;
/// Octets of the plain GRE header (RFC 2784).
pub const GRE_LEN: usize = 4;

/// The outer header of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Its source.
    pub src: [u8; 4],
    /// Its destination.
    pub dst: [u8; 4],
    /// Its time to live; 0: the packet's own.
    pub ttl: u8,
    /// With a GRE header?
    pub gre: bool,
}

/// The PPPoE frame of session 1 around a packet of `len` octets (RFC 2516).
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

/// A packet of `len` octets behind the outer header of a tunnel. Of the inner DS field only ECN is taken over, and congestion
/// that the packet has experienced stays its own (RFC 6040, section 4.1, as Linux does it).
pub fn tunnelled(packet: &Head, len: u32, outer: Outer) -> Head {
    let inner = packet.network();
    let v6 = packet.ethertype() == ethertype::IPV6;
    let own_ttl = inner.get(if v6 { 7 } else { 8 }).copied().unwrap_or(64);
    let own_df = !v6 && inner.get(6).is_some_and(|flags| flags & 0x40 != 0);
    let protocol = match (outer.gre, v6) {
        (true, _) => proto::GRE,
        (false, true) => proto::IPV6,
        (false, false) => proto::IPIP,
    };
    let extra = OUTER_LEN + if outer.gre { GRE_LEN } else { 0 };
    let mut bytes = [0u8; OUTER_LEN + GRE_LEN];
    bytes[0] = 0x45;
    bytes[1] = match packet.dsfield() & 3 {
        3 => 2,
        ecn => ecn,
    };
    bytes[2..4].copy_from_slice(&(len as u16).wrapping_add(extra as u16).to_be_bytes());
    bytes[6] = if own_df { 0x40 } else { 0 };
    bytes[8] = if outer.ttl == 0 { own_ttl } else { outer.ttl };
    bytes[9] = protocol;
    bytes[12..16].copy_from_slice(&outer.src);
    bytes[16..20].copy_from_slice(&outer.dst);
    bytes[22..24].copy_from_slice(&packet.ethertype().to_be_bytes());
    packet.wrapped(ethertype::IPV4, &bytes[..extra])
}

/// What is in a tunnel's packet, with its outer header and the octets taken off; `None` if it is none: IPIP, 6in4 and plain GRE are.
pub fn of_tunnelled(packet: &Head) -> Option<(Head, Outer, usize)> {
    let n = packet.network();
    if packet.ethertype() != ethertype::IPV4 || n.len() < OUTER_LEN || n[0] & 0x0f != 5 {
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
    let four = |at: usize| [n[at], n[at + 1], n[at + 2], n[at + 3]];
    let outer = Outer { src: four(12), dst: four(16), ttl: n[8], gre };
    let off = OUTER_LEN + if gre { GRE_LEN } else { 0 };
    Some((packet.unwrapped(inner, off), outer, off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_on_comes_off_again() {
        let mut octets = [0u8; 28];
        (octets[0], octets[1], octets[6], octets[8], octets[9]) = (0x45, 0xbb, 0x40, 63, proto::UDP);
        let packet = Head::from_network(ethertype::IPV4, &octets);
        let outer = Outer { src: [10, 7, 0, 1], dst: [10, 8, 0, 1], ttl: 0, gre: false };
        let frame = pppoe(&packet, 28);
        assert_eq!(&frame.network()[..8], &[0x11, 0, 0, 1, 0, 30, 0, 0x21]);
        assert_eq!(of_pppoe(&frame).map(|p| p.network().to_vec()), Some(octets.to_vec()));
        for (gre, len, protocol) in [(false, 48, proto::IPIP), (true, 52, proto::GRE)] {
            let tunnelled = tunnelled(&packet, 28, Outer { gre, ..outer });
            let n = tunnelled.network();
            // DSCP is not taken over, and of CE only that the transport is capable; DF and the time to live are.
            assert_eq!((n[1], n[3], n[6], n[8], n[9], n.len()), (2, len, 0x40, 63, protocol, usize::from(len)));
            let (inner, seen, _) = of_tunnelled(&tunnelled).expect("a tunnel's packet");
            assert_eq!((inner.network(), seen.src, seen.dst, seen.gre), (&octets[..], outer.src, outer.dst, gre));
        }
        assert!(of_tunnelled(&packet).is_none() && of_pppoe(&packet).is_none());
    }
}
