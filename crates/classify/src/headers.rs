//! The fields of the outermost headers that netfilter requests.

use tidegate_packet::header::proto;
use tidegate_packet::{Pkt, Pool};

/// The outermost headers: netfilter does not look into tunnels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outer {
    pub(crate) v6: bool,
    /// What the packet carries, behind IPv6's extension headers; `None` where Linux does not find it.
    pub(crate) protocol: Option<u8>,
    /// Where the header of that protocol begins; a later fragment has none.
    pub(crate) at: Option<usize>,
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) tcp_flags: Option<u8>,
    pub(crate) tcp_ack: Option<u32>,
    /// Type and code.
    pub(crate) icmp: Option<(u8, u8)>,
    pub(crate) icmp_ident: Option<u16>,
}

impl Outer {
    pub(crate) fn of(pool: &Pool, pkt: &Pkt) -> Outer {
        Outer::read(pool.head(pkt).network())
    }

    /// What follows the network header, as far as it is kept.
    pub(crate) fn payload<'a>(&self, pool: &'a Pool, pkt: &Pkt) -> &'a [u8] {
        self.at.and_then(|at| pool.head(pkt).network().get(at..)).unwrap_or_default()
    }

    /// From the bytes of a packet, the network header first.
    pub(crate) fn read(data: &[u8]) -> Outer {
        let mut outer = Outer::default();
        let v6 = data.first().is_some_and(|b| b >> 4 == 6);
        let at = if v6 { 40 } else { data.first().map_or(0, |b| usize::from(b & 15) * 4) };
        if at < 20 || data.len() < at {
            return outer;
        }
        outer.v6 = v6;
        if v6 {
            outer.source.copy_from_slice(&data[8..24]);
            outer.destination.copy_from_slice(&data[24..40]);
            let Some((protocol, at)) = behind_extensions(data) else { return outer };
            (outer.protocol, outer.at) = (Some(protocol), at);
        } else {
            outer.source[12..].copy_from_slice(&data[12..16]);
            outer.destination[12..].copy_from_slice(&data[16..20]);
            let is_later = u16::from_be_bytes([data[6], data[7]]) & 0x1fff != 0;
            (outer.protocol, outer.at) = (Some(data[9]), (!is_later).then_some(at));
        }
        let (Some(protocol), Some(rest)) = (outer.protocol, outer.at.and_then(|at| data.get(at..))) else {
            return outer;
        };
        outer.ports = has_ports(protocol).then(|| ports(rest)).flatten();
        match protocol {
            proto::TCP => {
                outer.tcp_flags = rest.get(13).copied();
                outer.tcp_ack = rest.get(8..12).map(|a| u32::from_be_bytes([a[0], a[1], a[2], a[3]]));
            }
            proto::ICMP | proto::ICMPV6 => {
                outer.icmp = rest.first().copied().zip(rest.get(1).copied());
                outer.icmp_ident = rest.get(4..6).map(|ident| u16::from_be_bytes([ident[0], ident[1]]));
            }
            _ => {}
        }
        outer
    }
}

/// Does a header of this protocol begin with two ports?
pub(crate) fn has_ports(protocol: u8) -> bool {
    matches!(protocol, proto::TCP | proto::UDP | 33 | 132 | 136)
}

/// The two ports that these bytes begin with.
pub(crate) fn ports(data: &[u8]) -> Option<(u16, u16)> {
    let port = |at: usize| Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
    port(0).zip(port(2))
}

/// What an IPv6 packet carries behind its extension headers, and where that begins; in a later fragment
/// nowhere. An Authentication Header is not looked behind. `None`: it breaks off before, or is a later
/// fragment of what an extension header begins (recorded: tests/data/carried.txt).
fn behind_extensions(data: &[u8]) -> Option<(u8, Option<usize>)> {
    let (mut protocol, mut at) = (data[6], 40);
    // Each header takes eight bytes at least, so this ends.
    while is_extension(protocol) {
        let header = data.get(at..at + 2)?;
        let next = header[0];
        if protocol == proto::FRAGMENT {
            let place = data.get(at + 2..at + 4)?;
            if u16::from_be_bytes([place[0], place[1]]) & 0xfff8 != 0 {
                let is_plain = !is_extension(next) && next != AUTHENTICATION;
                return is_plain.then_some((next, None));
            }
            at += 8;
        } else {
            at += 8 + 8 * usize::from(header[1]);
        }
        protocol = next;
    }
    Some((protocol, Some(at)))
}

/// Does it stand between IPv6's header and what the packet carries: options, routing, a fragment?
pub(crate) const fn is_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | proto::FRAGMENT | proto::DESTINATION_OPTIONS)
}

/// IPv6's Authentication Header (RFC 4302).
const AUTHENTICATION: u8 = 51;
