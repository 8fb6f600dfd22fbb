//! Actions: each a structure that begins alike, and attributes beside it.

use super::message::{Names, Unread, counted, numbers};
use super::rate::{SPEC, rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_packet::Rate;
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{
    Act, Action, CardCounts, Connmark, Control, Csum, Ct, CtNat, Ctinfo, CtinfoCounts, Gact, Mirred, Nat, Only,
    PacketType, Pedit, PeditAt, PeditHeader, PeditKey, Police, RandomGact, Sample, Simple, Skbedit, Skbmod, Ticks,
    Vlan, VlanHow, VlanTag,
};
use tidegate_sys::attribute::{Found, read};
use tidegate_sys::numbers::{
    TCA_ACT_COOKIE, TCA_ACT_FLAGS, TCA_ACT_HW_STATS, TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_ACT_STATS,
};

/// Nanoseconds of a clock tick that actions tell their ages in (hundredths of a second).
const TICK: u64 = 10_000_000;
/// Octets of how most actions' structures begin.
const GENERAL: usize = 20;

/// A list of actions.
pub(super) fn actions(bytes: &[u8], names: Names<'_>) -> Result<Vec<ActionDump>, Unread> {
    read(bytes).all().map(|(_, bytes)| action(bytes, names)).collect()
}

/// A policer that was written without `action`.
pub(super) fn old_policer(bytes: &[u8]) -> Result<ActionDump, Unread> {
    let options = read(bytes);
    let (head, police) = police(&options).ok_or(Unread::Odd("a policer"))?;
    let action = Action { index: head.index, old_style: true, ..Action::from(Act::Police(police)) };
    Ok(dump(action, &head, &Found::default(), &options, 6))
}

/// Number, decision and counts of who has it.
struct Head {
    index: u32,
    control: Control,
    refs: u32,
    binds: u32,
}

fn head(bytes: &[u8]) -> Option<Head> {
    match numbers(bytes.get(..GENERAL)?).as_slice() {
        [index, _, decision, refs, binds] => {
            Some(Head { index: *index, control: control(*decision), refs: *refs, binds: *binds })
        }
        _ => None,
    }
}

/// The kinds, with the attributes of their structures and of their ages.
const KINDS: [(&str, u16, u16); 14] = [
    ("gact", 2, 1),
    ("mirred", 2, 1),
    ("skbedit", 2, 1),
    ("connmark", 1, 2),
    ("ctinfo", 3, 2),
    ("ct", 1, 2),
    ("simple", 2, 1),
    ("sample", 2, 1),
    ("nat", 1, 2),
    ("pedit", 4, 1),
    ("csum", 1, 2),
    ("skbmod", 2, 1),
    ("vlan", 2, 1),
    ("police", 1, 6),
];

fn action(bytes: &[u8], names: Names<'_>) -> Result<ActionDump, Unread> {
    let attributes = read(bytes);
    let kind = attributes.text(TCA_ACT_KIND).ok_or(Unread::Odd("an action"))?;
    let Some((_, structure, ages)) = KINDS.into_iter().find(|(known, ..)| *known == kind) else {
        return Err(Unread::Kind(format!("the action {kind}")));
    };
    let odd = || Unread::Odd("an action's options");
    let options = attributes.nest(TCA_ACT_OPTIONS);
    let (head, act) = if kind == "police" {
        let (head, police) = police(&options).ok_or_else(odd)?;
        (head, Act::Police(police))
    } else {
        // Words to rewrite stand in one of two places.
        let bytes = options.get(structure).or(options.get(2)).ok_or_else(odd)?;
        let head = head(bytes).ok_or_else(odd)?;
        let act = act(kind, &head, bytes.get(GENERAL..).unwrap_or_default(), &options, names).ok_or_else(odd)?;
        (head, act)
    };
    let mut action = Action { index: head.index, ..Action::from(act) };
    beside(&mut action, &attributes);
    Ok(dump(action, &head, &attributes, &options, ages))
}

/// What any action may have beside its own.
fn beside(action: &mut Action, attributes: &Found<'_>) {
    let first = |number: u16| attributes.get(number).map(numbers).unwrap_or_default();
    let flags = first(TCA_ACT_FLAGS).first().copied().unwrap_or(0);
    action.cookie = attributes.get(TCA_ACT_COOKIE).unwrap_or_default().to_vec();
    action.no_percpu = flags & 1 != 0;
    action.only = match flags & 6 {
        2 => Some(Only::Software),
        4 => Some(Only::Card),
        _ => None,
    };
    action.card = match first(TCA_ACT_HW_STATS).as_slice() {
        [1, ..] => CardCounts::Immediate,
        [2, ..] => CardCounts::Delayed,
        [0, ..] => CardCounts::Disabled,
        _ => CardCounts::Any,
    };
}

fn dump(action: Action, head: &Head, attributes: &Found<'_>, options: &Found<'_>, ages: u16) -> ActionDump {
    let stats = counted(&attributes.nest(TCA_ACT_STATS));
    let ages: Vec<u64> = options
        .get(ages)
        .unwrap_or_default()
        .chunks_exact(8)
        .map(|eight| u64::from_ne_bytes(std::array::from_fn(|at| eight[at])))
        .collect();
    let age = |place: usize| ages.get(place).copied().unwrap_or(0).saturating_mul(TICK);
    let ctinfo = match action.act {
        Act::Ctinfo(_) => CtinfoCounts {
            dscp_set: options.u64(8).unwrap_or(0),
            dscp_failed: options.u64(9).unwrap_or(0),
            mark_set: options.u64(10).unwrap_or(0),
        },
        _ => CtinfoCounts::default(),
    };
    ActionDump {
        action,
        bytes: stats.bytes,
        packets: stats.packets,
        drops: stats.drops,
        overlimits: stats.overlimits,
        binds: head.binds,
        refs: head.refs,
        counted_old: false,
        made_old: false,
        installed: age(0),
        used: age(1),
        first_used: Some(age(3)).filter(|age| *age > 0),
        ctinfo,
    }
}

fn act(kind: &str, head: &Head, own: &[u8], options: &Found<'_>, names: Names<'_>) -> Option<Act> {
    let control = head.control;
    Some(match kind {
        "gact" => Act::Gact(Gact { control, random: options.get(3).and_then(random) }),
        "mirred" => {
            let words = numbers(own);
            let (how, device) = (*words.first()?, *words.get(1)?);
            Act::Mirred(Mirred {
                to: names(device).unwrap_or_else(|| "*".to_owned()),
                device,
                copy: matches!(how, 2 | 4),
                arrives: matches!(how, 3 | 4),
                control,
            })
        }
        "skbedit" => Act::Skbedit(skbedit(control, options)),
        "connmark" => Act::Connmark(Connmark { zone: u16::from_ne_bytes(own.get(..2)?.try_into().ok()?), control }),
        "ctinfo" => Act::Ctinfo(Ctinfo {
            zone: options.u16(4).unwrap_or(0),
            dscp: options.u32(5).map(|mask| (mask, options.u32(6).unwrap_or(0))),
            mark: options.u32(7),
            control,
        }),
        "ct" => Act::Ct(ct(control, options)?),
        "simple" => Act::Simple(Simple { text: options.text(3).map(str::to_owned), control }),
        "sample" => {
            Act::Sample(Sample { rate: options.u32(3), group: options.u32(5), octets: options.u32(4), control })
        }
        "nat" => Act::Nat(nat(control, own)?),
        "pedit" => Act::Pedit(pedit(control, own, options)?),
        "csum" => Act::Csum(Csum { sums: *numbers(own).first()?, control }),
        "skbmod" => Act::Skbmod(skbmod(control, own, options)?),
        _ => Act::Vlan(Vlan { how: vlan(*numbers(own).first()?, options)?, control }),
    })
}

fn random(bytes: &[u8]) -> Option<RandomGact> {
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let decision = *numbers(bytes.get(4..)?).first()?;
    match half(0)? {
        0 => None,
        how => Some(RandomGact { drawn: how == 1, control: control(decision), one_in: half(2)? }),
    }
}

fn skbedit(control: Control, options: &Found<'_>) -> Skbedit {
    const TYPES: [PacketType; 4] =
        [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
    Skbedit {
        mark: options.u32(5).map(|mark| (mark, options.u32(8))),
        priority: options.u32(3),
        queue: options.u16(4),
        packet_type: options.u16(7).and_then(|number| TYPES.get(usize::from(number)).copied()),
        inherit_dsfield: options.u64(9).unwrap_or(0) & 0x20 != 0,
        control,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)))).ok()
}

fn ct(control: Control, options: &Found<'_>) -> Option<Ct> {
    let how = options.u16(3).unwrap_or(0);
    let of = |number: u16| options.get(number).and_then(address);
    let label = |number: u16| options.get(number).and_then(|all| Some(u128::from_be_bytes(all.try_into().ok()?)));
    let port = |number: u16| options.get(number).and_then(|two| Some(u16::from_be_bytes(two.try_into().ok()?)));
    let low = of(9).or(of(11));
    let high = of(10).or(of(12)).or(low);
    let nat = match (how & 8 != 0, low, high) {
        (false, ..) => None,
        (true, Some(low), Some(high)) => {
            let ports = port(13).map(|from| (from, port(14).unwrap_or(from)));
            Some(CtNat::New { source: how & 16 != 0, addresses: (low, high), ports })
        }
        (true, ..) => Some(CtNat::Known),
    };
    Some(Ct {
        clear: how & 4 != 0,
        commit: how & 1 != 0,
        force: how & 2 != 0,
        mark: options.u32(5).map(|mark| (mark, options.u32(6).unwrap_or(u32::MAX))),
        nat,
        zone: options.u16(4),
        label: label(7).map(|value| (value, label(8).unwrap_or(u128::MAX))),
        control,
    })
}

fn nat(control: Control, own: &[u8]) -> Option<Nat> {
    let four = |at: usize| <[u8; 4]>::try_from(own.get(at..at + 4)?).ok();
    Some(Nat {
        egress: *numbers(own).get(3)? & 1 != 0,
        old: Ipv4Addr::from(four(0)?),
        new: Ipv4Addr::from(four(4)?),
        mask: u32::from_be_bytes(four(8)?),
        control,
    })
}

fn pedit(control: Control, own: &[u8], options: &Found<'_>) -> Option<Pedit> {
    let (head, keys) = own.split_at_checked(4)?;
    let named = options.nest(5);
    let mut named = named.all().map(|(_, bytes)| read(bytes));
    let mut all = Vec::new();
    for bytes in keys.chunks_exact(24).take(head[0].into()) {
        let be = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let words = numbers(bytes);
        let (header, add) = match named.next() {
            Some(entry) => (pedit_header(entry.u16(1).unwrap_or(0))?, entry.u16(2) == Some(1)),
            None => (PeditHeader::Network, false),
        };
        let at = PeditAt { offset: words[3] as i32, mask: words[4], shift: words[5] };
        let moved = at.mask != 0;
        let key = PeditKey { header, add, value: be(4), mask: be(0), offset: words[2] as i32, at: moved.then_some(at) };
        all.push(key);
    }
    Some(Pedit { keys: all, control })
}

const fn pedit_header(number: u16) -> Option<PeditHeader> {
    match number {
        0 => Some(PeditHeader::Network),
        1 => Some(PeditHeader::Ethernet),
        2 => Some(PeditHeader::Ipv4),
        3 => Some(PeditHeader::Ipv6),
        4 => Some(PeditHeader::Tcp),
        5 => Some(PeditHeader::Udp),
        _ => None,
    }
}

fn skbmod(control: Control, own: &[u8], options: &Found<'_>) -> Option<Skbmod> {
    let flags = *numbers(own.get(4..)?).first()?;
    let link = |number: u16| options.get(number).and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    Some(Skbmod {
        destination: link(3),
        source: link(4),
        ethertype: options.u16(5),
        swap: flags & 8 != 0,
        ecn: flags & 16 != 0,
        control,
    })
}

fn vlan(how: u32, options: &Found<'_>) -> Option<VlanHow> {
    let tag = VlanTag {
        id: options.u16(3).unwrap_or(0),
        protocol: options.u16(4).map_or(VlanTag::DOT1Q, u16::from_be),
        priority: options.u8(6),
    };
    match how {
        1 => Some(VlanHow::Pop),
        2 => Some(VlanHow::Push(tag)),
        3 => Some(VlanHow::Modify(tag)),
        _ => None,
    }
}

/// Octets of a policer's numbers before its rates (`tc_police`).
const POLICE_RATES: usize = 20;

fn police(options: &Found<'_>) -> Option<(Head, Police)> {
    let bytes = options.get(1)?;
    let words = numbers(bytes);
    let ends = numbers(bytes.get(POLICE_RATES + 2 * SPEC..)?);
    let of = |at: usize, wide: Option<u64>| rate(bytes.get(at..)?, wide).filter(|spec| spec.rate.0 > 0);
    let exceed = control(*words.get(1)?);
    let head = Head { index: *words.first()?, control: exceed, refs: *ends.first()?, binds: *ends.get(1)? };
    let police = Police {
        rate: of(POLICE_RATES, options.u64(8)),
        burst: Ticks(*words.get(3)?),
        mtu: *words.get(4)?,
        peak: of(POLICE_RATES + SPEC, options.u64(9)),
        average: options.u32(4).map(|rate| Rate(rate.into())),
        packets: options.u64(10).unwrap_or(0),
        packets_burst: options.u64(11).unwrap_or(0),
        exceed,
        conform: options.u32(5).map(control),
    };
    Some((head, police))
}

const fn control(number: u32) -> Control {
    Control::of_number(number as i32)
}
