//! R14 for hooks: IPv6 that no filter of an ingress matches, or of an egress, where IPv4 is policed or
//! redirected to an ifb.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::{PacketEntry, Prober};
use crate::reading::{CLSACT_EGRESS, PolicyModel, Step};
use crate::walk::outcome::{reached_acts, redirects};
use std::collections::BTreeMap;
use tidegate_gateway::EgressPath;
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

/// What leaves by a gateway's way out.
const LEAVING: [(&str, &str, &str); 2] = [
    (
        "TCP",
        "tcp 192.168.1.10:40000 > 198.51.100.7:443 len 1500",
        "tcp [2001:db8:1::a]:40000 > [2001:db8:2::7]:443 len 1500",
    ),
    (
        "UDP",
        "udp 192.168.1.10:40000 > 198.51.100.7:443 len 1200",
        "udp [2001:db8:1::a]:40000 > [2001:db8:2::7]:443 len 1200",
    ),
];

/// Devices whose filters limit arriving or leaving packets of IPv4 alone.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut lists: BTreeMap<(&str, bool), Vec<&FilterDump>> = BTreeMap::new();
    for filter in &reading.filters {
        let arrives = reading.arrives(filter);
        let hooked = arrives || filter.parent == CLSACT_EGRESS;
        if hooked && matches!(filter.entry, FilterEntry::Filter { .. }) {
            lists.entry((&filter.dev, arrives)).or_default().push(filter);
        }
    }
    let for_v6 = |filter: &&FilterDump| matches!(filter.protocol, FilterOp::ALL | ethertype::IPV6);
    let alone = lists.into_iter().filter(|(_, filters)| !filters.iter().any(&for_v6));
    alone.filter_map(|((dev, arrives), filters)| past(reading, dev, arrives, &filters)).collect()
}

/// IPv6 passes the filters of a device, none of which matches it, where the same packet of IPv4 does not.
fn past(reading: &PolicyModel, dev: &str, arrives: bool, filters: &[&FilterDump]) -> Option<Finding> {
    let mut prober = Prober::new(reading);
    let id = prober.device(dev)?;
    let course =
        if arrives { PacketEntry::Arrives(id) } else { PacketEntry::Leaves(id, EgressPath::Forwarded(None)) };
    let tried: &[_] = if arrives { &ARRIVALS } else { &LEAVING };
    // What leaves may be held to a rate by the device's own queue.
    if !arrives && reading.qdiscs.iter().any(|qdisc| qdisc.dev == dev && reading.has_own_rate(qdisc)) {
        return None;
    }
    // And a detour that holds nothing back is no loss.
    let matches =
        |to: &str| reading.qdiscs.iter().any(|qdisc| qdisc.dev == to && reading.has_own_rate(qdisc));
    let matters = |filter: &FilterDump| arrives || redirect(filter).is_none_or(matches);
    let holding = filters.iter().filter(|filter| filter.protocol == ethertype::IPV4 && matters(filter));
    let mut holding = holding.filter_map(|filter| Some((*filter, delays(filter)?)));
    let parse = |text: &str| {
        let packet = Packet::parse(text).expect("a packet");
        let name = Some(dev.to_owned());
        if arrives { Packet { from: name, ..packet } } else { Packet { to: name, ..packet } }
    };
    let (filter, how, (name, packet)) = holding.find_map(|(filter, how)| {
        let delayed = tried.iter().find(|(_, v4, _)| {
            let before = acted(&mut prober, filter);
            let _ = prober.travel(&parse(v4), course);
            acted(&mut prober, filter) > before
        })?;
        Some((filter, how, (delayed.0, parse(delayed.2))))
    })?;
    let step = reading.step_of(reading.maker_of_filter(filter)?)?;
    let way = prober.travel(&packet, course);
    let led = way.stops.iter().any(|stop| arrives || stop.device != id || stop.led_to.is_some());
    debug_assert!(!arrives || !led && way.dropped.is_none(), "no filter of {dev} asks for {packet}");
    let (does, went) = match arrives {
        true => (format!("arrives at {dev}"), "the host unchanged".to_owned()),
        false => (format!("leaves by {dev}"), format!("the queue of {dev} itself")),
    };
    (!led && way.dropped.is_none()).then(|| Finding {
        rule: Rule::OtherProtocols,
        level: Level::Note,
        place: at_protocol(step),
        what: format!("{name} over IPv6 that {does} is not {how}; over IPv4 it is"),
        because: "the filters there match IPv4 only".into(),
        witness: Some(Witness::Packet { packet: packet.to_string(), went }),
        fix: Some(Fix { what: remedy(step, filter, filters), edits: Vec::new() }),
    })
}

/// How often a filter's actions saw a packet.
fn acted(prober: &mut Prober, filter: &FilterDump) -> u64 {
    prober.actions_of(filter).iter().map(|action| action.packets).sum()
}

/// How IPv6 is taken too, in the words of the filter's kind.
fn remedy(step: &Step, filter: &FilterDump, filters: &[&FilterDump]) -> String {
    let FilterEntry::Filter { params, .. } = &filter.entry else { unreachable!("it has actions") };
    let takes_all = match params {
        FilterParams::U32(u32) => u32.keys.iter().all(|key| key.mask == 0),
        FilterParams::Matchall(_) => true,
        _ => false,
    };
    // All filters of a preference are for one protocol.
    let alone =
        filters.iter().filter(|other| other.pref == filter.pref && other.chain == filter.chain).count() == 1;
    let same = "add the same for `protocol ipv6`, at another prio";
    match params {
        _ if takes_all && alone => "take all: `protocol all`".to_owned(),
        FilterParams::U32(_) if takes_all => format!("{same}, with `match u32 0 0`"),
        FilterParams::U32(_) => format!("{same}, {}", super::protocols::in_ipv6(step)),
        _ => same.to_owned(),
    }
}

/// Where a filter leads its packets, if it does.
fn redirect(filter: &FilterDump) -> Option<&str> {
    redirects(filter).next()
}

/// How a filter's actions hold its packets back, if they do.
fn delays(filter: &FilterDump) -> Option<String> {
    reached_acts(filter).find_map(|act| match act {
        Act::Police(_) => Some("policed".to_owned()),
        act => act.redirects_to().map(|to| format!("redirected to {to}")),
    })
}

/// The place of a filter's protocol.
fn at_protocol(step: &Step) -> Option<crate::reading::SourceLocation> {
    super::making::at_word(step, if step.after("proto").is_some() { "proto" } else { "protocol" })
}
