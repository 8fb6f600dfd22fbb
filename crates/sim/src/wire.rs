//! Header bytes: a template per flow, patched per packet, because filters read them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_packet::encap;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Meta, Pkt, Pool};

/// The two ends of a conversation, both of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Address of the side that opens it.
    pub src: IpAddr,
    /// Address of the other side.
    pub dst: IpAddr,
    /// Port of the side that opens it (an ICMP echo's identifier).
    pub sport: u16,
    /// Port of the other side.
    pub dport: u16,
}

impl Ends {
    /// Between IPv4 addresses.
    pub const fn v4(src: [u8; 4], sport: u16, dst: [u8; 4], dport: u16) -> Ends {
        let [a, b, c, d] = src;
        let [e, f, g, h] = dst;
        Ends {
            src: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            dst: IpAddr::V4(Ipv4Addr::new(e, f, g, h)),
            sport,
            dport,
        }
    }

    /// The same two ends, from the other side.
    pub fn back(self) -> Ends {
        Ends { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }

    /// Over IPv6?
    pub fn is_v6(self) -> bool {
        self.src.is_ipv6()
    }

    /// The ends as a packet that arrived shows them: a router may have rewritten them on the way. `None` if
    /// that cannot be read.
    pub fn seen(head: &Head) -> Option<Ends> {
        if let Some(inner) = encap::of_pppoe(head) {
            return Ends::seen(&inner);
        }
        let bytes = head.network();
        let v6 = bytes.first()? >> 4 == 6;
        let (src, dst, rest): (IpAddr, IpAddr, _) = if v6 {
            let address =
                |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?));
            (address(8)?.into(), address(24)?.into(), bytes.get(40..)?)
        } else {
            let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?));
            (address(12)?.into(), address(16)?.into(), bytes.get(20..)?)
        };
        let number = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
        let protocol = if v6 { bytes[6] } else { bytes[9] };
        match protocol {
            proto::ICMP | proto::ICMPV6 => Some(Ends { src, dst, sport: number(4)?, dport: 0 }),
            _ => Some(Ends { src, dst, sport: number(0)?, dport: number(2)? }),
        }
    }
}

/// Bytes of the Ethernet header, which count in a frame's length.
pub(crate) const ETHERNET: u32 = 14;
/// Bytes of TCP's header with timestamps.
pub(crate) const TCP: u32 = 32;
/// Bytes of TCP's header with the options of a SYN.
pub(crate) const TCP_SYN: u32 = 40;
/// Bytes of the UDP header and of ICMP's echo.
pub(crate) const UDP: u32 = 8;
/// The largest template: IPv6 and a SYN's TCP header.
const ROOM: usize = 80;

/// The options of a SYN: segment size, SACK, timestamps, a window scale of 7 (RFC 7323).
const SYN_OPTIONS: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7];
/// The options of other segments: timestamps after two no-operations; their values are not carried.
const OPTIONS: [u8; 4] = [1, 1, 8, 10];

/// IP and TCP, UDP or ICMP headers of one direction of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: [u8; ROOM],
    /// Bytes of the IP header.
    ip: usize,
    /// Bytes in all, without a SYN's further options.
    len: usize,
    id: u16,
}

/// What differs from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    /// Frame length in bytes.
    pub(crate) frame: u32,
    pub(crate) dsfield: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    /// Bytes of TCP options.
    pub(crate) options: u8,
}

impl Template {
    fn ip(protocol: u8, ends: Ends, rest: usize) -> Template {
        let mut bytes = [0; ROOM];
        let ip = match (ends.src, ends.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                bytes[0] = 0x45;
                bytes[6] = 0x40; // do not fragment
                bytes[8] = 64;
                bytes[9] = protocol;
                bytes[12..16].copy_from_slice(&src.octets());
                bytes[16..20].copy_from_slice(&dst.octets());
                20
            }
            (src, dst) => {
                bytes[0] = 0x60;
                bytes[6] = protocol;
                bytes[7] = 64;
                bytes[8..24].copy_from_slice(&address_bytes(src));
                bytes[24..40].copy_from_slice(&address_bytes(dst));
                40
            }
        };
        Template { bytes, ip, len: ip + rest, id: 0 }
    }

    fn ports(mut self, ends: Ends) -> Template {
        let at = self.ip;
        self.bytes[at..at + 2].copy_from_slice(&ends.sport.to_be_bytes());
        self.bytes[at + 2..at + 4].copy_from_slice(&ends.dport.to_be_bytes());
        self
    }

    pub(crate) fn tcp(ends: Ends) -> Template {
        let mut template = Template::ip(proto::TCP, ends, TCP as usize).ports(ends);
        let at = template.ip;
        template.bytes[at + 14..at + 16].copy_from_slice(&0xffffu16.to_be_bytes());
        template
    }

    pub(crate) fn udp(ends: Ends) -> Template {
        Template::ip(proto::UDP, ends, UDP as usize).ports(ends)
    }

    /// Of any other protocol: nothing behind the IP header is written.
    pub(crate) fn raw(protocol: u8, ends: Ends) -> Template {
        Template::ip(protocol, ends, 0)
    }

    pub(crate) fn echo(ends: Ends, reply: bool) -> Template {
        let (protocol, kind) = match (ends.is_v6(), reply) {
            (false, false) => (proto::ICMP, 8),
            (false, true) => (proto::ICMP, 0),
            (true, false) => (proto::ICMPV6, 128),
            (true, true) => (proto::ICMPV6, 129),
        };
        let mut template = Template::ip(protocol, ends, UDP as usize);
        let at = template.ip;
        template.bytes[at] = kind;
        template.bytes[at + 4..at + 6].copy_from_slice(&ends.sport.to_be_bytes());
        template
    }

    /// Frame length of a packet with this much behind its headers, in bytes.
    pub(crate) fn frame(&self, payload: u32) -> u32 {
        ETHERNET + self.len as u32 + payload
    }

    /// Frame length of a SYN, in bytes.
    pub(crate) fn syn_frame(&self) -> u32 {
        ETHERNET + self.ip as u32 + TCP_SYN
    }

    /// A packet in the pool; `None` when that is full.
    #[inline]
    pub(crate) fn packet(&mut self, pool: &mut Pool, fields: Fields) -> Option<Pkt> {
        let at = self.ip;
        let mut len = self.len;
        let v6 = at == 40;
        let total = fields.frame.saturating_sub(ETHERNET) as u16;
        let payload = total.wrapping_sub(at as u16);
        let bytes = &mut self.bytes;
        if v6 {
            bytes[0] = 0x60 | fields.dsfield >> 4;
            bytes[1] = fields.dsfield << 4;
            bytes[4..6].copy_from_slice(&payload.to_be_bytes());
        } else {
            self.id = self.id.wrapping_add(1);
            bytes[1] = fields.dsfield;
            bytes[2..4].copy_from_slice(&total.to_be_bytes());
            bytes[4..6].copy_from_slice(&self.id.to_be_bytes());
        }
        match if v6 { bytes[6] } else { bytes[9] } {
            proto::TCP => {
                bytes[at + 4..at + 8].copy_from_slice(&fields.seq.to_be_bytes());
                bytes[at + 8..at + 12].copy_from_slice(&fields.ack.to_be_bytes());
                bytes[at + 12] = (20 + fields.options) << 2;
                bytes[at + 13] = fields.flags;
                if fields.flags & tidegate_packet::header::tcp_flags::SYN != 0 {
                    bytes[at + 20..at + 40].copy_from_slice(&SYN_OPTIONS);
                    len = at + TCP_SYN as usize;
                } else {
                    bytes[at + 20..at + 24].copy_from_slice(&OPTIONS);
                }
            }
            proto::UDP => bytes[at + 4..at + 6].copy_from_slice(&payload.to_be_bytes()),
            proto::ICMP | proto::ICMPV6 => {
                bytes[at + 6..at + 8].copy_from_slice(&(fields.seq as u16).to_be_bytes())
            }
            _ => {}
        }
        let kind = if v6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let head = Head::from_network(kind, &bytes[..len]);
        let mut meta = Meta::of(&head, fields.frame);
        meta.watched = true;
        pool.insert(meta, head)
    }
}

fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}
