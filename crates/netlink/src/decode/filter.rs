//! Filters as the kernel sends them.

use super::action::{actions, old_policer};
use super::message::{Message, Names, Unread, numbers};
use crate::filter::{Row, row};
use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::Found;
use tidegate_netlink_wire::numbers::{TCA_CHAIN, TCA_OPTIONS, TCM_IFINDEX_MAGIC_BLOCK};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry, U32Hits};

pub(super) fn filter(dev: &str, message: &Message<'_>, names: Names<'_>) -> Result<FilterDump, Unread> {
    let named = message.kind()?;
    let Some(row) = row(named) else {
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
        kind: row.name,
        chain: message.attributes.u32(TCA_CHAIN).unwrap_or(0),
        entry: entry(row, message, names)?,
    })
}

fn entry(row: &Row, message: &Message<'_>, names: Names<'_>) -> Result<FilterEntry, Unread> {
    let kind = row.name;
    let (handle, options) = (message.handle, message.attributes.nest(TCA_OPTIONS));
    // A preference's heading has no attributes of the filters below it.
    if message.attributes.get(TCA_OPTIONS).is_none() && (handle == 0 || kind != "fw") {
        return Ok(FilterEntry::Heading);
    }
    if let ("u32", Some(divisor)) = (kind, options.u32(4)) {
        return Ok(FilterEntry::U32Table { table: handle >> 20, divisor });
    }
    let params = (row.decode)(&options).ok_or(Unread::Odd(kind))?;
    let hits = match kind {
        "u32" => options.get(9).map(|bytes| hits(bytes, &options)),
        "matchall" => options.get(4).map(|bytes| U32Hits {
            lookups: counts(bytes).first().copied().unwrap_or(0),
            ..U32Hits::default()
        }),
        _ => None,
    };
    Ok(FilterEntry::Filter { handle, params, hits, actions: all_actions(&options, row, names)? })
}

fn all_actions(options: &Found<'_>, row: &Row, names: Names<'_>) -> Result<Vec<ActionDump>, Unread> {
    match row.police.and_then(|police| options.get(police)) {
        Some(bytes) => Ok(vec![old_policer(bytes)?]),
        None => options.get(row.actions).map_or(Ok(Vec::new()), |bytes| actions(bytes, names)),
    }
}

fn hits(bytes: &[u8], options: &Found<'_>) -> U32Hits {
    let counts = counts(bytes);
    let at = |place: usize| counts.get(place).copied().unwrap_or(0);
    let mark = options.get(10).and_then(|bytes| numbers(bytes).get(2).copied()).unwrap_or(0);
    U32Hits {
        lookups: at(0),
        matched: at(1),
        keys: counts.get(2..).unwrap_or_default().to_vec(),
        mark: mark.into(),
    }
}

/// Numbers of 64 bits one after another.
fn counts(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|eight| u64::from_ne_bytes(core::array::from_fn(|at| eight[at]))).collect()
}
