//! red, and what choke, sfq and gred have of it.

use super::base::{Codec, nested};
use crate::decode::message::{Message, numbers};
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_policy::dump::{RedStats, Xstats};
use tidegate_policy::{IdleTable, QdiscParams, RedCurve, RedParams};

pub(super) struct Red;

impl Codec for Red {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Red(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(&read(options), true).map(QdiscParams::Red)
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers(), false).map(Xstats::Red)
    }
}

/// The flags that red has: ecn, harddrop, adaptive, nodrop.
const ALL_FLAGS: u32 = 15;

pub(super) fn flags(params: &RedParams) -> u8 {
    let RedParams { ecn, harddrop, adaptive, nodrop, .. } = params;
    u8::from(*ecn) | u8::from(*harddrop) << 1 | u8::from(*adaptive) << 2 | u8::from(*nodrop) << 3
}

pub(super) fn curve(limit: u32, curve: &RedCurve, flags: u8) -> Vec<u8> {
    let mut bytes = words(&[limit, curve.min, curve.max]);
    bytes.extend([curve.wlog, curve.plog, curve.scell_log, flags]);
    bytes
}

pub(super) fn idle(to: &mut Attributes, number: u16, table: Option<&IdleTable>) {
    if let Some(table) = table {
        to.payload(number, table);
    }
}

fn encode(to: &mut Attributes, params: &RedParams) {
    // Flags have an attribute of their own, whose selector gives the kernel the flags that are set.
    to.payload(1, &curve(params.limit, &params.curve, 0));
    idle(to, 2, params.idle.as_deref());
    to.u32(3, params.curve.max_p).payload(4, &words(&[flags(params).into(), ALL_FLAGS]));
}

/// Those of choke have no attribute with flags.
pub(super) fn decode(from: &Found<'_>, has_flags: bool) -> Option<RedParams> {
    let bytes = from.get(1)?;
    let words = numbers(bytes);
    let [limit, min, max, ..] = words.as_slice() else { return None };
    let logs = bytes.get(12..16)?;
    let curve = RedCurve {
        min: *min,
        max: *max,
        wlog: logs[0],
        plog: logs[1],
        scell_log: logs[2],
        max_p: from.u32(3).unwrap_or(0),
    };
    // Newer kernels report all flags there; the structure has the older ones.
    let dump = from.get(4).filter(|_| has_flags).and_then(|bytes| numbers(bytes).first().copied());
    let flags = dump.unwrap_or(0) | u32::from(logs[3]);
    Some(RedParams {
        limit: *limit,
        curve,
        idle: None,
        ecn: flags & 1 != 0,
        harddrop: flags & 2 != 0,
        adaptive: flags & 4 != 0,
        nodrop: flags & 8 != 0,
    })
}

/// Those of choke count one thing more.
pub(super) fn read_stats(words: &[u32], choke: bool) -> Option<RedStats> {
    let [early, pdrop, other, marked, ref more @ ..] = *words else { return None };
    let matched = if choke { more.first().copied() } else { None };
    Some(RedStats { early, pdrop, other, marked, matched })
}
