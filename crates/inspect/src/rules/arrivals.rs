//! R14 of what arrives: IPv6 that no filter of an ingress takes, where IPv4 is policed or led to an ifb.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::{Course, Prober};
use crate::reading::{Reading, Step};
use std::collections::BTreeMap;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, FilterOp, FilterParams};

/// What arrives at a gateway: what it is called, the same packet of IPv4 and of IPv6.
const ARRIVALS: [(&str, &str, &str); 5] = [
    (
        "TCP",
        "tcp 198.51.100.7:443 > 192.168.1.10:40000 len 1500",
        "tcp [2001:db8:2::7]:443 > [2001:db8:1::a]:40000 len 1500",
    ),
    (
        "UDP",
        "udp 198.51.100.7:443 > 192.168.1.10:40000 len 1200",
        "udp [2001:db8:2::7]:443 > [2001:db8:1::a]:40000 len 1200",
    ),
    (
        "TCP",
        "tcp 198.51.100.7:40000 > 192.168.1.10:22 len 1500",
        "tcp [2001:db8:2::7]:40000 > [2001:db8:1::a]:22 len 1500",
    ),
    (
        "TCP",
        "tcp 198.51.100.7:40000 > 192.168.1.10:80 len 1500",
        "tcp [2001:db8:2::7]:40000 > [2001:db8:1::a]:80 len 1500",
    ),
    (
        "TCP's SYN",
        "tcp 198.51.100.7:40000 > 192.168.1.10:443 syn",
        "tcp [2001:db8:2::7]:40000 > [2001:db8:1::a]:443 syn",
    ),
];

/// Devices whose filters hold back what arrives over IPv4 alone.
pub(super) fn check(reading: &mut Reading) -> Vec<Finding> {
    let reading = &*reading;
    let mut lists: BTreeMap<&str, Vec<&FilterDump>> = BTreeMap::new();
    for filter in reading.filters.iter().filter(|filter| reading.arrives(filter)) {
        if matches!(filter.entry, FilterEntry::Filter { .. }) {
            lists.entry(&filter.dev).or_default().push(filter);
        }
    }
    let for_v6 = |filter: &&FilterDump| matches!(filter.protocol, FilterOp::ALL | ethertype::IPV6);
    let alone = lists.into_iter().filter(|(_, filters)| !filters.iter().any(&for_v6));
    alone.filter_map(|(dev, filters)| past(reading, dev, &filters)).collect()
}

/// IPv6 goes past the filters of a device, none of which asks for it, where its twin of IPv4 does not.
fn past(reading: &Reading, dev: &str, filters: &[&FilterDump]) -> Option<Finding> {
    let mut prober = Prober::new(reading);
    let course = Course::Arrives(prober.device(dev)?);
    let holding = filters.iter().filter(|filter| filter.protocol == ethertype::IPV4);
    let mut holding = holding.filter_map(|filter| Some((*filter, holds_back(filter)?)));
    let parse = |text: &str| Packet { from: Some(dev.to_owned()), ..Packet::parse(text).expect("a packet") };
    let (filter, how, (name, packet)) = holding.find_map(|(filter, how)| {
        let held = ARRIVALS.iter().find(|(_, v4, _)| {
            let before = acted(&mut prober, filter);
            let _ = prober.travel(&parse(v4), course);
            acted(&mut prober, filter) > before
        })?;
        Some((filter, how, (held.0, parse(held.2))))
    })?;
    let step = reading.step_of(reading.maker_of_filter(filter)?)?;
    let way = prober.travel(&packet, course);
    debug_assert!(way.stops.is_empty() && way.dropped.is_none(), "no filter of {dev} asks for {packet}");
    (way.stops.is_empty() && way.dropped.is_none()).then(|| Finding {
        rule: Rule::OtherProtocols,
        level: Level::Note,
        place: at_protocol(step),
        what: format!("{name} over IPv6 that arrives at {dev} is not {how}, as it is over IPv4"),
        because: "the filters there ask for IPv4 only".into(),
        witness: Some(Witness::Packet { packet: packet.to_string(), went: "the host unchanged".into() }),
        fix: Some(Fix { what: remedy(filter).into(), edits: Vec::new() }),
    })
}

/// How often a filter's actions saw a packet.
fn acted(prober: &mut Prober, filter: &FilterDump) -> u64 {
    prober.actions_of(filter).iter().map(|action| action.packets).sum()
}

/// How IPv6 is taken too, in the words of the filter's kind.
fn remedy(filter: &FilterDump) -> &'static str {
    let FilterEntry::Filter { params, .. } = &filter.entry else { unreachable!("it has actions") };
    match params {
        FilterParams::U32(u32) if u32.keys.iter().all(|key| key.mask == 0) => "take all: `protocol all`",
        FilterParams::U32(_) => {
            "add the same for `protocol ipv6`, at another prio, with `match ip6` in the place of `match ip`"
        }
        FilterParams::Matchall(_) => "take all: `protocol all`",
        _ => "add the same for `protocol ipv6`, at another prio",
    }
}

/// How a filter's actions hold its packets back, if they do.
fn holds_back(filter: &FilterDump) -> Option<String> {
    let FilterEntry::Filter { actions, .. } = &filter.entry else { return None };
    actions.iter().find_map(|dump| match &dump.action.act {
        Act::Police(_) => Some("policed".to_owned()),
        act => act.redirects_to().map(|to| format!("led to {to}")),
    })
}

/// Where the protocol of a filter is said.
fn at_protocol(step: &Step) -> Option<crate::reading::Place> {
    super::making::at_word(step, if step.after("proto").is_some() { "proto" } else { "protocol" })
}
