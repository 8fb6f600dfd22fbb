//! The rules of netfilter that a packet met.

use super::acts::Carried;
use super::{ExplainStep, Scene, StepOutcome};
use crate::bytes::protocol_name;
use crate::packet::{CODE_POINTS, Packet, has_ports, is_icmp, state_name};
use crate::probe::PacketEntry;
use crate::reading::PolicyModel;
use crate::words::count;
use tidegate_classify::netfilter::{CarriedHeader, CountedRule, Known, RuleTrace};
use tidegate_gateway::{EgressPath, Gateway, tos_priority};
use tidegate_packet::header::{ethertype, proto, tcp_flags};
use tidegate_packet::{Addrs, Dissector, FlowKeys, Handle, dissect};
use tidegate_policy::netfilter::{Condition, Family, Hook, Match, NetfilterRule, NetfilterTarget};
use tidegate_syntax::{iptables, nft};

/// A scene for each chain at a hook, in the order in which the packet met them, and one for the routing
/// between.
pub(super) fn scenes(
    reading: &PolicyModel,
    gateway: &Gateway,
    seen: &[RuleTrace],
    packet: &Packet,
    course: PacketEntry,
) -> Vec<Scene> {
    let mut scenes: Vec<Scene> = Vec::new();
    let sent = matches!(course, PacketEntry::Leaves(_, EgressPath::Local));
    if sent && packet.ethertype == ethertype::IPV4 && tos_priority(packet.dsfield) != 0 {
        scenes.push(own_tos(packet.dsfield));
    }
    let mut routed = !forwarded(course) || packet.ethertype != ethertype::IPV4;
    for met in seen {
        if !routed && met.hook != Some(Hook::Prerouting) {
            scenes.push(routing(met.before.dsfield));
            routed = true;
        }
        let title = title(met);
        let Some(line) = line(reading, gateway, met, packet.length) else { continue };
        match scenes.last_mut().filter(|scene| scene.title == title) {
            Some(scene) => scene.lines.push(line),
            None => scenes.push(Scene { title, lines: vec![line] }),
        }
    }
    if !routed {
        scenes.push(routing(seen.last().map_or(packet.dsfield, |met| met.after.dsfield)));
    }
    scenes
}

/// What a packet carries when it comes to the device it leaves by, behind routing and netfilter.
pub(super) fn carry(seen: &[RuleTrace], packet: &Packet, course: PacketEntry, carried: &Carried) {
    if forwarded(course) && packet.ethertype == ethertype::IPV4 {
        let before = seen.iter().rev().find(|met| met.hook == Some(Hook::Prerouting));
        carried.priority.set(tos_priority(before.map_or(packet.dsfield, |met| met.after.dsfield)));
    }
    if let Some(last) = seen.last() {
        carried.mark.set(last.after.mark.0);
        last.after.connmark.into_iter().for_each(|mark| carried.connmark.set(mark));
    }
    if let Some(last) = seen.last().filter(|met| met.hook != Some(Hook::Prerouting)) {
        carried.priority.set(last.after.priority);
    }
}

fn forwarded(course: PacketEntry) -> bool {
    matches!(course, PacketEntry::Through(..) | PacketEntry::Leaves(_, EgressPath::Forwarded(_)))
}

/// What routing does to IPv4: the TOS bits give the priority.
fn routing(dsfield: u8) -> Scene {
    let priority = tos_priority(dsfield);
    let why = format!("TOS {dsfield:#04x} & 0x18 = {:#04x}: priority {priority}", dsfield & 0x18);
    let line = ExplainStep {
        what: "priority from the TOS bits".into(),
        outcome: StepOutcome::Note,
        why: vec![why],
        place: None,
    };
    Scene { title: "routing".into(), lines: vec![line] }
}

/// Who wrote the TOS byte of a packet of the machine's own is not known: a program that does by IP_TOS gives
/// its packets a priority with it (6.1 and 7.2 were asked).
fn own_tos(dsfield: u8) -> Scene {
    let line = ExplainStep {
        what: format!(
            "priority 0 is assumed; Linux gives packets priority {} whose program sets this TOS byte (IP_TOS)",
            tos_priority(dsfield)
        ),
        outcome: StepOutcome::Note,
        why: Vec::new(),
        place: None,
    };
    Scene { title: "sent by a program of this machine".into(), lines: vec![line] }
}

fn title(met: &RuleTrace) -> String {
    let family = match met.family {
        Family::Ipv4 => "",
        Family::Ipv6 => "IPv6 ",
        Family::Inet => "inet ",
    };
    let hook = met.hook.map_or("", Hook::name);
    let devices = match (met.input.as_str(), met.output.as_str()) {
        ("", "") => String::new(),
        ("", out) => format!(", out {out}"),
        (inward, "") => format!(", in {inward}"),
        (inward, out) => format!(", in {inward} out {out}"),
    };
    format!("netfilter {hook}{devices}: {family}table {}", met.table)
}

/// `None`: the end of a chain that accepts, which needs no line.
fn line(reading: &PolicyModel, gateway: &Gateway, met: &RuleTrace, length: u16) -> Option<ExplainStep> {
    let table =
        gateway.all_tables().iter().find(|table| table.family() == met.family && table.name() == met.table);
    let chain = table.and_then(|table| table.chains().iter().find(|chain| chain.name == met.chain));
    let chain = chain?;
    let Some(at) = met.rule else {
        let drops = chain.policy == Some(false);
        let what = format!("{}: policy DROP at its end", met.chain);
        let why = vec!["it is dropped".to_owned()];
        return drops.then_some(ExplainStep { what, outcome: StepOutcome::Met, why, place: None });
    };
    let CountedRule { rule, .. } = chain.rules.get(at)?;
    let v6 = met.before.head.ethertype() == ethertype::IPV6;
    let same_before = chain.rules[..at].iter().filter(|other| other.rule == *rule).count();
    let maker = reading.maker_of_rule((met.family, &met.table, &met.chain), rule, same_before);
    let place = maker.and_then(|op| reading.step_of(op)).and_then(|step| step.place.clone());
    let made_by_nft = table.is_some_and(|table| table.is_free());
    let words = |rule: &NetfilterRule| match made_by_nft {
        true => nft::print_rule(rule, met.family, None),
        false => iptables::print_rule(rule, v6).trim().to_owned(),
    };
    let what = format!("{}: {}", met.chain, words(rule));
    Some(match met.failed.and_then(|failed| rule.matches.get(failed)) {
        Some(condition) => ExplainStep {
            what,
            outcome: StepOutcome::Passed,
            why: vec![failing(rule, condition, met, length, &words)],
            place,
        },
        None => ExplainStep { what, outcome: StepOutcome::Met, why: effects(rule, met), place },
    })
}

/// Why a condition of a rule does not hold; `words` are the tool's for a rule.
fn failing(
    rule: &NetfilterRule,
    condition: &Match,
    met: &RuleTrace,
    length: u16,
    words: &dyn Fn(&NetfilterRule) -> String,
) -> String {
    let of = |matches: Vec<Match>| words(&NetfilterRule { matches, ..NetfilterRule::default() });
    // How ports are written depends on the rule's protocol.
    let protocol =
        rule.matches.iter().find(|other| matches!(other.what, Condition::Protocol(_)) && *other != condition);
    // nft has a word for the DSCP of each family.
    let version = rule.matches.iter().find(|other| {
        matches!(other.what, Condition::Version6(_)) && matches!(condition.what, Condition::Dscp(_))
    });
    let with = of(protocol.into_iter().chain(version).chain([condition]).cloned().collect());
    let alone = match protocol.map(|protocol| of(vec![protocol.clone()])) {
        Some(protocol) => with.strip_prefix(protocol.trim()).unwrap_or(&with),
        None => &with,
    };
    let fact = fact(&condition.what, met, length);
    match alone.trim() {
        // Each family's words imply it.
        "" => format!("it is for the other family: {fact}"),
        asked => format!("`{asked}` does not hold: {fact}"),
    }
}

/// The packet's value of the field that a condition tests.
fn fact(what: &Condition, met: &RuleTrace, length: u16) -> String {
    let Known { mark, dsfield, state, connmark, counters, head, .. } = &met.before;
    let (source, destination) = ends(&dissect(head, Dissector::Legacy));
    match what {
        Condition::Protocol(_)
        | Condition::SourcePort(_)
        | Condition::SourcePorts(_)
        | Condition::DestinationPort(_)
        | Condition::DestinationPorts(_)
        | Condition::Ports(_)
        | Condition::TcpFlags(..)
        | Condition::IcmpType(..) => {
            carried_fact(what, &CarriedHeader::seen_by(what, head.network(), met.linux))
        }
        Condition::Source(..) => format!("the source is {source}"),
        Condition::Destination(..) => format!("the destination is {destination}"),
        Condition::In(_) if met.input.is_empty() => "here it is not known by which device it came in".into(),
        Condition::In(_) => format!("it came in by {}", met.input),
        Condition::Out(_) if met.output.is_empty() => {
            "here it is not known yet by which device it leaves".into()
        }
        Condition::Out(_) => format!("it leaves by {}", met.output),
        Condition::Mark(_, u32::MAX) => format!("the mark is {:#x}", mark.0),
        Condition::Mark(_, mask) => format!("the mark is {:#x}, & {mask:#x} = {:#x}", mark.0, mark.0 & mask),
        Condition::Length(..) => format!("the length is {length}"),
        Condition::Dscp(_) => format!("the code point is {}", code_point(*dsfield)),
        Condition::Tos(_, mask) => format!("TOS is {dsfield:#04x}, & {mask:#04x} = {:#04x}", dsfield & mask),
        Condition::Connmark(_, mask) => match connmark {
            Some(mark) => format!("its connection's mark is {mark:#x}, & {mask:#x} = {:#x}", mark & mask),
            None => "it has no connection".into(),
        },
        Condition::Connstate(_) | Condition::State(_) => {
            format!("its state is {}", state_name(*state).to_uppercase())
        }
        Condition::Connbytes(_) => match counters {
            Some((packets, bytes)) => {
                let carried = |way: usize| {
                    format!("{} bytes in {}", bytes[way], count(packets[way] as usize, "packet", "packets"))
                };
                format!("its connection has carried {}, and {} the other way", carried(0), carried(1))
            }
            None => "its connection's bytes are not counted".into(),
        },
        Condition::Version6(_) => format!("it is {}", super::ethertype_name(head.ethertype())),
        Condition::Any(several) => several.first().map_or_else(String::new, |first| fact(first, met, length)),
        Condition::Comment(_) => String::new(),
    }
}

/// The same of the header that it carries.
fn carried_fact(what: &Condition, header: &CarriedHeader) -> String {
    let Some(protocol) = header.protocol else {
        return "what its extension headers lead to is not found".into();
    };
    let named = protocol_name(protocol);
    let missing = |has: bool, what: &str| match has {
        false => format!("{named} has no {what} here"),
        true if header.is_later => format!("a later fragment has no {what}"),
        true => format!("its {what} are not in the packet"),
    };
    match (what, header.ports) {
        (Condition::Protocol(_), _) => format!("the protocol is {named}"),
        (Condition::TcpFlags(mask, _), _) => match header.tcp_flags {
            Some(flags) => flags_fact(flags & mask),
            None => missing(protocol == proto::TCP, "flags of TCP"),
        },
        (Condition::IcmpType(..), _) => match header.icmp {
            Some((kind, code)) => format!("its type is {kind}/{code}"),
            None if is_icmp(protocol) => missing(true, "type and code"),
            None => format!("{named} is not ICMP"),
        },
        (_, None) => missing(has_ports(protocol), "ports"),
        (_, Some((source, destination))) if header.is_later => {
            format!("of a later fragment other bytes are taken for the ports: {source} and {destination}")
        }
        (Condition::SourcePort(_) | Condition::SourcePorts(_), Some((source, _))) => {
            format!("the source port is {source}")
        }
        (Condition::Ports(_), Some((source, destination))) => {
            format!("the ports are {source} and {destination}")
        }
        (_, Some((_, destination))) => format!("the destination port is {destination}"),
    }
}

fn flags_fact(seen: u8) -> String {
    let names = [
        ("SYN", tcp_flags::SYN),
        ("ACK", tcp_flags::ACK),
        ("FIN", tcp_flags::FIN),
        ("RST", tcp_flags::RST),
        ("PSH", tcp_flags::PSH),
        ("URG", tcp_flags::URG),
    ];
    let set: Vec<&str> = names.iter().filter(|(_, bit)| seen & bit != 0).map(|(name, _)| *name).collect();
    if set.is_empty() {
        "none of these flags is set".into()
    } else {
        format!("of these flags {} is set", set.join(","))
    }
}

fn ends(keys: &FlowKeys) -> (String, String) {
    match keys.addrs {
        Addrs::V4(source, destination) => {
            let text = |bytes| core::net::Ipv4Addr::from(bytes).to_string();
            (text(source), text(destination))
        }
        Addrs::V6(source, destination) => {
            let text = |bytes| core::net::Ipv6Addr::from(bytes).to_string();
            (text(source), text(destination))
        }
        Addrs::None => Default::default(),
    }
}

/// `EF (0x2e)`.
fn code_point(dsfield: u8) -> String {
    let dscp = dsfield >> 2;
    match CODE_POINTS.iter().find(|(_, known)| *known == dscp) {
        Some((name, _)) => format!("{name} ({dscp:#04x})"),
        None => format!("{dscp:#04x}"),
    }
}

/// What a rule did.
fn effects(rule: &NetfilterRule, met: &RuleTrace) -> Vec<String> {
    let (before, after) = (&met.before, &met.after);
    let mut lines = Vec::new();
    let mut change = |what: &str, from: String, to: String| {
        if from != to {
            lines.push(format!("{what} {from} → {to}"));
        }
    };
    change("mark", format!("{:#x}", before.mark.0), format!("{:#x}", after.mark.0));
    change("code point", code_point(before.dsfield), code_point(after.dsfield));
    change("priority", priority(before.priority), priority(after.priority));
    let connmark = |known: &Known| known.connmark.map_or("none".into(), |mark| format!("{mark:#x}"));
    change("its connection's mark", connmark(before), connmark(after));
    lines.extend(match &rule.target {
        Some(NetfilterTarget::Accept) => Some("it is accepted, and leaves this table here".to_owned()),
        Some(NetfilterTarget::Drop | NetfilterTarget::Reject(_)) => Some("it is dropped".to_owned()),
        Some(NetfilterTarget::Return) => Some("back to the chain before".to_owned()),
        Some(NetfilterTarget::Jump(chain) | NetfilterTarget::Goto(chain)) => {
            Some(format!("continues in chain {chain}"))
        }
        Some(NetfilterTarget::Translate(how)) => {
            Some(format!("its connection is translated: {}", how.how.name()))
        }
        Some(NetfilterTarget::Notrack(_)) => Some("its connection is not looked up".to_owned()),
        _ if lines.is_empty() => Some("nothing changes".to_owned()),
        _ => None,
    });
    lines
}

pub(super) fn priority(priority: u32) -> String {
    if Handle(priority).major() == 0 { priority.to_string() } else { Handle(priority).to_string() }
}
