//! R27 of cake: shares between hosts, where NAT has left one address of them all.

use super::making::finding;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::{PacketEntry, Prober};
use crate::reading::{PolicyModel, Step};
use crate::walk::outcome::redirects;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_gateway::EgressPath;
use tidegate_packet::{Addrs, Dissector, Handle, dissect};
use tidegate_policy::dump::{FilterDump, QdiscDump};
use tidegate_policy::netfilter::{self, Condition, Family, NetfilterTarget};
use tidegate_policy::{CakeParams, QdiscParams};

/// Cakes that are to distinguish hosts and cannot. The engine shows two hosts that leave with one address.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut found = Vec::new();
    for qdisc in reading.qdiscs.iter().filter(|qdisc| qdisc.parent == Handle::ROOT) {
        let QdiscParams::Cake(cake) = &qdisc.params else { continue };
        let Some(step) = reading.maker_of_qdisc(qdisc).and_then(|at| reading.step_of(at)) else { continue };
        if cake.nat != Some(true) {
            found.extend(one_host(reading, qdisc, cake, step));
        }
    }
    found
}

fn one_host(reading: &PolicyModel, qdisc: &QdiscDump, cake: &CakeParams, step: &Step) -> Option<Finding> {
    let flows = cake.flows.unwrap_or_default();
    let leaving = (flows.shares_source() || flows.by_source()).then(|| hidden(reading, &qdisc.dev)).flatten();
    let arriving = || {
        let mut from = reading.filters.iter().filter(|filter| leads_all(reading, filter, &qdisc.dev));
        from.find_map(|filter| Some((filter.dev.clone(), hidden(reading, &filter.dev)?)))
    };
    let by_destination = flows.shares_destination() || flows.by_destination();
    let (device, nat, end) = match leaving {
        Some(nat) => (qdisc.dev.clone(), nat, "source"),
        None => {
            let (device, nat) = arriving().filter(|_| by_destination)?;
            (device, nat, "destination")
        }
    };
    let Hidden { packets, address } = nat;
    let word = step.words.iter().find(|word| word.text == flows.name());
    // A default that no option names deserves less of a finding.
    let level = if word.is_some() { Level::Warning } else { Level::Note };
    let usual = if word.is_some() { "" } else { ", its default" };
    let place = word.and_then(|word| word.place.clone()).or_else(|| step.place.clone());
    let mut found = finding(
        Rule::Rewritten,
        level,
        place,
        format!(
            "cake on {} is to share between hosts ({}{usual}), and sees one {end} address for those behind NAT",
            qdisc.dev,
            flows.name()
        ),
        match end {
            "source" => format!(
                "NAT gives what they send by {device} another address before cake sees it: without `nat` \
                cake takes them for one host"
            ),
            _ => format!(
                "what arrives at {device} has NAT's address still when cake sees it: without `nat` cake \
                takes them for one host"
            ),
        },
        String::new(),
    );
    let [one, two] = packets;
    found.witness = Some(Witness::Packet {
        packet: one.to_string(),
        went: format!("the network from {address}, and so does the same from {}", two.source),
    });
    found.fix =
        Some(Fix { what: "have cake look up the hosts' own addresses: nat".into(), edits: Vec::new() });
    Some(found)
}

/// Two hosts' packets that leave with one address.
struct Hidden {
    packets: [Packet; 2],
    address: Ipv4Addr,
}

/// Of a network that a rule of POSTROUTING may translate, or else of a home's.
fn hidden(reading: &PolicyModel, device: &str) -> Option<Hidden> {
    let translating = reading.gateway.all_tables().iter().filter(|table| table.family() != Family::Ipv6);
    let chains = translating.flat_map(|table| table.chains());
    let last =
        chains.filter(|chain| chain.base.is_some_and(|base| base.hook == netfilter::Hook::Postrouting));
    let rules = last.flat_map(|chain| &chain.rules).map(|counted| &counted.rule);
    let rules: Vec<_> =
        rules.filter(|rule| matches!(rule.target, Some(NetfilterTarget::Translate(_)))).collect();
    let named = rules.iter().flat_map(|rule| &rule.matches).filter_map(|one| match &one.what {
        Condition::Source(bytes, bits) if !one.not && *bits <= 24 => {
            let bytes: [u8; 4] = bytes[12..].try_into().ok()?;
            Some(u32::from_be_bytes(bytes))
        }
        _ => None,
    });
    let nets: Vec<u32> = named.chain([u32::from_be_bytes([192, 168, 1, 0])]).collect();
    if rules.is_empty() {
        return None;
    }
    let mut prober = Prober::new(reading);
    let id = prober.device(device)?;
    nets.into_iter().find_map(|net| {
        let mut sent = [10, 11].into_iter().filter_map(|host| {
            let packet = Packet::parse("tcp 192.168.1.10:40000 > 198.51.100.7:443").ok()?;
            let own = Ipv4Addr::from(net | host);
            let packet = Packet { source: IpAddr::V4(own), to: Some(device.to_owned()), ..packet };
            let mut address = None;
            let _ = prober.travel_with(
                &packet,
                PacketEntry::Leaves(id, EgressPath::Forwarded(None)),
                &mut |glimpse| {
                    if let Addrs::V4(from, _) = dissect(&glimpse.head, Dissector::Legacy).addrs
                        && glimpse.stop.device == id
                    {
                        address = Some(Ipv4Addr::from(from));
                    }
                },
            );
            address.filter(|address| *address != own).map(|address| (packet, address))
        });
        let (Some((one, first)), Some((two, second))) = (sent.next(), sent.next()) else { return None };
        (first == second).then_some(Hidden { packets: [one, two], address: first })
    })
}

/// Does a filter lead what arrives at its device to another?
fn leads_all(reading: &PolicyModel, filter: &FilterDump, to: &str) -> bool {
    reading.arrives(filter) && redirects(filter).any(|other| other == to)
}
