//! The fields of the outermost headers that netfilter requests.

use tidegate_packet::header::proto;
use tidegate_packet::{Pkt, Pool};

/// The outermost headers: netfilter does not look into tunnels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outer {
    pub(crate) v6: bool,
    pub(crate) protocol: u8,
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
        let data = pool.head(pkt).network();
        let at = if self.v6 { 40 } else { data.first().map_or(0, |b| usize::from(b & 15) * 4) };
        data.get(at..).unwrap_or(&[])
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
            outer.protocol = data[6];
            outer.source.copy_from_slice(&data[8..24]);
            outer.destination.copy_from_slice(&data[24..40]);
        } else {
            outer.protocol = data[9];
            outer.source[12..].copy_from_slice(&data[12..16]);
            outer.destination[12..].copy_from_slice(&data[16..20]);
            if u16::from_be_bytes([data[6], data[7]]) & 0x1fff != 0 {
                return outer;
            }
        }
        let rest = &data[at..];
        if matches!(outer.protocol, proto::TCP | proto::UDP | 33 | 132 | 136) && rest.len() >= 4 {
            outer.ports =
                Some((u16::from_be_bytes([rest[0], rest[1]]), u16::from_be_bytes([rest[2], rest[3]])));
        }
        match outer.protocol {
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
