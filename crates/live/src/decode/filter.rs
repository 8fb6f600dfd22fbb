//! Filters: u32, with mirred and gact.

use super::{Message, Names, TCA_CHAIN, Unread, counted, numbers};
use crate::attribute::{Found, read};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry, U32Hits};
use tidegate_policy::{
    Act, Action, Control, FilterParams, Gact, Indev, Mirred, U32Key, U32Offset, U32OffsetField, U32Params,
};

const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_ACT_STATS: u16 = 4;
const TCA_ACT_COOKIE: u16 = 6;
/// Nanoseconds of a clock tick that actions tell their ages in (hundredths of a second).
const TICK: u64 = 10_000_000;

pub(super) fn filter(dev: &str, message: &Message<'_>, names: Names<'_>) -> Result<FilterDump, Unread> {
    let kind = message.kind()?;
    if kind != "u32" {
        return Err(Unread::Kind(kind.to_owned()));
    }
    Ok(FilterDump {
        dev: dev.to_owned(),
        parent: message.parent,
        protocol: u16::from_be(message.info as u16),
        pref: (message.info >> 16) as u16,
        kind: "u32",
        chain: message.attributes.u32(TCA_CHAIN).unwrap_or(0),
        entry: entry(message.handle, message.options(), names)?,
    })
}

fn entry(handle: u32, options: &[u8], names: Names<'_>) -> Result<FilterEntry, Unread> {
    if handle == 0 {
        return Ok(FilterEntry::Heading);
    }
    let options = read(options);
    if let Some(divisor) = options.u32(4) {
        return Ok(FilterEntry::U32Table { table: handle >> 20, divisor });
    }
    let odd = Unread::Odd("u32");
    let params = params(&options).ok_or(odd)?;
    let hits = options.get(9).map(|octets| hits(octets, &options));
    let actions = options.nest(7).all().map(|(_, octets)| action(octets, names)).collect::<Result<Vec<_>, _>>()?;
    Ok(FilterEntry::Filter { handle, params: FilterParams::U32(params), hits, actions })
}

fn params(options: &Found<'_>) -> Option<U32Params> {
    let octets = options.get(5).unwrap_or(&[0; 16]);
    let (head, keys) = octets.split_at_checked(16)?;
    let be = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let own = |at: usize| i16::from_ne_bytes([head[at], head[at + 1]]);
    let hash_mask = u32::from_be_bytes([head[12], head[13], head[14], head[15]]);
    let field = U32OffsetField { mask: be(4), shift: head[1], at: own(8).into() };
    Some(U32Params {
        classid: options.u32(1).map(Handle),
        keys: keys.chunks_exact(16).map(key).collect(),
        mark: options.get(10).and_then(|octets| numbers(octets).get(..2).map(|two| (two[0], two[1]))),
        indev: options.text(8).map(Indev::named),
        table: options.u32(2).unwrap_or(0),
        divisor: None,
        link: options.u32(3).map(|link| link >> 20),
        hash: (hash_mask != 0).then(|| (hash_mask, own(10).into())),
        offset: U32Offset { plus: own(6) as u16, field: (head[0] & 4 != 0).then_some(field), eat: head[0] & 8 != 0 },
    })
}

fn key(octets: &[u8]) -> U32Key {
    let be = |at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    let own = |at: usize| i32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    U32Key { mask: be(0), value: be(4), offset: own(8), offset_mask: own(12) }
}

fn hits(octets: &[u8], options: &Found<'_>) -> U32Hits {
    let counts: Vec<u64> =
        octets.chunks_exact(8).map(|eight| u64::from_ne_bytes(std::array::from_fn(|at| eight[at]))).collect();
    let at = |place: usize| counts.get(place).copied().unwrap_or(0);
    let mark = options.get(10).and_then(|octets| numbers(octets).get(2).copied()).unwrap_or(0);
    U32Hits { asked: at(0), matched: at(1), keys: counts.get(2..).unwrap_or_default().to_vec(), mark: mark.into() }
}

fn action(octets: &[u8], names: Names<'_>) -> Result<ActionDump, Unread> {
    let attributes = read(octets);
    let kind = attributes.text(TCA_ACT_KIND).ok_or(Unread::Odd("an action"))?;
    let options = attributes.nest(TCA_ACT_OPTIONS);
    let odd = || Unread::Odd("an action's options");
    let general = numbers(options.get(2).ok_or_else(odd)?);
    let [index, _, decision, refs, binds, own @ ..] = general.as_slice() else { return Err(odd()) };
    let control = control(*decision);
    let act = match (kind, own) {
        ("gact", _) => Act::Gact(Gact { control, random: None }),
        ("mirred", [how, device, ..]) => Act::Mirred(Mirred {
            to: names(*device).unwrap_or_else(|| "*".to_owned()),
            device: *device,
            copy: matches!(how, 2 | 4),
            arrives: matches!(how, 3 | 4),
            control,
        }),
        _ => return Err(Unread::Kind(format!("the action {kind}"))),
    };
    let stats = counted(&attributes.nest(TCA_ACT_STATS));
    let ages: Vec<u64> = options
        .get(1)
        .unwrap_or_default()
        .chunks_exact(8)
        .map(|eight| u64::from_ne_bytes(std::array::from_fn(|at| eight[at])))
        .collect();
    let age = |place: usize| ages.get(place).copied().unwrap_or(0) * TICK;
    Ok(ActionDump {
        action: Action {
            index: *index,
            cookie: attributes.get(TCA_ACT_COOKIE).unwrap_or_default().to_vec(),
            ..Action::from(act)
        },
        bytes: stats.bytes,
        packets: stats.packets,
        drops: stats.drops,
        overlimits: stats.overlimits,
        binds: *binds,
        refs: *refs,
        counted_old: false,
        made_old: false,
        installed: age(0),
        used: age(1),
        first_used: Some(age(3)).filter(|age| *age > 0),
        ctinfo: Default::default(),
    })
}

const fn control(number: u32) -> Control {
    match (number >> 28, number) {
        (_, 1) => Control::Reclassify,
        (_, 2) => Control::Drop,
        (_, 3) => Control::Pipe,
        (_, 4) => Control::Stolen,
        (_, 8) => Control::Trap,
        (_, u32::MAX) => Control::Continue,
        (1, by) => Control::Jump(by & 0x0fff_ffff),
        (2, chain) => Control::Goto(chain & 0x0fff_ffff),
        _ => Control::Pass,
    }
}
