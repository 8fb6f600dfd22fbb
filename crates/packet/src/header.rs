//! Header bytes: what a packet carries for filters to read, and how to write and read them.
//!
//! Only the front of a packet is kept: the 14 bytes of the Ethernet header and the first [`Head::NETWORK`]
//! bytes after it. Of the rest is known what it adds to a checksum.

pub use crate::numbers::{ethertype, proto, tcp_flags};

use crate::checksum::{self, Sum};

/// The bytes of a packet's front: Ethernet header, then network header and what follows.
#[derive(Clone, Debug)]
pub struct Head {
    bytes: [u8; Head::ETHERNET + Head::NETWORK],
    len: u8,
    /// The checksums are written; otherwise they count as right.
    summed: bool,
    /// What the kernel holds the packet for (`skb->protocol`), whatever is written into the frame later.
    ethertype: u16,
    /// What the bytes behind those kept add to a checksum.
    rest: u16,
    /// Tags that actions put on, outermost first: EtherType and control information. The first `tagged` are
    /// there.
    tags: [(u16, u16); Head::TAGS],
    tagged: u8,
    /// The kernel takes the link header for the network's: see [`Head::lose_network`].
    is_lost: bool,
}

impl Default for Head {
    fn default() -> Head {
        let bytes = [0; Head::ETHERNET + Head::NETWORK];
        Head {
            bytes,
            len: Head::ETHERNET as u8,
            summed: false,
            ethertype: 0,
            rest: 0,
            tags: [(0, 0); Head::TAGS],
            tagged: 0,
            is_lost: false,
        }
    }
}

impl Head {
    /// Bytes of the link header.
    pub const ETHERNET: usize = 14;
    /// Bytes kept from the network header on.
    pub const NETWORK: usize = 114;
    /// Tags that actions may put on; Linux has no such limit.
    pub const TAGS: usize = 4;

    /// From the bytes of a whole frame that begin with its Ethernet header, checksums written; what is too
    /// long is cut.
    pub fn from_frame(frame: &[u8]) -> Head {
        let mut head = Head::default();
        let n = frame.len().min(head.bytes.len());
        head.bytes[..n].copy_from_slice(&frame[..n]);
        head.len = n.max(Head::ETHERNET) as u8;
        head.rest = Sum::default().with(&frame[n..]).folded();
        head.summed = true;
        head.take_up_ethertype();
        head
    }

    /// From the bytes of an IP packet, checksums left out; the Ethernet header is filled with zero addresses
    /// and the given type.
    pub fn from_network(ethertype: u16, packet: &[u8]) -> Head {
        let mut head = Head::default();
        let n = packet.len().min(Head::NETWORK);
        head.set_ethertype(ethertype);
        head.bytes[Head::ETHERNET..Head::ETHERNET + n].copy_from_slice(&packet[..n]);
        head.len = (Head::ETHERNET + n) as u8;
        if packet.len() > n {
            head.rest = Sum::default().with(&packet[n..]).folded();
        }
        head
    }

    /// Gives it the link header of a frame: both addresses.
    pub fn set_addresses(&mut self, destination: [u8; 6], source: [u8; 6]) {
        self.bytes[..6].copy_from_slice(&destination);
        self.bytes[6..12].copy_from_slice(&source);
    }

    /// Makes it a packet of this EtherType, for the kernel and in the frame.
    fn set_ethertype(&mut self, ethertype: u16) {
        self.ethertype = ethertype;
        self.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
    }

    /// Classifies the packet by the EtherType in its frame, as a receiver does.
    pub fn take_up_ethertype(&mut self) {
        self.ethertype = self.frame_ethertype();
    }

    /// It has come in: of the link header only what it is held for is of use, and nothing is behind so many
    /// bytes of the network's.
    pub fn arrive(&mut self, network_len: u32) {
        self.set_ethertype(self.ethertype);
        let len = Head::ETHERNET + network_len.min(Head::NETWORK as u32) as usize;
        if len < usize::from(self.len) {
            (self.len, self.rest) = (len as u8, 0);
        }
    }

    /// The EtherType written in the frame.
    pub fn frame_ethertype(&self) -> u16 {
        u16::from_be_bytes([self.bytes[12], self.bytes[13]])
    }

    /// Are checksums written?
    pub fn is_summed(&self) -> bool {
        self.summed
    }

    /// The checksums are as they are there, right or wrong.
    pub fn set_summed(&mut self) {
        self.summed = true;
    }

    /// What the bytes behind those kept add to a checksum.
    pub(crate) fn rest(&self) -> u16 {
        self.rest
    }

    /// The packet with these bytes before its network header, and this EtherType; what exceeds the buffer is
    /// cut.
    pub fn wrapped(&self, ethertype: u16, before: &[u8]) -> Head {
        let mut head = self.clone();
        let (inner, room) = (self.network(), &mut head.bytes[Head::ETHERNET..]);
        let front = before.len().min(room.len());
        let rest = inner.len().min(room.len() - front);
        room[..front].copy_from_slice(&before[..front]);
        room[front..front + rest].copy_from_slice(&inner[..rest]);
        head.rest = Sum::default().with_word(self.rest).with(&inner[rest..]).folded();
        head.len = (Head::ETHERNET + front + rest) as u8;
        head.set_ethertype(ethertype);
        if head.summed {
            head.sum_header();
        }
        head
    }

    /// The packet without its first `data` bytes, and with this EtherType: what a tunnel's end takes out.
    pub fn unwrapped(&self, ethertype: u16, data: usize) -> Head {
        let inner = self.network().get(data..).unwrap_or(&[]);
        let mut head = Head::from_network(ethertype, inner);
        head.bytes[..12].copy_from_slice(&self.bytes[..12]);
        (head.rest, head.summed) = (self.rest, self.summed);
        head
    }

    /// The tags that actions put on, outermost first: EtherType and control information.
    pub fn tags(&self) -> &[(u16, u16)] {
        &self.tags[..usize::from(self.tagged)]
    }

    /// Puts a tag on; false: it has [`Head::TAGS`].
    pub fn push_tag(&mut self, ethertype: u16, control: u16) -> bool {
        if usize::from(self.tagged) == Head::TAGS {
            return false;
        }
        self.tags.copy_within(..Head::TAGS - 1, 1);
        self.tags[0] = (ethertype, control);
        self.tagged += 1;
        true
    }

    /// Takes the outermost tag off, if there is one.
    pub fn pop_tag(&mut self) {
        self.tags.copy_within(1.., 0);
        self.tagged = self.tagged.saturating_sub(1);
        self.is_lost = false;
    }

    /// From now on the kernel takes the beginning of the frame for the network header, until a tag is taken
    /// off (Linux 6.1: `csum` behind several tags).
    pub fn lose_network(&mut self) {
        self.is_lost = true;
    }

    /// Whether the kernel takes the beginning of the frame for the network header.
    pub fn has_lost_network(&self) -> bool {
        self.is_lost
    }

    /// What precedes the network header in the kernel's memory: the link header, and the tags but for the
    /// outermost, which is beside the packet. With its length.
    fn front(&self) -> ([u8; Head::ETHERNET + 4 * Head::TAGS], usize) {
        let mut front = [0; Head::ETHERNET + 4 * Head::TAGS];
        front[..12].copy_from_slice(&self.bytes[..12]);
        let mut at = 12;
        for (ethertype, control) in self.tags().iter().skip(1) {
            front[at..at + 2].copy_from_slice(&ethertype.to_be_bytes());
            front[at + 2..at + 4].copy_from_slice(&control.to_be_bytes());
            at += 4;
        }
        front[at..at + 2].copy_from_slice(&self.bytes[12..14]);
        (front, at + 2)
    }

    /// The bytes that the kernel takes for the network header and what follows, where that is not
    /// [`Head::network`]: without the tag beside the packet.
    pub(crate) fn lost_network(&self) -> Option<[u8; Head::ETHERNET + Head::NETWORK]> {
        self.is_lost.then(|| {
            let (front, len) = self.front();
            let mut bytes = [0; Head::ETHERNET + Head::NETWORK];
            let kept = bytes.len() - len;
            bytes[..len].copy_from_slice(&front[..len]);
            bytes[len..].copy_from_slice(&self.bytes[Head::ETHERNET..Head::ETHERNET + kept]);
            bytes
        })
    }

    /// The frame as it is on the wire, tags written in; what is too long is cut.
    pub fn on_wire(&self) -> Head {
        let mut wire = self.clone();
        let room = wire.bytes.len();
        for (ethertype, control) in self.tags().iter().rev() {
            wire.bytes.copy_within(12..room - 4, 16);
            wire.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
            wire.bytes[14..16].copy_from_slice(&control.to_be_bytes());
            wire.len = (wire.len + 4).min(room as u8);
        }
        wire.tagged = 0;
        wire
    }

    /// The bytes from the link header on, as far as they are kept.
    pub fn frame(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The bytes of the frame, writable; the EtherType that the kernel keeps beside them does not change.
    pub fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.len)]
    }

    /// The bytes from the network header on.
    pub fn network(&self) -> &[u8] {
        &self.bytes[Head::ETHERNET..usize::from(self.len)]
    }

    /// The bytes from the network header on, to change; checksums are not computed again.
    pub fn network_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[Head::ETHERNET..usize::from(self.len)]
    }

    /// Bytes before the frame that a word may begin in. A kernel has space there for headers to come, and
    /// reads it: a filter that compares the link's first address by words (`match u16 … at -14` of tc) needs
    /// the rest of such a word.
    pub const HEADROOM: i32 = 2;

    /// The 32-bit big-endian word at `offset` from the network header (negative: in the Ethernet header, and
    /// tags but for the outermost); `None` outside. What precedes the frame is taken for nothing.
    pub fn word(&self, offset: i32) -> Option<u32> {
        if self.tagged > 1 {
            return self.tagged_word(offset);
        }
        let begin = offset.checked_add(Head::ETHERNET as i32)?;
        if begin == -Head::HEADROOM {
            let first = self.bytes[..usize::from(self.len)].get(..2)?;
            return Some(u32::from_be_bytes([0, 0, first[0], first[1]]));
        }
        let at = usize::try_from(begin).ok()?;
        let bytes = self.bytes[..usize::from(self.len)].get(at..at + 4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A word of a packet with tags in its frame.
    #[cold]
    fn tagged_word(&self, offset: i32) -> Option<u32> {
        let (front, len) = self.front();
        let begin = offset.checked_add(if self.is_lost { 0 } else { len as i32 })?;
        let mut word = [0; 4];
        for (at, into) in (begin..).zip(&mut word) {
            *into = match usize::try_from(at) {
                Err(_) if begin >= -Head::HEADROOM => 0,
                Err(_) => return None,
                Ok(at) if at < len => front[at],
                Ok(at) => *self.network().get(at - len)?,
            };
        }
        Some(u32::from_be_bytes(word))
    }

    /// Turns a bit of the frame round, if it is among the bytes kept.
    pub fn flip(&mut self, byte: usize, bit: u32) {
        if let Some(byte) = self.bytes[..usize::from(self.len)].get_mut(byte) {
            *byte ^= 1 << (bit & 7);
        }
    }

    /// The byte at `offset` from the network header (negative: in the Ethernet header, and tags but for the
    /// outermost), as far as bytes are kept.
    pub fn byte_at(&self, offset: i32) -> Option<u8> {
        if self.tagged > 1 {
            let (front, len) = self.front();
            let at = usize::try_from(offset + if self.is_lost { 0 } else { len as i32 }).ok()?;
            return front[..len].get(at).or_else(|| self.network().get(at - len)).copied();
        }
        let at = usize::try_from(offset + Head::ETHERNET as i32).ok()?;
        self.bytes[..usize::from(self.len)].get(at).copied()
    }

    /// Bytes of tags in the frame before the network header: of all but the outermost.
    pub fn tags_len(&self) -> u32 {
        4 * u32::from(self.tagged.saturating_sub(1))
    }

    /// What the packet is held for: its outer EtherType.
    pub fn ethertype(&self) -> u16 {
        self.ethertype
    }

    /// The outer header's DS field (IPv4 TOS byte, IPv6 traffic class); 0 for anything else.
    pub fn dsfield(&self) -> u8 {
        dsfield(self.ethertype, self.network())
    }

    /// The DS field in the frame's bytes, as a receiver reads it.
    pub fn frame_dsfield(&self) -> u8 {
        dsfield(self.frame_ethertype(), self.network())
    }

    /// Overwrites the outer header's DS field (an ECN mark, a DSCP rewrite). IPv4's checksum, if it is
    /// written, stays as right as it was.
    pub fn set_dsfield(&mut self, value: u8) {
        let summed = self.summed;
        match (self.ethertype, self.network_mut()) {
            (ethertype::IPV4, header @ [_, _, ..]) if summed => checksum::rewrite(header, 1, &[value]),
            (ethertype::IPV4, [_, tos, ..]) => *tos = value,
            (ethertype::IPV6, [first, second, ..]) => {
                *first = *first & 0xf0 | value >> 4;
                *second = *second & 0x0f | value << 4;
            }
            _ => {}
        }
    }
}

fn dsfield(kind: u16, network: &[u8]) -> u8 {
    match (kind, network) {
        (ethertype::IPV4, [_, tos, ..]) => *tos,
        (ethertype::IPV6, [first, second, ..]) => first << 4 | second >> 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encap;

    #[test]
    fn a_word_may_begin_before_the_frame() {
        let mut head = Head::from_network(ethertype::IPV4, &[0x45; 20]);
        (head.bytes[0], head.bytes[1], head.bytes[2]) = (2, 7, 9);
        let words = [-18, -16, -14, -12].map(|offset| head.word(offset));
        assert_eq!(words, [None, Some(0x0207), Some(0x0207_0900), Some(0x0900_0000)]);
        assert_eq!([i32::MIN, i32::MAX].map(|offset| head.word(offset)), [None, None]);
    }

    /// A DS field that changes after a way through PPPoE takes the header's checksum along, as it does
    /// without.
    #[test]
    fn checksums_outlive_what_is_wrapped_around() {
        let mut packet = [0; 300];
        packet[..20]
            .copy_from_slice(&[0x45, 2, 1, 44, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
        let mut plain = Head::from_network(ethertype::IPV4, &packet);
        plain.set_summed();
        plain.sum_header();
        let inside = encap::of_pppoe(&encap::pppoe(&plain, 300)).expect("it is in there");
        let mut marked = inside.clone();
        marked.set_dsfield(3);
        assert!(inside.has_right_header() && marked.has_right_header());
        assert_ne!(marked.network()[10..12], inside.network()[10..12]);
    }
}
