//! R2: where today's senders land in a policy that sorts by TOS or DSCP. Many such policies are older than
//! the marks.

use super::context::{RuleContext, hits_in};
use super::making::on_others;
use crate::drive::Bench;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::{ProbeResult, Stop};
use crate::reading::{PolicyModel, SourceLocation};
use crate::sets::bdd::TooLarge;
use crate::walk::RuleKey;
use std::collections::BTreeMap;
use tidegate_gateway::EgressPath;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, Match};
use tidegate_policy::{ClassParams, FilterParams, Kind};

/// A program that marks its packets.
struct Sender {
    /// Its name, and since when.
    name: &'static str,
    /// A packet of his.
    packet: &'static str,
    /// People wait for it; else it is not urgent.
    hurried: bool,
}

/// Today's markings: OpenSSH's release notes 7.8 and 10.1; RFC 8837 (WebRTC), RFC 8325 and RFC 4594 (classes
/// of service), RFC 8622 (LE), Zoom's guide to DSCP marking.
const SENDERS: [Sender; 8] = [
    Sender {
        name: "OpenSSH's keystrokes (AF21, 7.8 to 10.0)",
        packet: "tcp 192.168.1.10:40000 > 198.51.100.7:22 dscp AF21 len 100",
        hurried: true,
    },
    Sender {
        name: "OpenSSH's keystrokes (EF, since 10.1)",
        packet: "tcp 192.168.1.10:40000 > 198.51.100.7:22 dscp EF len 100",
        hurried: true,
    },
    Sender {
        name: "calls (EF, RFC 8837)",
        packet: "udp 192.168.1.10:40000 > 198.51.100.7:50000 dscp EF len 200",
        hurried: true,
    },
    Sender {
        name: "the pictures of calls (AF41, RFC 8837)",
        packet: "udp 192.168.1.10:40000 > 198.51.100.7:50000 dscp AF41 len 1200",
        hurried: true,
    },
    Sender {
        name: "Zoom's sound (DSCP 56)",
        packet: "udp 192.168.1.10:40000 > 198.51.100.7:8801 dscp CS7 len 200",
        hurried: true,
    },
    Sender {
        name: "Zoom's pictures (DSCP 40)",
        packet: "udp 192.168.1.10:40000 > 198.51.100.7:8801 dscp CS5 len 1200",
        hurried: true,
    },
    Sender {
        name: "scp and rsync (CS1, OpenSSH 7.8 to 10.0)",
        packet: "tcp 192.168.1.10:40000 > 198.51.100.7:22 dscp CS1 len 1400",
        hurried: false,
    },
    Sender {
        name: "traffic without urgency (LE, RFC 8622)",
        packet: "tcp 192.168.1.10:40000 > 198.51.100.7:51413 dscp LE len 1400",
        hurried: false,
    },
];

/// A sender whose packets are in the wrong class.
struct Misplaced {
    sender: &'static Sender,
    packet: Packet,
    class: Handle,
    plain: Handle,
    /// Its condition is the whole code point.
    is_exact: bool,
}

/// A condition on the DS field, with its count.
struct Counter {
    place: Option<SourceLocation>,
    packets: u64,
    /// It compares all six bits of a code point.
    is_exact: bool,
}

/// The DSCP's bits of the DS field.
const DSCP: u8 = 0xfc;

/// Where a sender's mark puts its packets, beside those without it.
enum Landed {
    /// In the same class, or in one of no rank.
    Alike,
    /// On the side that the mark means.
    Right,
    /// On the other.
    Wrong(Option<SourceLocation>, Box<Misplaced>),
}

/// Where the packets of today's senders land, by the engine. What several devices do alike is one finding,
/// and so is an order that puts every mark on the wrong side of unmarked packets.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let devices: Vec<String> = context
        .reading
        .qdiscs
        .iter()
        .filter(|q| q.parent == Handle::ROOT && !q.handle.is_none())
        .map(|q| q.dev.clone())
        .collect();
    let mut found: Vec<(Finding, Vec<String>)> = Vec::new();
    for device in devices.iter().filter(|device| reads_ds(context.reading, device)) {
        let mut by_place: BTreeMap<(Option<SourceLocation>, bool), Vec<Misplaced>> = BTreeMap::new();
        let mut any_right = false;
        for sender in &SENDERS {
            match landed(context, device, sender) {
                Landed::Alike => {}
                Landed::Right => any_right = true,
                Landed::Wrong(place, misplaced) => {
                    by_place.entry((place, sender.hurried)).or_default().push(*misplaced);
                }
            }
        }
        let here: Vec<Finding> = if by_place.len() > 1 && !any_right {
            reversed(context.reading, device, by_place).into_iter().collect()
        } else {
            by_place
                .into_iter()
                .filter_map(|((place, _), senders)| finding(context, device, place, senders))
                .collect()
        };
        for finding in here {
            match found.iter_mut().find(|(known, _)| known.what == finding.what) {
                Some((_, alike)) if !alike.contains(device) => alike.push(device.clone()),
                _ => found.push((finding, Vec::new())),
            }
        }
    }
    Ok(found.into_iter().map(on_others).collect())
}

/// Every mark is served on the wrong side: it is the order of the classes that is the other way round.
fn reversed(
    reading: &PolicyModel,
    device: &str,
    by_place: BTreeMap<(Option<SourceLocation>, bool), Vec<Misplaced>>,
) -> Option<Finding> {
    let place = by_place.keys().find_map(|(place, _)| place.clone());
    let all: Vec<Misplaced> = by_place.into_values().flatten().collect();
    let first = all.first()?;
    let place = place.or_else(|| place_of_qdisc(reading, device, first.class));
    let side = |hurried: bool| {
        let mut classes: Vec<String> =
            all.iter().filter(|one| one.sender.hurried == hurried).map(|one| one.class.to_string()).collect();
        classes.sort();
        classes.dedup();
        classes.join(", ")
    };
    let sentences =
        [(side(true), "behind", "people wait for"), (side(false), "before", "people are in no hurry for")];
    let given = sentences.iter().filter(|(classes, ..)| !classes.is_empty());
    let given =
        given.map(|(classes, side, who)| format!("what {who} is served in {classes}, {side} the unmarked"));
    let names: Vec<&str> = all.iter().map(|one| one.sender.name).collect();
    Some(Finding {
        rule: Rule::Intent,
        level: Level::Warning,
        place,
        what: format!(
            "all of today's marks that it classifies are served in reverse order: {}",
            names.join("; ")
        ),
        because: format!("{} ones of {}", given.collect::<Vec<_>>().join(", and "), first.plain),
        witness: Some(Witness::Packet { packet: first.packet.to_string(), went: first.class.to_string() }),
        fix: Some(Fix {
            what: "turn the order round: of HTB's prios, and of bands, the lowest number is served first"
                .into(),
            edits: Vec::new(),
        }),
    })
}

/// Does anything on the way out of a device ask for the DS field?
fn reads_ds(reading: &PolicyModel, device: &str) -> bool {
    let filters = reading.filters.iter().filter(|dump| dump.dev == device).any(|dump| match &dump.entry {
        FilterEntry::Filter { params: FilterParams::U32(u32), .. } => {
            u32.keys.iter().any(|key| key.offset == 0 && key.mask & 0x00ff_0000 != 0)
        }
        _ => false,
    });
    let matches = |what: &Condition| matches!(what, Condition::Dscp(_) | Condition::Tos(..));
    filters || crate::walk::ways::rules(reading).any(|rule| rule.matches.iter().any(|m| matches(&m.what)))
}

/// Where a marked packet is served beside the same packet without a mark.
pub(super) struct BesideUnmarked {
    /// The class of the marked one, where the two part.
    pub(super) class: Handle,
    /// The class of the unmarked one.
    pub(super) plain: Handle,
    /// How late the marked one is served.
    pub(super) rank: u32,
    /// How late the unmarked one is.
    pub(super) usual: u32,
    /// The condition on the DS field that took the marked one.
    pub(super) place: Option<SourceLocation>,
    is_exact: bool,
}

/// How a sender's packets are ranked, and how they would be without a mark.
fn landed(context: &mut RuleContext<'_>, device: &str, sender: &'static Sender) -> Landed {
    ranked(context, device, sender).unwrap_or(Landed::Alike)
}

fn ranked(context: &mut RuleContext<'_>, device: &str, sender: &'static Sender) -> Option<Landed> {
    let packet = Packet { to: Some(device.to_owned()), ..Packet::parse(sender.packet).ok()? };
    let served = beside_unmarked(context, device, &packet)?;
    let BesideUnmarked { class, plain, rank, usual, place, is_exact } = served;
    let wrong = if sender.hurried { rank > usual } else { rank < usual };
    if !wrong {
        return Some(if rank == usual { Landed::Alike } else { Landed::Right });
    }
    if !order_counts(context.reading, device, [class, plain]) {
        return Some(Landed::Alike);
    }
    Some(Landed::Wrong(place, Box::new(Misplaced { sender, packet, class, plain, is_exact })))
}

/// Sends a packet and the same without its mark by a device; `None`: they are not served apart, or in classes
/// without a rank.
pub(super) fn beside_unmarked(
    context: &mut RuleContext<'_>,
    device: &str,
    packet: &Packet,
) -> Option<BesideUnmarked> {
    let plain = Packet { dsfield: 0, ..packet.clone() };
    let unmarked = context.send_by(&plain, device, EgressPath::Forwarded(None))?;
    let before = counters(context, device);
    let marked = context.send_by(packet, device, EgressPath::Forwarded(None))?;
    let after = counters(context, device);
    let (class, plain) = parting(&marked, &unmarked)?;
    let (rank, usual) = (rank(context.reading, device, class)?, rank(context.reading, device, plain)?);
    let by =
        before.iter().zip(after).find(|(before, after)| before.packets != after.packets).map(|(_, by)| by);
    let is_exact = by.as_ref().is_some_and(|by| by.is_exact);
    Some(BesideUnmarked { class, plain, rank, usual, place: by.and_then(|by| by.place), is_exact })
}

/// The classes in which two packets wait in the first qdisc where they part: its leaves, whose priority
/// counts.
fn parting(one: &ProbeResult, other: &ProbeResult) -> Option<(Handle, Handle)> {
    let (one, other) = (one.stops.last()?, other.stops.last()?);
    let (a, b) = one.classes.iter().zip(&other.classes).find(|(a, b)| a != b)?;
    let leaf = |stop: &Stop, class: &Handle| {
        stop.classes.iter().rev().find(|leaf| leaf.qdisc() == class.qdisc()).copied()
    };
    Some((leaf(one, a)?, leaf(other, b)?))
}

/// Leaves that are kept busy at once; of more it is not measured what they leave one another.
const MOST_LEAVES: usize = 64;

/// Does the order in which two leaves of a device are served matter? HTB's priorities decide who borrows:
/// where a leaf gets no less while all others are busy, its priority decides nothing.
pub(super) fn order_counts(reading: &PolicyModel, device: &str, [one, other]: [Handle; 2]) -> bool {
    let is_htb = |class: Handle| reading.class(device, class).is_some_and(|class| class.kind == Kind::Htb);
    if !is_htb(one) || !is_htb(other) {
        return true;
    }
    let mine = |leaf: &ClassDump| leaf.dev == device && leaf.classid.qdisc() == one.qdisc();
    let leaves: Vec<Handle> =
        reading.leaves().filter(|leaf| mine(leaf.class)).map(|leaf| leaf.class.classid).collect();
    if leaves.len() > MOST_LEAVES {
        return false;
    }
    let (mut bench, frame) = (Bench::new(reading), reading.frame(device));
    let mut competes = |class: Handle| {
        let rest: Vec<Handle> = leaves.iter().copied().filter(|leaf| *leaf != class).collect();
        let all = bench.together(device, &leaves, frame)?;
        let apart = bench.together(device, &rest, frame)?.0 + bench.rate(device, class, frame)?.0;
        Some(all.0 < apart * 98 / 100)
    };
    [one, other].into_iter().all(|class| competes(class) == Some(true))
}

/// The counts of all conditions on the DS field.
fn counters(context: &mut RuleContext<'_>, device: &str) -> Vec<Counter> {
    let mut counted = Vec::new();
    let mut list: Option<(Handle, Vec<FilterDump>)> = None;
    for (at, dump) in context.reading.filters.iter().enumerate().filter(|(_, dump)| dump.dev == device) {
        // The filters of one parent are consecutive.
        if list.as_ref().is_none_or(|(parent, _)| *parent != dump.parent) {
            list = Some((dump.parent, context.list(dump)));
        }
        if let Some(packets) = list.as_ref().and_then(|(_, dumps)| hits_in(dumps, dump)) {
            let place = context.step_of_filter(at).and_then(|step| step.place.clone());
            counted.push(Counter { place, packets, is_exact: matches_whole_dscp(dump) });
        }
    }
    let mut rules: Vec<(RuleKey, u64, bool)> = Vec::new();
    for table in context.prober.gateway().all_tables() {
        for chain in table.chains() {
            for (at, rule) in chain.rules.iter().enumerate() {
                let value_of = |m: &Match| match m.what {
                    Condition::Dscp(_) => Some(!m.not),
                    Condition::Tos(_, mask) => Some(!m.not && mask & DSCP == DSCP),
                    _ => None,
                };
                if let Some(is_exact) = rule.rule.matches.iter().find_map(value_of) {
                    let (family, name) = (table.family(), table.name().to_owned());
                    let key = RuleKey { family, table: name, chain: chain.name.clone(), at };
                    rules.push((key, rule.packets, is_exact));
                }
            }
        }
    }
    counted.extend(rules.into_iter().map(|(key, packets, is_exact)| {
        let place = context.step_of_rule(&key).and_then(|step| step.place.clone());
        Counter { place, packets, is_exact }
    }));
    counted
}

/// Does a filter of u32 compare all six bits of the DSCP?
fn matches_whole_dscp(dump: &FilterDump) -> bool {
    let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { return false };
    let whole = u32::from(DSCP) << 16;
    u32.keys.iter().any(|key| key.offset == 0 && key.offset_mask == 0 && key.mask & whole == whole)
}

/// How late a class is served among its siblings, where that is strict: HTB's prio, a band of prio.
pub(super) fn rank(reading: &PolicyModel, device: &str, class: Handle) -> Option<u32> {
    let dump = reading.class(device, class)?;
    match (&dump.params, dump.kind) {
        (ClassParams::Htb(htb), _) => Some(htb.prio),
        (_, Kind::Prio) => Some(u32::from(class.minor())),
        _ => None,
    }
}

/// The command that made the qdisc of a class.
pub(super) fn place_of_qdisc(reading: &PolicyModel, device: &str, class: Handle) -> Option<SourceLocation> {
    let mut here = reading.qdiscs.iter().filter(|qdisc| qdisc.dev == device && !qdisc.handle.is_none());
    let qdisc = here.find(|qdisc| qdisc.handle == class.qdisc())?;
    reading.step_of(reading.maker_of_qdisc(qdisc)?)?.place.clone()
}

fn finding(
    context: &RuleContext<'_>,
    device: &str,
    place: Option<SourceLocation>,
    senders: Vec<Misplaced>,
) -> Option<Finding> {
    let first = senders.first()?;
    let names: Vec<&str> = senders.iter().map(|one| one.sender.name).collect();
    let side = if first.sender.hurried { "behind" } else { "before" };
    let better = if first.sender.hurried { "before" } else { "behind" };
    let mut plain: Vec<String> = senders.iter().map(|one| one.plain.to_string()).collect();
    plain.sort_unstable();
    plain.dedup();
    let plain = plain.join(" and ");
    let remedy = if place.is_none() {
        // No condition: it is the map of priorities.
        format!(
            "the priomap leads them there: a filter by their DSCP leads them to a class served {better} {plain}"
        )
    } else if senders.iter().all(|sender| sender.is_exact) {
        format!("lead them to a class that is served {better} {plain}")
    } else {
        // Which of the DSCPs under its mask is meant only its author knows.
        format!("match all six bits of the DSCP that is meant: the mask {DSCP:#x}")
    };
    let place = place.or_else(|| place_of_qdisc(context.reading, device, first.class));
    Some(Finding {
        rule: Rule::Intent,
        level: Level::Warning,
        place,
        what: format!("modern DSCP markings do not match this class: {}", names.join("; ")),
        because: format!("such packets are served in {}, {side} the unmarked ones of {plain}", first.class),
        witness: Some(Witness::Packet { packet: first.packet.to_string(), went: first.class.to_string() }),
        fix: Some(Fix { what: remedy, edits: Vec::new() }),
    })
}
