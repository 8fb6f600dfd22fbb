//! Which acknowledgements later ones make needless (the CAKE paper, section III.D; tc-cake(8)).
//!
//! TCP's acknowledgements are cumulative: on a link that is slow in one direction most of them can be left
//! out. One that waits may go when a later packet of its connection acknowledges more, as long as nothing
//! else in it is dropped: no data, no flags but the two echoes of ECN and these unchanged, no options but
//! timestamps that are not newer and selective acknowledgements that the later one covers.

use super::Cake;
use crate::context::{Context, DropReason};
use crate::discipline::QdiscState;
use tidegate_packet::header::{proto, tcp_flags};
use tidegate_packet::{Fifo, Head, Pool};
use tidegate_policy::CakeAckFilter;

/// The echoes of ECN, which are compared and not refused.
const ECHOES: u8 = tcp_flags::ECE | tcp_flags::CWR;
/// Bits of the byte before the flags that are not the header's length: they must be zero.
const RESERVED: u8 = 0x0f;

/// Options of TCP (RFC 9293, 7323, 2018).
mod option {
    pub(super) const END: u8 = 0;
    pub(super) const NOTHING: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMP: u8 = 8;
}

/// A TCP segment with the addresses it goes between.
#[derive(Clone, Copy)]
struct Segment<'a> {
    v6: bool,
    addresses: &'a [u8],
    /// The TCP header with its options, as far as it is kept.
    header: &'a [u8],
    /// Bytes of the network layer's content: header and data.
    content: usize,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Is `a` behind `b` on the wrapping line of sequence numbers?
fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

impl<'a> Segment<'a> {
    /// The segment in a packet: in IPv4, in IPv6, or in IPv6 within IPv4.
    fn of(head: &'a Head) -> Option<Segment<'a>> {
        let outer = head.network();
        if outer.first()? >> 4 != 4 {
            return Segment::in_v6(outer);
        }
        let length = usize::from(outer[0] & 15) * 4;
        match *outer.get(9)? {
            proto::TCP => Some(Segment {
                v6: false,
                addresses: outer.get(12..20)?,
                header: header(outer.get(length..)?)?,
                content: usize::from(be16(outer, 2)?).checked_sub(length)?,
            }),
            proto::IPV6 => Segment::in_v6(outer.get(length..)?),
            _ => None,
        }
    }

    fn in_v6(packet: &'a [u8]) -> Option<Segment<'a>> {
        if packet.first()? >> 4 != 6 || *packet.get(6)? != proto::TCP {
            return None;
        }
        Some(Segment {
            v6: true,
            addresses: packet.get(8..40)?,
            header: header(packet.get(40..)?)?,
            content: be16(packet, 4)?.into(),
        })
    }

    fn flags(&self) -> u8 {
        self.header[13]
    }

    fn echoes(&self) -> u8 {
        self.flags() & ECHOES
    }

    fn acknowledges(&self) -> u32 {
        be32(self.header, 8).unwrap_or(0)
    }

    fn is_of_connection(&self, other: &Segment<'_>) -> bool {
        self.v6 == other.v6 && self.addresses == other.addresses && self.header[..4] == other.header[..4]
    }

    /// Its options with their content; where their lengths do not fit it ends.
    fn options(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = &self.header[20..];
        core::iter::from_fn(move || {
            while rest.first() == Some(&option::NOTHING) {
                rest = &rest[1..];
            }
            let (kind, length) = (*rest.first()?, usize::from(*rest.get(1)?));
            if kind == option::END || length < 2 || length > rest.len() {
                return None;
            }
            let content = &rest[2..length];
            rest = &rest[length..];
            Some((kind, content))
        })
    }

    fn option(&self, wanted: u8) -> Option<&'a [u8]> {
        self.options().find(|(kind, _)| *kind == wanted).map(|(_, content)| content)
    }

    /// Its timestamps; zeros where there are none.
    fn timestamps(&self) -> (u32, u32) {
        let content = self.option(option::TIMESTAMP).filter(|content| content.len() == 8).unwrap_or(&[0; 8]);
        (be32(content, 0).unwrap_or(0), be32(content, 4).unwrap_or(0))
    }

    /// Whether it carries nothing but acknowledgements, with a timestamp no later than the later one's.
    fn is_plain(&self, later: (u32, u32)) -> bool {
        if self.header[12] & RESERVED != 0
            || self.flags() & !ECHOES != tcp_flags::ACK
            || self.content != self.header.len()
        {
            return false;
        }
        self.options().all(|(kind, content)| match (kind, content.len()) {
            (option::SACK, length) => length % 8 == 0,
            (option::TIMESTAMP, 8) => {
                let timestamps = (be32(content, 0).unwrap_or(0), be32(content, 4).unwrap_or(0));
                !after(timestamps.0, later.0) && !after(timestamps.1, later.1)
            }
            _ => false,
        })
    }

    /// The ranges it acknowledges selectively; `None`: it has no such option.
    fn ranges(&self) -> Option<impl Iterator<Item = (u32, u32)> + Clone + use<'a>> {
        let content = self.option(option::SACK)?;
        Some(content.chunks_exact(8).filter_map(|range| Some((be32(range, 0)?, be32(range, 4)?))))
    }

    /// Whether the later segment acknowledges all that this one does, and more.
    fn is_covered_by(&self, later: &Segment<'_>) -> bool {
        if after(self.acknowledges(), later.acknowledges()) {
            return false;
        }
        let more = self.acknowledges() != later.acknowledges();
        match (self.ranges(), later.ranges()) {
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => more,
            (Some(own), Some(theirs)) => {
                // A range below the cumulative acknowledgement is a D-SACK (RFC 2883): it reports a
                // duplicate, and must not be dropped.
                let told_twice = own.clone().any(|range| after(self.acknowledges(), range.0));
                let within = |range: (u32, u32)| {
                    theirs.clone().any(|other| !after(other.0, range.0) && !after(range.1, other.1))
                };
                let all_within = own.clone().all(within);
                !told_twice && all_within && (more || sum(theirs) > sum(own))
            }
        }
    }
}

/// Bytes in ranges.
fn sum(ranges: impl Iterator<Item = (u32, u32)>) -> u32 {
    ranges.fold(0, |sum, (from, to)| sum.wrapping_add(to.wrapping_sub(from)))
}

/// The header of a segment, which must be there with its options.
fn header(segment: &[u8]) -> Option<&[u8]> {
    let length = usize::from(*segment.get(12)? >> 4) * 4;
    segment.get(..length).filter(|_| length >= 20)
}

/// The slot of the acknowledgement that the last packet of a queue makes needless.
fn needless(pool: &Pool, queue: &Fifo, aggressive: bool) -> Option<usize> {
    let slots = || queue.slots(pool);
    let last = queue.back_slot()?;
    let later = Segment::of(pool.last_head(last)?)?;
    if later.flags() & (tcp_flags::ACK | tcp_flags::SYN) != tcp_flags::ACK {
        return None;
    }
    let times = later.timestamps();
    // The oldest that may go, with its echoes, and whether it is the one right in front of the last packet.
    let mut oldest: Option<(usize, u8, bool)> = None;
    let mut found = 0;
    for (slot, next) in slots().zip(slots().skip(1)) {
        let Some(earlier) = pool.last_head(slot).and_then(Segment::of) else { continue };
        if !earlier.is_of_connection(&later) {
            continue;
        }
        if oldest.is_some_and(|(_, echoes, _)| echoes != earlier.echoes()) {
            // The timestamp that the older one echoes would no longer be reported by this one.
            oldest = None;
            found -= 1;
        }
        if !earlier.is_plain(times) || !earlier.is_covered_by(&later) {
            continue;
        }
        let first = *oldest.get_or_insert((slot, earlier.echoes(), next == last));
        found += 1;
        if found > 1 {
            return Some(first.0);
        }
    }
    let (slot, echoes, in_front) = oldest?;
    (aggressive && in_front && echoes == later.echoes()).then_some(slot)
}

impl Cake {
    /// Leaves out an acknowledgement that the packet just put at the end of a flow makes needless.
    pub(super) fn filter_acks(&mut self, cx: &mut Context<'_>, own: QdiscState, tin: usize, flow: u32) {
        let filter = self.params.ack_filter.unwrap_or_default();
        if filter == CakeAckFilter::Off || self.tins[tin].flow(flow).queue.len() < 2 {
            return;
        }
        let queue = &self.tins[tin].flow(flow).queue;
        let Some(slot) = needless(cx.pool, queue, filter == CakeAckFilter::Aggressive) else { return };
        let Some(pkt) = self.tins[tin].take(cx.pool, flow, slot) else { return };
        let meta = cx.pool.meta(&pkt);
        let (len, cost) = (meta.len, meta.cost);
        self.memory -= u64::from(meta.truesize);
        self.arrivals.window_bytes = self.arrivals.window_bytes.wrapping_sub(len.into());
        self.tins[tin].counts.ack_drops += 1;
        if self.charges_drops() {
            self.charge(cx.now.0, tin, cost, true);
        }
        cx.drop(own.handle, pkt, DropReason::Superseded);
    }
}
