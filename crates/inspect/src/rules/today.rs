//! C3, and R2 again: rules by shape (short acknowledgements, all of UDP) that today's packets do not have any
//! more.

use super::context::RuleContext;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::reading::{PolicyModel, Step};
use crate::sets::bdd::TooLarge;
use crate::walk::ways::reads_connmarks;
use tidegate_gateway::EgressPath;
use tidegate_packet::Handle;
use tidegate_packet::header::proto;
use tidegate_packet::header::tcp_flags::ACK;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, NetfilterRule as NfRule, NfCommand, NfOp};
use tidegate_policy::{ClassParams, FilterParams, Op, U32Key};

/// An acknowledgement with timestamps (RFC 7323), and with two SACK blocks besides (RFC 2018), as they are
/// sent during loss.
const PLAIN: u16 = 52;
const LONG: u16 = 72;
const DOWNLOAD: &str = "tcp 192.168.1.10:40000 > 198.51.100.7:443 ack";
/// The first segment of a connection.
const FIRST: &str = "tcp 192.168.1.10:40000 > 198.51.100.7:443 syn";

/// What the shapes that rules ask for leave out, or take in.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let devices: Vec<String> = context.reading.shaped().into_iter().map(str::to_owned).collect();
    let mut found = Vec::new();
    for device in &devices {
        found.extend(long_acknowledgements(context, device));
        found.extend(data_too(context, device));
        found.extend(all_of_udp(context, device));
    }
    for at in 0..context.reading.filters.len() {
        found.extend(anything_short(context, at));
        found.extend(any_length(context, at));
    }
    Ok(found)
}

/// The class that a packet of these words takes on its way out by a device.
fn class_of(context: &mut RuleContext<'_>, words: &str, device: &str) -> Option<(Handle, String)> {
    let packet = Packet { to: Some(device.to_owned()), ..Packet::parse(words).ok()? };
    let way = context.send_by(&packet, device, EgressPath::Forwarded(None))?;
    let id = context.prober.device(device)?;
    Some((way.stop_at(id)?.leaf_class()?, packet.to_string()))
}

/// The rules that were put into chains, with their commands.
fn rules(reading: &PolicyModel) -> impl Iterator<Item = (&NfRule, &Step)> {
    reading.ops.iter().enumerate().filter_map(|(at, op)| match op {
        Op::Netfilter(NfOp {
            command: NfCommand::Append(_, rule) | NfCommand::Insert(_, _, rule), ..
        }) => Some((rule, reading.step_of(at)?)),
        _ => None,
    })
}

/// Acknowledgements recognised by their length, which leaves out those with SACK blocks.
fn long_acknowledgements(context: &mut RuleContext<'_>, device: &str) -> Option<Finding> {
    let reading = context.reading;
    let is_ack = |rule: &NfRule| {
        rule.matches
            .iter()
            .any(|m| !m.not && matches!(m.what, Condition::TcpFlags(mask, ACK) if mask & ACK != 0))
    };
    let length = |rule: &NfRule| {
        rule.matches.iter().find_map(|m| match m.what {
            Condition::Length(low, high) if !m.not && low <= PLAIN && (PLAIN..LONG).contains(&high) => {
                Some(high)
            }
            _ => None,
        })
    };
    let (step, high) =
        rules(reading).find_map(|(rule, step)| Some((step, length(rule).filter(|_| is_ack(rule))?)))?;
    let (plain, _) = class_of(context, &format!("{DOWNLOAD} len {PLAIN}"), device)?;
    let (long, packet) = class_of(context, &format!("{DOWNLOAD} len {LONG}"), device)?;
    let word =
        step.words.iter().find(|word| word.text.ends_with(&high.to_string()) && word.text.contains(':'));
    (plain != long).then(|| Finding {
        rule: Rule::Shapes,
        level: Level::Warning,
        place: word.and_then(|word| word.place.clone()).or_else(|| step.place.clone()),
        what: format!("acknowledgements of more than {high} bytes are not taken for such"),
        because: format!(
            "with timestamps and two SACK blocks they have {LONG}: just while packets are lost, they wait \
            in {long} instead of {plain}"
        ),
        witness: Some(Witness::Packet { packet, went: long.to_string() }),
        fix: Some(Fix { what: "take up to 100 bytes: --length 40:100".into(), edits: Vec::new() }),
    })
}

/// A rule for the ACK flag whose class takes full segments as well: all of TCP but the first segment of a
/// connection carries the flag (RFC 9293, 3.4).
fn data_too(context: &mut RuleContext<'_>, device: &str) -> Option<Finding> {
    let reading = context.reading;
    let (data, packet) = class_of(context, &format!("{DOWNLOAD} len 1500"), device)?;
    let (first, _) = class_of(context, &format!("{FIRST} len 60"), device)?;
    let class = reading.class(device, data).filter(|_| data != first)?;
    let leading = reading.rules_to(class);
    let is_bare = |rule: &NfRule| {
        let flags = |m: &Condition| matches!(m, Condition::TcpFlags(mask, ACK) if mask & ACK != 0);
        rule.matches.iter().any(|m| !m.not && flags(&m.what))
            && rule.matches.iter().all(|m| flags(&m.what) || is_general(&m.what))
    };
    let (_, step) = rules(reading).find(|(rule, _)| is_bare(rule) && leading.contains(rule))?;
    Some(takes_data(step, packet, data, "-m length --length 40:100"))
}

/// What holds for all packets of a device alike.
fn is_general(what: &Condition) -> bool {
    matches!(
        what,
        Condition::Protocol(_)
            | Condition::In(_)
            | Condition::Out(_)
            | Condition::Comment(_)
            | Condition::Version6(_)
    )
}

/// The same of a filter of u32.
fn any_length(context: &mut RuleContext<'_>, at: usize) -> Option<Finding> {
    let reading = context.reading;
    let dump: &FilterDump = &reading.filters[at];
    let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { return None };
    // TCP, and of the flags' byte ACK, behind a header of 20 bytes.
    let is_tcp = |key: &U32Key| key.offset == 8 && key.mask == 0x00ff_0000 && key.value == 0x0006_0000;
    let is_ack = |key: &U32Key| {
        key.offset == 32 && key.offset_mask == 0 && key.mask & !0x00ff_0000 == 0 && key.value == 0x0010_0000
    };
    if !u32.keys.iter().any(is_ack) || !u32.keys.iter().all(|key| is_ack(key) || is_tcp(key)) {
        return None;
    }
    let step = context.step_of_filter(at)?;
    let (data, packet) = class_of(context, &format!("{DOWNLOAD} len 1500"), &dump.dev)?;
    let (first, _) = class_of(context, &format!("{FIRST} len 60"), &dump.dev)?;
    (u32.classid == Some(data) && data != first)
        .then(|| takes_data(step, packet, data, "match u16 0x0000 0xff80 at 2, below 128 bytes"))
}

fn takes_data(step: &Step, packet: String, class: Handle, fix: &str) -> Finding {
    Finding {
        rule: Rule::Shapes,
        level: Level::Note,
        place: step.place.clone(),
        what: format!(
            "the ACK flag alone does not tell acknowledgements from data: {class} takes uploads, too"
        ),
        because: "every segment of a connection but its first carries the flag (RFC 9293), full ones as well"
            .into(),
        witness: Some(Witness::Packet { packet, went: class.to_string() }),
        fix: Some(Fix {
            what: format!("if only acknowledgements are meant, match their length too ({fix})"),
            edits: Vec::new(),
        }),
    }
}

/// All of UDP before all of TCP: QUIC is UDP.
fn all_of_udp(context: &mut RuleContext<'_>, device: &str) -> Option<Finding> {
    let reading = context.reading;
    let (udp, packet) = class_of(context, "udp 192.168.1.10:40000 > 198.51.100.7:443 len 1280", device)?;
    let (tcp, _) = class_of(context, "tcp 192.168.1.10:40000 > 198.51.100.7:443 ack len 1500", device)?;
    // What it sends once it is answered may go elsewhere.
    let later = class_of(context, "udp 192.168.1.10:40000 > 198.51.100.7:443 len 1280 established", device);
    if later.is_some_and(|(later, _)| later != udp) {
        return None;
    }
    let prio = |id: Handle| match &reading.class(device, id)?.params {
        ClassParams::Htb(htb) => Some(htb.prio),
        _ => None,
    };
    if udp == tcp || prio(udp)? >= prio(tcp)? {
        return None;
    }
    let named = |rule: &NfRule| rule.matches.iter().any(|m| matches_ports(&m.what));
    let udp_only =
        |rule: &NfRule| rule.matches.iter().any(|m| !m.not && m.what == Condition::Protocol(proto::UDP));
    let class = reading.class(device, udp)?;
    let leading = reading.rules_to(class);
    let (_, step) =
        rules(reading).find(|(rule, _)| udp_only(rule) && !named(rule) && leading.contains(rule))?;
    Some(Finding {
        rule: Rule::Intent,
        level: Level::Warning,
        place: step.place.clone(),
        what: format!("all of UDP goes to {udp}, before what is carried by TCP"),
        because: format!(
            "browsers carry the web over UDP today (QUIC, RFC 9000): its uploads wait in {udp} with the \
            calls, and TCP's in {tcp} behind them"
        ),
        witness: Some(Witness::Packet { packet, went: udp.to_string() }),
        fix: Some(Fix {
            what: match reads_connmarks(reading) {
                // A reply would give the connection its mark all the same.
                true => "leave QUIC out, in both directions: neither --dport 443 nor --sport 443",
                false => "leave QUIC out: ! --dport 443",
            }
            .into(),
            edits: Vec::new(),
        }),
    })
}

fn matches_ports(what: &Condition) -> bool {
    matches!(
        what,
        Condition::SourcePort(_)
            | Condition::DestinationPort(_)
            | Condition::SourcePorts(_)
            | Condition::DestinationPorts(_)
            | Condition::Ports(_)
            | Condition::Length(..)
            | Condition::Source(..)
            | Condition::Destination(..)
            | Condition::Dscp(_)
            | Condition::Tos(..)
    )
}

/// A filter of u32 for short TCP packets that does not ask for the ACK flag alone: the first packet of every
/// connection fits too.
fn anything_short(context: &mut RuleContext<'_>, at: usize) -> Option<Finding> {
    let reading = context.reading;
    let dump: &FilterDump = &reading.filters[at];
    let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { return None };
    let has = |offset: i32, mask: u32, value: u32| {
        u32.keys.iter().any(|key: &U32Key| {
            key.offset == offset
                && key.offset_mask == 0
                && key.mask & mask == mask
                && key.value & mask == value
        })
    };
    let flags = u32.keys.iter().any(|key| key.offset == 32 || key.offset_mask != 0 && key.offset == 12);
    // TCP, and a total length whose high bits are none.
    if !has(8, 0x00ff_0000, 0x0006_0000) || !has(0, 0x0000_ff80, 0) || flags {
        return None;
    }
    let step = context.step_of_filter(at)?;
    let (class, packet) =
        class_of(context, "tcp 192.168.1.10:40000 > 198.51.100.7:22 syn len 60", &dump.dev)?;
    (Some(class) == u32.classid).then(|| Finding {
        rule: Rule::Shapes,
        level: Level::Note,
        place: step.place.clone(),
        what: "the filter takes every short TCP packet for an acknowledgement".into(),
        because: "the flags are not matched: connections are opened, and short data sent, in that class too"
            .into(),
        witness: Some(Witness::Packet { packet, went: class.to_string() }),
        fix: Some(Fix { what: "match ACK alone: match u8 0x10 0xff at 33".into(), edits: Vec::new() }),
    })
}
