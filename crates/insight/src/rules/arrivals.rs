//! R14 of what arrives: IPv6 that no filter of an ingress takes, where IPv4 is policed or led to an ifb.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::{Course, Prober};
use crate::reading::{Reading, Step};
use std::collections::BTreeMap;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, FilterOp};

/// A download over IPv6, on its way in.
const DOWNLOAD: &str = "tcp [2001:db8:2::7]:443 > [2001:db8:1::a]:40000 len 1500";

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

/// IPv6 goes past the filters of a device, none of which asks for it.
fn past(reading: &Reading, dev: &str, filters: &[&FilterDump]) -> Option<Finding> {
    let holding = filters.iter().filter(|filter| filter.protocol == ethertype::IPV4);
    let (filter, how) = holding.filter_map(|filter| Some((*filter, holds_back(filter)?))).next()?;
    let step = reading.step_of(reading.maker_of_filter(filter)?)?;
    let packet = Packet::parse(DOWNLOAD).expect("a packet");
    let mut prober = Prober::new(reading);
    let way = prober.travel(&packet, Course::Arrives(prober.device(dev)?));
    debug_assert!(way.stops.is_empty() && way.dropped.is_none(), "no filter of {dev} asks for {packet}");
    (way.stops.is_empty() && way.dropped.is_none()).then(|| Finding {
        rule: Rule::OtherProtocols,
        level: Level::Note,
        place: at_protocol(step),
        what: format!("IPv6 that arrives at {dev} is not {how}"),
        because: "the filters there ask for IPv4 only: downloads over IPv6 are not held back".into(),
        witness: Some(Witness::Packet { packet: packet.to_string(), went: "the host unchanged".into() }),
        fix: Some(Fix {
            what: "one filter for all: `protocol all`, or the same for `protocol ipv6`".into(),
            edits: Vec::new(),
        }),
    })
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
    super::at_word(step, if step.after("proto").is_some() { "proto" } else { "protocol" })
}
