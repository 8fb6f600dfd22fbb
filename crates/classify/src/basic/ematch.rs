//! Conditions on a packet, and expressions of them.

use crate::context::ClassifyContext;
use crate::u32::with_dsfield;
use tidegate_packet::transport;
use tidegate_policy::{Ematch, Layer, MetaId, MetaValue, Term, U32Key};

/// Does an expression hold? An empty one does.
pub(crate) fn holds(terms: &[Term], asked: &mut ClassifyContext<'_>) -> bool {
    let mut held = true;
    for term in terms {
        held = one(&term.what, asked) != term.not;
        if held == term.or {
            return held;
        }
    }
    held
}

/// The same, noting of each condition that is asked whether it held.
pub(super) fn holds_counted(terms: &[Term], asked: &mut ClassifyContext<'_>, counts: &mut [u64]) -> bool {
    let mut held = true;
    for (term, count) in terms.iter().zip(counts) {
        held = one(&term.what, asked) != term.not;
        *count += u64::from(held);
        if held == term.or {
            return held;
        }
    }
    held
}

fn one(what: &Ematch, asked: &mut ClassifyContext<'_>) -> bool {
    match what {
        Ematch::Cmp { width, offset, layer, mask, trans, how, value } => {
            let mut bytes = [0; 4];
            let bytes = &mut bytes[..width.octets()];
            if !read(asked, *layer, *offset, bytes) {
                return false;
            }
            if *trans {
                bytes.reverse();
            }
            let found = bytes.iter().fold(0, |number: u32, octet| number << 8 | u32::from(*octet));
            how.holds(u64::from(if *mask == 0 { found } else { found & mask }), u64::from(*value))
        }
        Ematch::Nbyte { offset, layer, data: octets } => {
            let mut at = *offset;
            octets.iter().all(|wanted| {
                let mut found = [0];
                let same = read(asked, *layer, at, &mut found) && found[0] == *wanted;
                at = at.saturating_add(1);
                same
            })
        }
        Ematch::U32(key) => word(key, asked),
        Ematch::Meta { left, how, right } => {
            // Both are looked up, the left one first.
            let left = known(left, asked);
            let right = known(right, asked);
            matches!((left, right), (Some(left), Some(right)) if how.holds(left, right))
        }
        Ematch::All(terms) => holds(terms, asked),
    }
}

/// Reads bytes of a layer; false: the packet ends before them.
fn read(asked: &ClassifyContext<'_>, layer: Layer, offset: u16, into: &mut [u8]) -> bool {
    let Some(from) = begin(asked, layer) else { return false };
    let bytes = into.len() as i32;
    for (at, byte) in (from + i32::from(offset)..).zip(into) {
        match byte_at(asked, at) {
            Some(found) => *byte = found,
            None => return false,
        }
    }
    bytes > 0
}

/// Where a layer begins, counted from the network header.
fn begin(asked: &ClassifyContext<'_>, layer: Layer) -> Option<i32> {
    match layer {
        Layer::Link => Some(-(asked.link_header as i32)),
        Layer::Network => Some(0),
        Layer::Transport => {
            let head = asked.pool.head(asked.pkt);
            let (_, behind) = transport(head.ethertype(), head.network())?;
            Some((head.network().len() - behind.len()) as i32)
        }
    }
}

/// A byte with the DS field as it is now. What lies behind the bytes that are kept counts as zero, as far
/// as the packet goes.
fn byte_at(asked: &ClassifyContext<'_>, at: i32) -> Option<u8> {
    let (head, meta) = (asked.pool.head(asked.pkt), asked.pool.meta(asked.pkt));
    if matches!(at, 0 | 1) {
        let word = with_dsfield(head.word(0)?, meta.dsfield);
        return Some(word.to_be_bytes()[at as usize]);
    }
    let within = || i64::from(at) + i64::from(asked.link_header) < i64::from(meta.frame_len);
    head.byte_at(at).or_else(|| within().then_some(0))
}

/// As u32 compares, except that the header behind the network header is not known: `nexthdr+` counts for
/// nothing.
fn word(key: &U32Key, asked: &ClassifyContext<'_>) -> bool {
    let mut bytes = [0; 4];
    for (at, byte) in (key.offset..).zip(&mut bytes) {
        match byte_at(asked, at) {
            Some(found) => *byte = found,
            None => return false,
        }
    }
    (u32::from_be_bytes(bytes) ^ key.value) & key.mask == 0
}

/// What the kernel knows; `None` where it knows nothing of the sort about this packet.
fn known(value: &MetaValue, asked: &mut ClassifyContext<'_>) -> Option<u64> {
    let meta = asked.pool.meta(asked.pkt);
    let found = match value.what {
        MetaId::Number(number) => return Some(u64::from(number)),
        MetaId::Random => asked.random.word() as u32,
        // Nothing loads the machine; packets lie in one piece; who sent them is not known by a socket.
        MetaId::Loadavg(_) | MetaId::DataLen | MetaId::MacLen | MetaId::PktType | MetaId::TcIndex => 0,
        MetaId::Socket("sk_bind_if") => 0,
        MetaId::Socket(_) | MetaId::RtClassid | MetaId::RtIif | MetaId::Dev => return None,
        MetaId::Priority => meta.priority,
        // The number as it lies in the memory of a little-endian machine.
        MetaId::Protocol => u32::from(meta.ethertype.swap_bytes()),
        // As it is in memory: no size table counts, but a link header that was taken off is gone.
        MetaId::PktLen => asked
            .pool
            .meta(asked.pkt)
            .frame_len
            .saturating_sub(asked.meter.whole.saturating_sub(asked.meter.len)),
        MetaId::Mark => meta.mark.0,
        MetaId::Vlan => u32::from(asked.pool.keys(asked.pkt).vlan[0]?.0),
    };
    let shifted = u64::from(found) >> value.shift.min(63);
    Some(if value.mask == 0 { shifted } else { shifted & u64::from(value.mask) })
}
