//! Which addresses the computers of a trial have.
//!
//! Scripts are mostly written for 192.168.1.0/24, and the computers have addresses there. A policy that
//! distinguishes hosts by other addresses would match none of them, and appear to do nothing, or to block
//! everything; so they get the addresses that it names.

use crate::loads::{Item, Load};
use crate::policy::TrialPolicy;
use std::net::Ipv4Addr;
use tidegate_inspect::{CLSACT_EGRESS, PolicyModel};
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, NetfilterRule};
use tidegate_policy::{FilterParams, FlowerField};
use tidegate_sim::Local;

/// A network: an address and how many of its bits count.
type Net = (Ipv4Addr, u32);

/// The computers' network otherwise.
const USUAL: Net = (Ipv4Addr::new(192, 168, 1, 0), 24);
/// RFC 1918 and RFC 6598.
const PRIVATE: [Net; 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
];
/// The computers that a load may have: as many as a workload may name, and those of the trial's own.
const MOST: usize = 16;
/// A network with fewer bits than this identifies no host.
const LEAST_BITS: u32 = 8;

/// The addresses of a trial's computers, where the policy names other than the usual ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Household {
    addresses: Vec<Ipv4Addr>,
}

impl Household {
    pub(crate) fn of(policy: &TrialPolicy) -> Household {
        let named = named(policy, &policy.reading());
        if named.iter().any(|net| overlap(*net, USUAL)) {
            return Household::default();
        }
        let mut addresses: Vec<Ipv4Addr> = Vec::new();
        let mut add = |address: Ipv4Addr| {
            if addresses.len() < MOST && !addresses.contains(&address) {
                addresses.push(address);
            }
        };
        named.iter().filter(|(_, bits)| *bits == 32).for_each(|(address, _)| add(*address));
        // The others of the same network, in those that are named as such first.
        let nets = named.iter().filter(|(_, bits)| *bits < 32).chain(&named);
        for (address, bits) in nets {
            // Of a host's own network nothing is known: 256 addresses are usual.
            let bits = if *bits == 32 { 24 } else { *bits };
            let (first, last) = (u32::from(*address) & mask(bits), u32::MAX >> bits);
            (2..last.min(2 + MOST as u32)).for_each(|number| add(Ipv4Addr::from(first | number)));
        }
        Household { addresses }
    }

    /// Gives the computers of some loads and probes their addresses.
    pub(crate) fn move_in<'i>(&self, items: impl IntoIterator<Item = &'i mut Item>) {
        for item in items {
            let parties = item.parties();
            if let (Local::Host(number), false) = (parties.local, parties.v6) {
                parties.local = self.place(number).map_or(parties.local, |address| Local::At(address.into()));
            }
        }
    }

    /// Moves whole loads.
    pub(crate) fn move_into(&self, loads: &mut [Load]) {
        self.move_in(loads.iter_mut().flat_map(|load| &mut load.items));
    }

    /// The address of a computer by its usual number.
    fn place(&self, number: u8) -> Option<Ipv4Addr> {
        let at = match number {
            // The busy one, the people's, and a third.
            2 => 0,
            3 => 1,
            6 => 2,
            10.. => usize::from(number) - 10,
            _ => 3,
        };
        self.addresses.get(at).copied()
    }

    /// What the reader should know.
    pub(crate) fn note(&self) -> Option<String> {
        let [busy, people, rest @ ..] = self.addresses.as_slice() else { return None };
        let another =
            rest.first().map_or(String::new(), |third| format!(", another computer's traffic {third}'s"));
        Some(format!(
            "the policy names hosts by address, so the computers here have such addresses: one computer's transfers \
            are {busy}'s, calls, look-ups, logins and web pages {people}'s{another}"
        ))
    }
}

/// The networks by which a policy distinguishes local hosts, in its order.
fn named(policy: &TrialPolicy, reading: &PolicyModel) -> Vec<Net> {
    let mut nets = Vec::new();
    for dump in &reading.filters {
        let [source, destination] = ends(dump);
        let arrives = dump.parent.qdisc() == Handle::INGRESS.qdisc() && dump.parent != CLSACT_EGRESS;
        let own = if (dump.dev == policy.wan) != arrives { source } else { destination };
        let private = [source, destination].into_iter().flatten().filter(|net| is_private(*net));
        // By a device towards the LAN, or by an ifb, packets may go either way.
        match dump.dev == policy.wan {
            true => nets.extend(own),
            false => nets.extend(private),
        }
    }
    // What the machine itself sends and takes in has its own addresses.
    let of_machine = |chain: &str| ["OUTPUT", "INPUT"].iter().any(|own| chain.eq_ignore_ascii_case(own));
    for (_, rule) in policy.rules().filter(|(chain, _)| !of_machine(chain)) {
        nets.extend(of_rule(rule, &policy.wan).filter(|net| is_private(*net)));
    }
    nets.retain(|(address, bits)| *bits >= LEAST_BITS && !address.is_multicast() && !address.is_loopback());
    // `match ip src 80` is a port in the place of an address: 80.0.0.0 is no host.
    nets.retain(|(address, bits)| *bits < 32 || u32::from(*address) & u32::MAX >> LEAST_BITS != 0);
    nets
}

/// The source and the destination that a filter matches.
fn ends(dump: &FilterDump) -> [Option<Net>; 2] {
    let mut ends = [None, None];
    let FilterEntry::Filter { params, .. } = &dump.entry else { return ends };
    let mut take = |end: usize, value: u32, mask: u32| {
        if mask.leading_ones() + mask.trailing_zeros() == 32 || mask == u32::MAX {
            ends[end] = Some((Ipv4Addr::from(value & mask), mask.leading_ones()));
        }
    };
    match params {
        FilterParams::U32(u32) if dump.protocol != ethertype::IPV6 => {
            for key in u32.keys.iter().filter(|key| key.offset_mask == 0) {
                match key.offset {
                    12 => take(0, key.value, key.mask),
                    16 => take(1, key.value, key.mask),
                    _ => {}
                }
            }
        }
        FilterParams::Flower(flower) if dump.protocol == ethertype::IPV4 => {
            for key in &flower.keys {
                match key.field {
                    FlowerField::SrcIp => take(0, key.value as u32, key.mask as u32),
                    FlowerField::DstIp => take(1, key.value as u32, key.mask as u32),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    ends
}

/// The network of the local host that a rule matches: its source, unless packets come from the modem; its
/// destination, unless they go there.
fn of_rule(rule: &NetfilterRule, wan: &str) -> impl Iterator<Item = Net> {
    let plain = || rule.matches.iter().filter(|one| !one.not).map(|one| &one.what);
    let arrives = plain().any(|what| matches!(what, Condition::In(name) if name == wan));
    let leaves = plain().any(|what| matches!(what, Condition::Out(name) if name == wan));
    plain().filter_map(move |what| match what {
        Condition::Source(net, bits) if !arrives => of_v4(net, *bits),
        Condition::Destination(net, bits) if !leaves => of_v4(net, *bits),
        _ => None,
    })
}

/// A rule's network, if it is of IPv4.
fn of_v4(net: &[u8; 16], bits: u8) -> Option<Net> {
    let [.., a, b, c, d] = *net;
    (net[..12] == [0; 12]).then(|| (Ipv4Addr::new(a, b, c, d), u32::from(bits).min(32)))
}

fn is_private((address, bits): Net) -> bool {
    PRIVATE.iter().any(|(net, least)| bits >= *least && u32::from(address) & mask(*least) == u32::from(*net))
}

fn overlap(a: Net, b: Net) -> bool {
    let common = mask(a.1.min(b.1));
    u32::from(a.0) & common == u32::from(b.0) & common
}

fn mask(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tidegate_packet::{Pool, Seeded};
    use tidegate_shims::{Answer, Call, Machine};

    /// The first addresses of the computers under a policy on eth0.
    fn addresses(script: &str) -> Vec<String> {
        let mut machine = Machine::for_script(["eth0", "eth1", "ifb0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace().map(str::to_owned);
            let tool = words.next().expect("a tool");
            let call =
                Call { tool, args: words.collect(), stdin: None, cwd: PathBuf::from("/"), netns: None };
            assert_eq!(machine.shim(&mut pool, &mut draws).answer(&call).code, 0, "{line}");
        }
        let configured = crate::policy::Configured {
            machine,
            commands: 1,
            wan: Some("eth0".into()),
            lan: None,
            notes: Vec::new(),
            names: Default::default(),
        };
        let policy = TrialPolicy::new(configured, crate::TrialDevices::default()).expect("a policy");
        Household::of(&policy).addresses.iter().take(4).map(Ipv4Addr::to_string).collect()
    }

    const ROOT: &str = "tc qdisc add dev eth0 root handle 1: prio\n";

    #[test]
    fn computers_have_the_addresses_that_filters_name() {
        let filter = |what: &str| {
            format!("{ROOT}tc filter add dev eth0 parent 1: protocol ip prio 1 {what} flowid 1:1")
        };
        let rows = [
            ("u32 match ip src 10.0.0.8", vec!["10.0.0.8", "10.0.0.2", "10.0.0.3", "10.0.0.4"]),
            ("u32 match ip src 172.16.4.0/22", vec!["172.16.4.2", "172.16.4.3", "172.16.4.4", "172.16.4.5"]),
            ("u32 match ip src 10.0.0.64/28", vec!["10.0.0.66", "10.0.0.67", "10.0.0.68", "10.0.0.69"]),
            // Testbeds use what is not theirs.
            ("u32 match ip src 11.209.0.10", vec!["11.209.0.10", "11.209.0.2", "11.209.0.3", "11.209.0.4"]),
            ("flower src_ip 10.1.1.1", vec!["10.1.1.1", "10.1.1.2", "10.1.1.3", "10.1.1.4"]),
            // The other end, everyone, the usual network, nothing of addresses.
            ("u32 match ip dst 10.0.0.8", vec![]),
            ("u32 match ip src 0.0.0.0/0", vec![]),
            ("u32 match ip src 192.168.1.77", vec![]),
            ("u32 match ip src 80", vec![]),
            ("u32 match ip src 192.168.0.0/16", vec![]),
            ("u32 match ip dport 22 0xffff", vec![]),
        ];
        for (what, expected) in rows {
            assert_eq!(addresses(&filter(what)), expected, "{what}");
        }
    }

    #[test]
    fn one_of_the_usual_network_keeps_them_there() {
        let both = format!(
            "{ROOT}tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.8 flowid 1:1
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 192.168.1.8 flowid 1:2"
        );
        assert_eq!(addresses(&both), [""; 0]);
    }

    #[test]
    fn rules_and_downloads_name_local_hosts_too() {
        let rule = |words: &str| format!("{ROOT}iptables -t mangle -A {words} -j MARK --set-mark 1");
        assert_eq!(addresses(&rule("FORWARD -o eth0 -s 10.3.0.7"))[0], "10.3.0.7");
        assert_eq!(addresses(&rule("FORWARD -i eth0 -d 10.3.0.7"))[0], "10.3.0.7");
        assert_eq!(addresses(&rule("POSTROUTING -s 192.168.42.0/24"))[0], "192.168.42.2");
        for other in ["FORWARD -o eth0 -d 10.3.0.7", "OUTPUT -s 10.3.0.7", "FORWARD -s 203.0.113.4"] {
            assert_eq!(addresses(&rule(other)), [""; 0], "{other}");
        }
        let download = format!(
            "{ROOT}tc qdisc add dev eth0 ingress
             tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dst 10.5.0.3 police rate \
             1mbit burst 10k drop"
        );
        assert_eq!(addresses(&download)[0], "10.5.0.3");
        let on_the_lan = format!(
            "{ROOT}tc qdisc add dev eth1 root handle 1: prio
             tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dst 10.6.0.3 flowid 1:1"
        );
        assert_eq!(addresses(&on_the_lan)[0], "10.6.0.3");
    }
}
