//! Header bytes: a template per flow, patched per packet, because filters read them.

use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Meta, Pkt, Pool};

/// The two ends of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// IPv4 address of the side that opens it.
    pub src: [u8; 4],
    /// IPv4 address of the other side.
    pub dst: [u8; 4],
    /// Port of the side that opens it (an ICMP echo's identifier).
    pub sport: u16,
    /// Port of the other side.
    pub dport: u16,
}

impl Ends {
    /// The same, seen from the other side.
    pub fn back(self) -> Ends {
        Ends { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }
}

/// Bytes of the Ethernet header, which count in a frame's length.
pub(crate) const ETHERNET: u32 = 14;
/// Ethernet, IPv4, TCP with timestamps.
pub(crate) const TCP_HEADERS: u32 = ETHERNET + 20 + 32;

/// IPv4 and TCP, UDP or ICMP headers of one direction of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: [u8; 52],
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
    fn ip(protocol: u8, ends: Ends, len: usize) -> Template {
        let mut bytes = [0; 52];
        bytes[0] = 0x45;
        bytes[6] = 0x40; // do not fragment
        bytes[8] = 64;
        bytes[9] = protocol;
        bytes[12..16].copy_from_slice(&ends.src);
        bytes[16..20].copy_from_slice(&ends.dst);
        Template { bytes, len, id: 0 }
    }

    pub(crate) fn tcp(ends: Ends) -> Template {
        let mut template = Template::ip(proto::TCP, ends, 52);
        template.bytes[20..22].copy_from_slice(&ends.sport.to_be_bytes());
        template.bytes[22..24].copy_from_slice(&ends.dport.to_be_bytes());
        template.bytes[34..36].copy_from_slice(&0xffffu16.to_be_bytes());
        // No-operation twice, then the timestamps (RFC 7323); what they say is not carried.
        template.bytes[40..44].copy_from_slice(&[1, 1, 8, 10]);
        template
    }

    pub(crate) fn udp(ends: Ends) -> Template {
        let mut template = Template::ip(proto::UDP, ends, 28);
        template.bytes[20..22].copy_from_slice(&ends.sport.to_be_bytes());
        template.bytes[22..24].copy_from_slice(&ends.dport.to_be_bytes());
        template
    }

    pub(crate) fn echo(ends: Ends, reply: bool) -> Template {
        let mut template = Template::ip(proto::ICMP, ends, 28);
        template.bytes[20] = if reply { 0 } else { 8 };
        template.bytes[24..26].copy_from_slice(&ends.sport.to_be_bytes());
        template
    }

    /// A packet in the pool; `None` when that is full.
    #[inline]
    pub(crate) fn packet(&mut self, pool: &mut Pool, fields: Fields) -> Option<Pkt> {
        self.id = self.id.wrapping_add(1);
        let total = fields.frame.saturating_sub(ETHERNET) as u16;
        let bytes = &mut self.bytes;
        bytes[1] = fields.dsfield;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.id.to_be_bytes());
        match bytes[9] {
            proto::TCP => {
                bytes[24..28].copy_from_slice(&fields.seq.to_be_bytes());
                bytes[28..32].copy_from_slice(&fields.ack.to_be_bytes());
                bytes[32] = (20 + fields.options) << 2;
                bytes[33] = fields.flags;
            }
            proto::UDP => bytes[24..26].copy_from_slice(&total.wrapping_sub(20).to_be_bytes()),
            _ => bytes[26..28].copy_from_slice(&(fields.seq as u16).to_be_bytes()),
        }
        let head = Head::from_network(ethertype::IPV4, &bytes[..self.len]);
        let mut meta = Meta::of(&head, fields.frame);
        meta.watched = true;
        pool.insert(meta, head)
    }
}
