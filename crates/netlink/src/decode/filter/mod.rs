//! Filters: one function for each kind.

mod ematch;
mod flower;
mod key;

use super::action::{actions, old_policer};
use super::message::{Message, Names, Unread, numbers};
use key::key;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry, U32Hits};
use tidegate_policy::{
    BasicParams, FilterParams, FlowKeySet, FlowMode, FlowParams, FlowSaid, FwParams, Indev, MatchallParams, U32Offset,
    U32OffsetField, U32Params,
};
use tidegate_sys::attribute::Found;
use tidegate_sys::numbers::{TCA_CHAIN, TCA_OPTIONS, TCM_IFINDEX_MAGIC_BLOCK};

/// The kinds, with the attributes of their actions and of a policer without `action` before it (0: it has none).
const KINDS: [(&str, u16, u16); 6] =
    [("fw", 4, 2), ("u32", 7, 6), ("flow", 9, 10), ("basic", 3, 4), ("matchall", 2, 0), ("flower", 3, 0)];

pub(super) fn filter(dev: &str, message: &Message<'_>, names: Names<'_>) -> Result<FilterDump, Unread> {
    let named = message.kind()?;
    let Some((kind, acts, police)) = KINDS.into_iter().find(|(known, ..)| *known == named) else {
        return Err(Unread::Kind(named.to_owned()));
    };
    // A filter of a shared block has that block's number where others have their parent.
    let (block, parent) = match message.device {
        TCM_IFINDEX_MAGIC_BLOCK => (message.parent.0, Handle::NONE),
        _ => (0, message.parent),
    };
    Ok(FilterDump {
        dev: dev.to_owned(),
        block,
        parent,
        protocol: u16::from_be(message.info as u16),
        pref: (message.info >> 16) as u16,
        kind,
        chain: message.attributes.u32(TCA_CHAIN).unwrap_or(0),
        entry: entry(kind, (acts, police), message, names)?,
    })
}

fn entry(
    kind: &'static str,
    places: (u16, u16),
    message: &Message<'_>,
    names: Names<'_>,
) -> Result<FilterEntry, Unread> {
    let (handle, options) = (message.handle, message.attributes.nest(TCA_OPTIONS));
    // A preference's heading says nothing of what stands below it.
    if message.attributes.get(TCA_OPTIONS).is_none() && (handle == 0 || kind != "fw") {
        return Ok(FilterEntry::Heading);
    }
    if let ("u32", Some(divisor)) = (kind, options.u32(4)) {
        return Ok(FilterEntry::U32Table { table: handle >> 20, divisor });
    }
    let params = params(kind, &options).ok_or(Unread::Odd(kind))?;
    let hits = match kind {
        "u32" => options.get(9).map(|bytes| hits(bytes, &options)),
        "matchall" => options
            .get(4)
            .map(|bytes| U32Hits { asked: counts(bytes).first().copied().unwrap_or(0), ..U32Hits::default() }),
        _ => None,
    };
    Ok(FilterEntry::Filter { handle, params, hits, actions: all_actions(&options, places, names)? })
}

fn all_actions(options: &Found<'_>, (acts, police): (u16, u16), names: Names<'_>) -> Result<Vec<ActionDump>, Unread> {
    match options.get(police).filter(|_| police != 0) {
        Some(bytes) => Ok(vec![old_policer(bytes)?]),
        None => options.get(acts).map_or(Ok(Vec::new()), |bytes| actions(bytes, names)),
    }
}

fn params(kind: &str, options: &Found<'_>) -> Option<FilterParams> {
    Some(match kind {
        "fw" => FilterParams::Fw(FwParams {
            classid: options.u32(1).map(Handle),
            mask: options.u32(5),
            indev: options.text(3).map(Indev::named),
        }),
        "matchall" => FilterParams::Matchall(MatchallParams { classid: options.u32(1).map(Handle) }),
        "basic" => FilterParams::Basic(BasicParams {
            classid: options.u32(1).map(Handle),
            terms: ematch::tree(&options.nest(2))?,
        }),
        "flow" => FilterParams::Flow(flow(options)?),
        "flower" => FilterParams::Flower(flower::flower(options)),
        "u32" => FilterParams::U32(u32(options)?),
        _ => return None,
    })
}

fn flow(from: &Found<'_>) -> Option<FlowParams> {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    Some(FlowParams {
        mode: Some(if of(2) == 0 { FlowMode::Map } else { FlowMode::Hash }),
        keys: FlowKeySet(of(1)),
        mask: from.u32(6).unwrap_or(u32::MAX),
        xor: of(7),
        rshift: of(4),
        addend: of(5),
        divisor: of(8),
        baseclass: from.u32(3).map(Handle),
        perturb: of(12),
        terms: ematch::tree(&from.nest(11))?,
        said: FlowSaid::default(),
    })
}

fn u32(options: &Found<'_>) -> Option<U32Params> {
    let bytes = options.get(5).unwrap_or(&[0; 16]);
    let (head, keys) = bytes.split_at_checked(16)?;
    let be = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let own = |at: usize| i16::from_ne_bytes([head[at], head[at + 1]]);
    let hash_mask = u32::from_be_bytes([head[12], head[13], head[14], head[15]]);
    let field = U32OffsetField { mask: be(4), shift: head[1], at: own(8).into() };
    Some(U32Params {
        classid: options.u32(1).map(Handle),
        keys: keys.chunks_exact(16).map(key).collect(),
        mark: options.get(10).and_then(|bytes| numbers(bytes).get(..2).map(|two| (two[0], two[1]))),
        indev: options.text(8).map(Indev::named),
        table: options.u32(2).unwrap_or(0),
        divisor: None,
        link: options.u32(3).map(|link| link >> 20),
        hash: (hash_mask != 0).then(|| (hash_mask, own(10).into())),
        offset: U32Offset { plus: own(6) as u16, field: (head[0] & 4 != 0).then_some(field), eat: head[0] & 8 != 0 },
    })
}

fn hits(bytes: &[u8], options: &Found<'_>) -> U32Hits {
    let counts = counts(bytes);
    let at = |place: usize| counts.get(place).copied().unwrap_or(0);
    let mark = options.get(10).and_then(|bytes| numbers(bytes).get(2).copied()).unwrap_or(0);
    U32Hits { asked: at(0), matched: at(1), keys: counts.get(2..).unwrap_or_default().to_vec(), mark: mark.into() }
}

/// Numbers of 64 bits one after another.
fn counts(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|eight| u64::from_ne_bytes(std::array::from_fn(|at| eight[at]))).collect()
}
