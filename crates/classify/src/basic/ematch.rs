//! Conditions on a packet, and expressions of them.

use crate::context::ClassifyContext;
use crate::u32::with_dsfield;
use tidegate_packet::transport;
use tidegate_policy::{CanRule, Ematch, Layer, MetaId, MetaValue, Term, U32Key};

/// Does an expression hold? An empty one does.
pub(crate) fn matches(terms: &[Term], context: &mut ClassifyContext<'_>) -> bool {
    let mut is_met = true;
    for term in terms {
        is_met = one(&term.what, context) != term.not;
        if is_met == term.or {
            return is_met;
        }
    }
    is_met
}

/// Evaluates an expression and counts each condition that was true.
pub(super) fn matches_counted(terms: &[Term], context: &mut ClassifyContext<'_>, counts: &mut [u64]) -> bool {
    let mut matches = true;
    for (term, count) in terms.iter().zip(counts) {
        matches = one(&term.what, context) != term.not;
        *count += u64::from(matches);
        if matches == term.or {
            return matches;
        }
    }
    matches
}

fn one(what: &Ematch, context: &mut ClassifyContext<'_>) -> bool {
    match what {
        Ematch::Cmp { width, offset, layer, mask, trans, how, value } => {
            let mut bytes = [0; 4];
            let bytes = &mut bytes[..width.bytes()];
            if !read(context, *layer, *offset, bytes) {
                return false;
            }
            if *trans {
                bytes.reverse();
            }
            let found = bytes.iter().fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
            how.matches(u64::from(if *mask == 0 { found } else { found & mask }), u64::from(*value))
        }
        Ematch::Nbyte { offset, layer, data } => {
            let mut at = *offset;
            data.iter().all(|wanted| {
                let mut found = [0];
                let same = read(context, *layer, at, &mut found) && found[0] == *wanted;
                at = at.saturating_add(1);
                same
            })
        }
        Ematch::U32(key) => word(key, context),
        Ematch::Meta { left, how, right } => {
            // Both are looked up, the left one first.
            let left = known(left, context);
            let right = known(right, context);
            matches!((left, right), (Some(left), Some(right)) if how.matches(left, right))
        }
        Ematch::Canid(rules) => can(rules, context),
        Ematch::All(terms) => matches(terms, context),
    }
}

/// Reads bytes of a layer; false: the packet ends before them.
fn read(context: &ClassifyContext<'_>, layer: Layer, offset: u16, into: &mut [u8]) -> bool {
    let Some(from) = begin(context, layer) else { return false };
    let bytes = into.len() as i32;
    for (at, byte) in (from + i32::from(offset)..).zip(into) {
        match byte_at(context, at) {
            Some(found) => *byte = found,
            None => return false,
        }
    }
    bytes > 0
}

/// Where a layer begins, counted from the network header.
fn begin(context: &ClassifyContext<'_>, layer: Layer) -> Option<i32> {
    match layer {
        Layer::Link => {
            let head = context.pool.head(context.pkt);
            let before = context.link_header + head.tags_len();
            Some(if head.has_lost_network() { 0 } else { -(before as i32) })
        }
        Layer::Network => Some(0),
        Layer::Transport => {
            let head = context.pool.head(context.pkt);
            let (_, behind) = transport(head.ethertype(), head.network())?;
            // It stays where it was when the network header is lost.
            let moved = if head.has_lost_network() { context.link_header + head.tags_len() } else { 0 };
            Some((head.network().len() - behind.len()) as i32 + moved as i32)
        }
    }
}

/// A byte with the DS field as it is now. What lies behind the bytes that are kept counts as zero, as far
/// as the packet goes.
fn byte_at(context: &ClassifyContext<'_>, at: i32) -> Option<u8> {
    let (head, meta) = (context.pool.head(context.pkt), context.pool.meta(context.pkt));
    if matches!(at, 0 | 1) {
        let word = with_dsfield(head.word(0)?, meta.dsfield);
        return Some(word.to_be_bytes()[at as usize]);
    }
    let within = || i64::from(at) + i64::from(context.link_header) < i64::from(meta.frame_len);
    head.byte_at(at).or_else(|| within().then_some(0))
}

/// Is it one of these identifiers? The kernel takes the first four bytes of any packet for one, in the order
/// of a little-endian machine.
fn can(rules: &[CanRule], context: &ClassifyContext<'_>) -> bool {
    let mut bytes = [0; 4];
    if !read(context, Layer::Link, 0, &mut bytes) {
        return false;
    }
    let found = u32::from_le_bytes(bytes);
    let extended = found & CanRule::EXTENDED != 0;
    let bits = if extended { CanRule::LONG } else { CanRule::SHORT };
    rules.iter().any(|rule| {
        (rule.id & CanRule::EXTENDED != 0) == extended && (found ^ rule.id) & bits & rule.mask == 0
    })
}

/// As u32 compares, except that the header behind the network header is not known: `nexthdr+` counts for
/// nothing.
fn word(key: &U32Key, context: &ClassifyContext<'_>) -> bool {
    let mut bytes = [0; 4];
    for (at, byte) in (key.offset..).zip(&mut bytes) {
        match byte_at(context, at) {
            Some(found) => *byte = found,
            None => return false,
        }
    }
    (u32::from_be_bytes(bytes) ^ key.value) & key.mask == 0
}

/// What the kernel knows; `None` where it knows nothing of the sort about this packet.
fn known(value: &MetaValue, context: &mut ClassifyContext<'_>) -> Option<u64> {
    let meta = context.pool.meta(context.pkt);
    let found = match value.what {
        MetaId::Number(number) => return Some(u64::from(number)),
        MetaId::Random => context.random.word() as u32,
        // The machine has no load; packets are in one piece; the sender's socket is not known.
        MetaId::Loadavg(_) | MetaId::DataLen | MetaId::MacLen | MetaId::PktType | MetaId::TcIndex => 0,
        MetaId::Socket("sk_bind_if") => 0,
        MetaId::Socket(_) | MetaId::RtClassid | MetaId::RtIif | MetaId::Dev => return None,
        MetaId::Priority => meta.priority,
        // The number as it lies in the memory of a little-endian machine.
        MetaId::Protocol => u32::from(meta.ethertype.swap_bytes()),
        // As it is in memory: no size table counts, but a link header that was taken off is gone.
        MetaId::PktLen => context
            .pool
            .meta(context.pkt)
            .frame_len
            .saturating_sub(context.meter.whole.saturating_sub(context.meter.len)),
        MetaId::Mark => meta.mark.0,
        MetaId::Vlan => u32::from(context.pool.keys(context.pkt).vlan[0]?.0),
    };
    let shifted = u64::from(found) >> value.shift.min(63);
    Some(if value.mask == 0 { shifted } else { shifted & u64::from(value.mask) })
}
