//! R7: matches that read another protocol's header than the filter's.

use super::context::{RuleContext, witness};
use crate::bytes::key_words;
use crate::finding::{Edit, Finding, Fix, Level, Rule, Witness};
use crate::reading::{Step, Word};
use crate::sets::bdd::TooLarge;
use crate::walk::list::FIRST_ROOT;
use crate::words::count;
use std::collections::BTreeSet;
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{FilterOp, FilterParams, Op, U32Key};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

/// `match FAMILY FIELD VALUE`, as it was written.
struct WrittenMatch<'a> {
    family: &'a Word,
    field: &'a Word,
    value: &'a Word,
}

/// Matches whose bytes count from the header behind IP's.
const BEHIND: [&str; 3] = ["tcp", "udp", "icmp"];

/// The families of matches, each with its EtherType.
const FAMILIES: [(&str, u16); 2] = [("ip", ethertype::IPV4), ("ip6", ethertype::IPV6)];

/// The fields that both families have: what tc calls them for IPv4 and for IPv6, and whether a value means
/// the same.
const FIELDS: [(&str, &str, bool); 10] = [
    ("tos", "priority", true),
    ("dsfield", "priority", true),
    ("precedence", "priority", true),
    ("protocol", "protocol", true),
    ("dport", "dport", true),
    ("sport", "sport", true),
    ("icmp_type", "icmp_type", false),
    ("icmp_code", "icmp_code", false),
    ("src", "src", false),
    ("dst", "dst", false),
];

/// What becomes of a filter's matches for IPv4 in one for IPv6, in words.
pub(super) fn in_ipv6(step: &Step) -> String {
    let (mut others, mut missing) = (Vec::new(), Vec::new());
    for written in matches(step).iter().filter(|written| written.family.text == "ip") {
        let (field, value) = (written.field.text.as_str(), written.value.text.as_str());
        match FIELDS.iter().find(|(v4, ..)| *v4 == field) {
            Some(("protocol", ..)) if value == "1" => others.push("protocol 58 for ICMP".to_owned()),
            Some((v4, v6, _)) if v4 != v6 => others.push(format!("`{v6}` for `{v4}`")),
            Some((_, _, false)) => others.push(format!("IPv6's own {field}")),
            Some(_) => {}
            None => missing.push(format!("`{field}`")),
        }
    }
    let mut words = "with `match ip6` in the place of `match ip`".to_owned();
    let notes: Vec<String> = others
        .into_iter()
        .chain((!missing.is_empty()).then(|| format!("it has no {}", missing.join(", "))))
        .collect();
    if !notes.is_empty() {
        words.push_str(&format!(" ({})", notes.join("; ")));
    }
    words
}

/// Filters whose matches speak of another header than their protocol's.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let mut found = Vec::new();
    let mut ports: Vec<Finding> = Vec::new();
    for at in 0..context.reading.filters.len() {
        let Some(step) = context.step_of_filter(at) else { continue };
        let protocol = context.reading.filters[at].protocol;
        let matches = matches(step);
        if reads_nothing(&context.reading.filters[at].entry) {
            continue;
        }
        if let Some(finding) = nowhere_next(context, at, step) {
            found.push(finding);
            continue;
        }
        // The tag of a VLAN is no part of the bytes that are compared.
        let tagged = matches!(protocol, ethertype::VLAN | ethertype::QINQ);
        let wrong = matches.iter().find(|written| family(written).is_some_and(|family| family != protocol));
        let wrong = wrong.filter(|_| !tagged);
        match wrong {
            Some(written) if protocol == FilterOp::ALL => found.push(of_all(step, written)),
            Some(written) => found.extend(of_another(context, at, step, written)?),
            None => ports.extend(ports_of_anything(step, &matches)),
        }
    }
    // A policy that does so usually does so throughout: the first finding represents all.
    let more = ports.len().saturating_sub(1);
    if let Some(mut first) = ports.into_iter().next() {
        if more > 0 {
            first.because.push_str(&format!("; {} by ports alone", others_text(more)));
        }
        found.push(first);
    }
    Ok(found)
}

/// Whether no bits are compared at all. `match ip protocol 0 0x00` matches every packet, of any protocol.
fn reads_nothing(entry: &FilterEntry) -> bool {
    let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = entry else { return false };
    u32.keys.iter().all(|key| key.mask == 0)
}

/// `match tcp dst 25` in a preference's root table: no filter before it has set where the header behind IP's
/// begins, so the first bytes of the packet are compared.
fn nowhere_next(context: &RuleContext<'_>, at: usize, step: &Step) -> Option<Finding> {
    let dump = &context.reading.filters[at];
    let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { return None };
    let key = u32.keys.iter().find(|key| key.offset_mask != 0 && key.mask != 0)?;
    // Nothing can link to a root table; a link to another one sets the offset there.
    if u32.table >> 20 < FIRST_ROOT || !is_root(context, dump, u32.table >> 20) {
        return None;
    }
    let byte = key.offset + key.mask.leading_zeros() as i32 / 8;
    let last = key.offset + 3 - key.mask.trailing_zeros() as i32 / 8;
    let keyword = step
        .words
        .windows(3)
        .find(|words| words[0].text == "match" && BEHIND.contains(&words[1].text.as_str()));
    let (name, place) = match keyword {
        Some(words) => (format!("`match {} {}`", words[1].text, words[2].text), words[1].place.clone()),
        None => (format!("a match at nexthdr+{byte}"), None),
    };
    let bytes = if byte == last { format!("byte {byte}") } else { format!("bytes {byte} to {last}") };
    let is_icmp = keyword.is_some_and(|words| words[1].text.starts_with("icmp"));
    let v6 = dump.protocol == ethertype::IPV6;
    let (header, holds) = if v6 { (40, "IPv6 has no extension headers") } else { (20, "IP has no options") };
    let ip = if v6 { "ip6" } else { "ip" };
    let instead = if !is_icmp && last < 4 {
        format!(
            "write `match {ip} protocol 6 0xff` (17 for UDP) with `match {ip} dport` or `match {ip} sport`, \
            which hold where {holds}"
        )
    } else {
        format!("count from the packet's first byte: `at {}`, which holds where {holds}", header + byte)
    };
    let link = if v6 { "" } else { "; or link to a table with `offset at 0 mask 0x0f00 shift 6`" };
    let absolute = U32Key { offset_mask: 0, ..*key };
    Some(Finding {
        rule: Rule::Protocol,
        level: Level::Warning,
        place: place.or_else(|| step.place.clone()),
        what: format!(
            "{name} counts from the packet's first byte: nothing sets the offset of the next header"
        ),
        because: format!(
            "it compares {bytes} of the packet ({}), not the header behind IP's",
            names(dump.protocol, &absolute)
        ),
        witness: Some(Witness::Number(key_words(&absolute, dump.protocol))),
        fix: Some(Fix { what: instead + link, edits: Vec::new() }),
    })
}

/// Whether a table is a preference's own. Others are made with a divisor.
fn is_root(context: &RuleContext<'_>, filter: &FilterDump, number: u32) -> bool {
    let links = |dump: &FilterDump| match &dump.entry {
        FilterEntry::Filter { params: FilterParams::U32(u32), .. } => u32.link == Some(number),
        _ => false,
    };
    !context.reading.filters.iter().any(|dump| dump.dev == filter.dev && links(dump))
}

/// So many other filters match.
fn others_text(more: usize) -> String {
    let filters = count(more, "other filter", "other filters");
    format!("{filters} {}", if more == 1 { "matches" } else { "match" })
}

fn matches(step: &Step) -> Vec<WrittenMatch<'_>> {
    let words = step.words.windows(4);
    words
        .filter(|words| words[0].text == "match")
        .map(|words| WrittenMatch { family: &words[1], field: &words[2], value: &words[3] })
        .collect()
}

fn family(written: &WrittenMatch<'_>) -> Option<u16> {
    FAMILIES.iter().find(|(name, _)| written.family.text == *name).map(|(_, ethertype)| *ethertype)
}

/// A match of one family under a filter of another: it reads that protocol's bytes.
fn of_another(
    context: &mut RuleContext<'_>,
    at: usize,
    step: &Step,
    written: &WrittenMatch<'_>,
) -> Result<Option<Finding>, TooLarge> {
    let dump = &context.reading.filters[at];
    let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { return Ok(None) };
    // tc makes one key of matches that compare the same four bytes.
    let own = keys_of(step, written);
    let bytes = bytes_of(own.as_deref().unwrap_or(&u32.keys));
    let (last, others) = bytes.split_last().unwrap_or((&0, &[]));
    let mut reads: Vec<&str> = bytes.iter().map(|byte| name_of(dump.protocol, *byte)).collect();
    reads.dedup();
    let place = match others {
        [] => format!("byte {last}"),
        [first] => format!("bytes {first} and {last}"),
        [first, ..] => format!("bytes {first} to {last}"),
    };
    let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
    let mut shown = Some(Witness::Number(format!("{place}: {}", reads.join(", "))));
    if let Some(candidate) = context.reached.pick(context.reading, &seen.matched)? {
        let before = context.hits(dump);
        let way = context.send(&candidate);
        if context.hits(dump) != before {
            let went = context.went(&way, &dump.dev);
            shown = witness(&candidate, &went);
        }
    }
    let name = match dump.protocol {
        ethertype::IPV4 => "IPv4",
        ethertype::IPV6 => "IPv6",
        ethertype::ARP => "ARP",
        _ => "another protocol",
    };
    Ok(Some(Finding {
        rule: Rule::Protocol,
        level: Level::Warning,
        place: written.family.place.clone().or_else(|| step.place.clone()),
        what: format!(
            "`match {} {}` in a filter for {name}: the header is another one",
            written.family.text, written.field.text
        ),
        because: format!("it reads {place} of the packet: {}", reads.join(", ")),
        witness: shown,
        fix: Some(right_family(dump.protocol, step)),
    }))
}

/// The match in the words of the filter's own family.
fn right_family(protocol: u16, step: &Step) -> Fix {
    let Some((name, _)) = FAMILIES.iter().find(|(_, ethertype)| *ethertype == protocol) else {
        return Fix {
            what: "compare bytes (`match u32 … at …`), or leave the match out".into(),
            edits: Vec::new(),
        };
    };
    let wrong: Vec<WrittenMatch<'_>> = matches(step)
        .into_iter()
        .filter(|written| family(written).is_some_and(|family| family != protocol))
        .collect();
    let twin = |written: &WrittenMatch<'_>| {
        let of = |(v4, v6, same): &(&'static str, &'static str, bool)| {
            let (own, other) = if *name == "ip6" { (*v4, *v6) } else { (*v6, *v4) };
            (own == written.field.text).then_some((other, *same))
        };
        FIELDS.iter().find_map(of)
    };
    // Addresses have another form there, and some fields are not there at all.
    if let Some(written) = wrong.iter().find(|written| !twin(written).is_some_and(|(_, same)| same)) {
        let (field, value) = (&written.field.text, &written.value.text);
        return Fix {
            what: match twin(written) {
                Some((other, _)) => format!("match {name} {other}, with the value that {value} has there"),
                None => format!("{name} has no {field}: leave the match out"),
            },
            edits: Vec::new(),
        };
    }
    let mut edits = Vec::new();
    let mut write = |word: &Word, text: &str| {
        let place = word.place.clone().filter(|_| word.literal && word.text != text);
        edits.extend(place.map(|place| Edit { place, text: text.to_owned() }));
    };
    for written in &wrong {
        write(written.family, name);
        if let Some((other, _)) = twin(written) {
            write(written.field, other);
        }
        let icmp = [(proto::ICMP, proto::ICMPV6), (proto::ICMPV6, proto::ICMP)];
        let other = icmp
            .iter()
            .find(|(one, _)| written.field.text == "protocol" && written.value.text == one.to_string());
        if let Some((_, other)) = other {
            write(written.value, &other.to_string());
        }
    }
    let fields: Vec<&str> =
        wrong.iter().filter_map(|written| twin(written).map(|(other, _)| other)).collect();
    let mut what = format!("match {name} {}", fields.join(", "));
    // Where no match is of the filter's own family, the filter may be what is wrong.
    if wrong.len() == matches(step).iter().filter(|written| family(written).is_some()).count() {
        let other = if protocol == ethertype::IPV4 { "ipv6" } else { "ip" };
        what += &format!(" (or, by hand, `protocol {other}` if those packets are meant)");
    }
    Fix { what, edits }
}

fn of_all(step: &Step, written: &WrittenMatch<'_>) -> Finding {
    Finding {
        rule: Rule::Protocol,
        level: Level::Note,
        place: written.family.place.clone().or_else(|| step.place.clone()),
        what: format!(
            "`match {} {}` under `protocol all` is compared with every protocol's bytes",
            written.family.text, written.field.text
        ),
        because: "bytes of other packets may happen to match".into(),
        witness: None,
        fix: None,
    }
}

/// Ports without a protocol.
fn ports_of_anything(step: &Step, matches: &[WrittenMatch<'_>]) -> Option<Finding> {
    let is = |written: &&WrittenMatch<'_>, names: &[&str]| {
        family(written).is_some() && names.contains(&written.field.text.as_str())
    };
    let port = matches.iter().find(|written| is(written, &["dport", "sport"]))?;
    if matches.iter().any(|written| is(&written, &["protocol"])) {
        return None;
    }
    Some(Finding {
        rule: Rule::Protocol,
        level: Level::Note,
        place: port.field.place.clone().or_else(|| step.place.clone()),
        what: format!(
            "`{} {}` of any protocol: TCP, UDP, and all others with such bytes there",
            port.field.text, port.value.text
        ),
        because: "later fragments and protocols without ports may happen to match".into(),
        witness: None,
        fix: Some(Fix {
            what: format!(
                "say the protocol too: `match {family} protocol 6 0xff` for TCP, 17 for UDP (one filter for each)",
                family = port.family.text
            ),
            edits: Vec::new(),
        }),
    })
}

/// The keys of one match of a command alone; `None`: it cannot be told.
fn keys_of(step: &Step, written: &WrittenMatch<'_>) -> Option<Vec<U32Key>> {
    const ENDS: [&str; 12] = [
        "match", "flowid", "classid", "action", "police", "order", "ht", "link", "hashkey", "offset",
        "sample", "indev",
    ];
    let at = step.words.windows(2).position(|words| std::ptr::eq(&raw const words[1], written.family))?;
    let own = step.words[at + 1..].iter().map(|word| word.text.as_str());
    let own = own.take_while(|word| !ENDS.contains(word));
    let before = ["filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip", "u32", "match"];
    let words: Vec<String> = before.into_iter().chain(own).map(str::to_owned).collect();
    let Ok(TcCommand::Apply(Op::Filter(op))) =
        tc::parse(&words, &Env::default()).map(|parsed| parsed.command)
    else {
        return None;
    };
    match op.params? {
        FilterParams::U32(u32) => Some(u32.keys),
        _ => None,
    }
}

/// The bytes of a packet that keys compare, in order.
fn bytes_of(keys: &[U32Key]) -> Vec<i32> {
    let compared = |key: &U32Key| {
        let (offset, mask) = (key.offset, key.mask);
        (0..4).filter(move |byte| mask >> (24 - 8 * byte) & 0xff != 0).map(move |byte| offset + byte)
    };
    let bytes: BTreeSet<i32> = keys.iter().flat_map(compared).collect();
    bytes.into_iter().collect()
}

/// The field that a key reads in a packet of the filter's protocol.
fn names(protocol: u16, key: &U32Key) -> &'static str {
    name_of(protocol, key.offset + key.mask.leading_zeros() as i32 / 8)
}

/// The field that has a byte of a packet of a protocol.
fn name_of(protocol: u16, byte: i32) -> &'static str {
    match (protocol, byte) {
        (_, ..0) => "the link header",
        (ethertype::IPV6, 0) => "IPv6's version and half of its traffic class",
        (ethertype::IPV6, 1) => "the rest of IPv6's traffic class, and its flow label",
        (ethertype::IPV6, 2 | 3) => "IPv6's flow label",
        (ethertype::IPV6, 4 | 5) => "IPv6's payload length",
        (ethertype::IPV6, 6) => "IPv6's next header",
        (ethertype::IPV6, 7) => "IPv6's hop limit",
        (ethertype::IPV6, 8..24) => "IPv6's source address",
        (ethertype::IPV6, 24..40) => "IPv6's destination address",
        (ethertype::IPV4, 0..12) => "another field of IPv4's header",
        (ethertype::IPV4, 12..16) => "IPv4's source address",
        (ethertype::IPV4, 16..20) => "IPv4's destination address",
        (ethertype::IPV4 | ethertype::IPV6, _) => "what follows the header",
        (ethertype::ARP, _) => "a field of ARP",
        _ => "bytes of another protocol",
    }
}
