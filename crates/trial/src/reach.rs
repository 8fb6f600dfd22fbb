//! Which class each conversation takes: asked of the policy's own machine, by letting the conversation happen on a fast link.
//!
//! For classes that nothing reached, the policy's rules and filters are inverted: what each asks of a packet is made into
//! a conversation and tried. What then reaches the class is a witness. Where none does, a packet out of the exact set of those that come
//! to the class is made into a conversation; and where that set is empty, nothing is tried, and the class is named with what is known of
//! why.

use crate::home::{self, InstalledTrees};
use crate::policy::TrialPolicy;
use crate::words;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_gateway::Route;
use tidegate_insight::{Arrival, Course, Packet, Reached};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Span};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, Connmark, NfCommand, Rule, Target};
use tidegate_policy::{FilterParams, FlowerField, FlowerKey, Op, QdiscParams};
use tidegate_scenario::series::{counts, is_leaf};
use tidegate_sim::{Bulk, Datagrams, Local, Parties, Ping, Traffic};

/// A class on a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceClass {
    /// The device.
    pub device: String,
    /// The class's id.
    pub class: Handle,
}

impl DeviceClass {
    /// As a report shows it: the device only where it is not the one before the modem.
    pub(crate) fn label(&self, policy: &TrialPolicy) -> String {
        if self.device == policy.wan { self.class.to_string() } else { format!("{} {}", self.device, self.class) }
    }
}

/// The leaf classes that a conversation's packets take, those with the most bytes first.
pub(crate) fn ask(policy: &TrialPolicy, traffic: &Traffic, seed: u64) -> Vec<DeviceClass> {
    let classes = home::after(policy, brief(traffic), seed);
    let mut taken: Vec<(u64, DeviceClass)> = classes
        .iter()
        .filter(|class| counts(class) && is_leaf(class, &classes))
        .filter_map(|class| {
            let stats = class.stats?;
            let bytes = stats.bytes + u64::from(stats.backlog);
            (bytes > 0).then(|| (bytes, DeviceClass { device: class.dev.clone(), class: class.classid }))
        })
        .collect();
    taken.sort_by(|a, b| b.cmp(a));
    taken.into_iter().map(|(_, place)| place).collect()
}

/// The same conversation, over soon.
fn brief(traffic: &Traffic) -> Traffic {
    match traffic {
        Traffic::Bulk(bulk) => Traffic::Bulk(Bulk { bytes: Some(40_000), start: Span(0), ..*bulk }),
        Traffic::Ping(ping) => Traffic::Ping(Ping { start: Span(0), ..*ping }),
        Traffic::Datagrams(datagrams) => Traffic::Datagrams(Datagrams { start: Span(0), ..*datagrams }),
        Traffic::Errand(errand) => {
            let mut errand = errand.clone();
            errand.start = Span(0);
            Traffic::Errand(errand)
        }
    }
}

/// A conversation made from what a rule or a filter asks.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) title: String,
    pub(crate) traffic: Traffic,
}

/// What is known of the leaf classes that the trial's own traffic leaves out.
#[derive(Default)]
pub(crate) struct Filled {
    /// Conversations that take them.
    pub(crate) found: Vec<(DeviceClass, Candidate)>,
    /// Classes that no packet can come to, and why.
    pub(crate) unreachable: BTreeMap<DeviceClass, String>,
    /// Classes for which no conversation was found, though there may be one.
    pub(crate) untried: Vec<DeviceClass>,
}

/// Finds, for each leaf class that none of `taken` is, a conversation that takes it, or why none can.
pub(crate) fn fill(policy: &TrialPolicy, trees: &InstalledTrees, taken: &[DeviceClass], seed: u64) -> Filled {
    let (classes, filters) = (&trees.classes, &trees.filters);
    let mut missing: Vec<DeviceClass> = classes
        .iter()
        .filter(|class| counts(class) && is_leaf(class, classes))
        .map(|class| DeviceClass { device: class.dev.clone(), class: class.classid })
        .filter(|place| !taken.contains(place))
        .collect();
    let hashed = filters.iter().any(is_hash);
    let arrivals: BTreeMap<DeviceClass, Arrival> = arrivals(policy, &missing);
    let is_open = |place: &DeviceClass| arrivals.get(place) != Some(&Arrival::Nobody);
    let mut found = Vec::new();
    let mut tries = candidates(policy, filters);
    tries.extend(arrivals.values().flat_map(of_arrival));
    for candidate in tries {
        if !missing.iter().any(is_open) {
            break;
        }
        let Some(place) = ask(policy, &candidate.traffic, seed).into_iter().next() else { continue };
        if let Some(at) = missing.iter().position(|other| *other == place) {
            missing.remove(at);
            // Where a hash shares out, anybody's traffic shows what a class does: nothing more is needed.
            if !hashed {
                found.push((place, candidate));
            }
        }
    }
    let mut filled = Filled { found, ..Filled::default() };
    for place in missing {
        match arrivals.get(&place) {
            Some(Arrival::Nobody) => drop(filled.unreachable.insert(place.clone(), reason(policy, trees, &place))),
            // Another host's packets may come there.
            Some(Arrival::Hashed) => {}
            _ if hashed => {}
            _ => filled.untried.push(place),
        }
    }
    filled
}

/// What can come to each of some classes, by the sets of all packets.
fn arrivals(policy: &TrialPolicy, places: &[DeviceClass]) -> BTreeMap<DeviceClass, Arrival> {
    if places.is_empty() {
        return BTreeMap::new();
    }
    let reading = policy.reading();
    let Some(mut reached) = Reached::of(&reading) else { return BTreeMap::new() };
    // What stands beneath another device carries its frames, which the reading does not know.
    let known = places.iter().filter(|place| policy.beneath.as_ref() != Some(&place.device));
    known.map(|place| (place.clone(), reached.class(&reading, &place.device, place.class))).collect()
}

/// The conversations that a packet which comes to a class may belong to.
fn of_arrival(arrival: &Arrival) -> Vec<Candidate> {
    let Arrival::Packet(witness) = arrival else { return Vec::new() };
    let sketch = Sketch::of_packet(&witness.packet);
    let sketch = Sketch { gateway: matches!(witness.course, Course::Leaves(_, Route::Local)), ..sketch };
    if let Course::Arrives(_) = witness.course { sketch.swapped().candidates() } else { sketch.candidates() }
}

/// Why no packet can come to a class of which that is shown.
fn reason(
    policy: &TrialPolicy,
    InstalledTrees { classes, filters, .. }: &InstalledTrees,
    place: &DeviceClass,
) -> String {
    let mut marks = Vec::new();
    let mut points = false;
    for dump in filters.iter().filter(|dump| dump.dev == place.device) {
        if classid(dump) == Some(place.class) {
            points = true;
            if let FilterEntry::Filter { handle, params: FilterParams::Fw(_), .. } = &dump.entry {
                marks.push(*handle);
            }
        }
    }
    marks.sort_unstable();
    marks.dedup();
    let numbers =
        |wanted: &dyn Fn(&u32) -> bool| marks.iter().filter(|mark| wanted(mark)).map(u32::to_string).collect();
    let unset: Vec<String> = numbers(&|mark| policy.setters(*mark).next().is_none());
    let lost: Vec<String> = numbers(&|mark| policy.what_gets_mark(*mark).is_none());
    let named = policy.rules().any(|(_, rule)| {
        rule.targets().any(|target| matches!(target, Target::Classify(class) if *class == place.class))
    });
    if policy.default_class(&place.device) == Some(place.class) {
        return "a filter before takes all that could come to this default class".to_owned();
    }
    let here = classes.iter().find(|class| class.dev == place.device && class.classid == place.class);
    // To classes that are made packets come only if something names them; to others priorities lead, too.
    let by_name = here.is_some_and(|class| class.kind.classes_are_made());
    if !points && !named && by_name {
        "no filter, mark or default leads to it".to_owned()
    } else if !unset.is_empty() {
        format!("its filter asks for mark {}, which no rule sets", unset.join(", "))
    } else if !lost.is_empty() {
        format!("its filter asks for mark {}, which later rules write over on every packet", lost.join(", "))
    } else {
        "no packet fits what leads to it, or a filter or rule before takes those that do".to_owned()
    }
}

/// The class that a filter leads to, among those of the qdisc it hangs on or below. What filters of arriving packets
/// name is no class of the device's root, though it may be called the same.
pub(crate) fn classid(dump: &FilterDump) -> Option<Handle> {
    let FilterEntry::Filter { params, .. } = &dump.entry else { return None };
    params.classid().filter(|class| class.major() == dump.parent.major())
}

/// Hosts tried where a hash shares out.
const HASHED_HOSTS: std::ops::Range<u8> = 10..70;
/// Does a filter share out by a hash?
fn is_hash(dump: &FilterDump) -> bool {
    matches!(&dump.entry, FilterEntry::Filter { params: FilterParams::Flow(_), .. })
}

/// Conversations tried at most: each one is simulated.
const MAX_CANDIDATES: usize = 400;

/// What the rules and filters ask for, each tried as TCP in both directions, and as what the packet must be.
fn candidates(policy: &TrialPolicy, filters: &[FilterDump]) -> Vec<Candidate> {
    let mut sketches: Vec<Sketch> = Vec::new();
    if filters.iter().any(is_hash) {
        for host in HASHED_HOSTS {
            for dsfield in [0x00, 0x08, 0x10] {
                let source = Some(Local::Host(host).address(false));
                let title = format!("host {host}, DS field {dsfield:#04x}");
                let protocol = Some(proto::UDP);
                sketches.push(Sketch { source, dsfield, title, protocol, ..Sketch::default() });
            }
        }
    }
    for (chain, rule) in policy.rules() {
        if rule.targets().any(|target| !matches!(target, Target::Accept | Target::Return)) {
            let sketch = Sketch::of_rule(chain, rule);
            sketches.push(sketch.swapped());
            sketches.push(sketch);
        }
    }
    for dump in filters {
        if let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry {
            let mut sketch = Sketch { v6: dump.protocol == ethertype::IPV6, ..Sketch::default() };
            for key in &u32.keys {
                sketch.take_word(key.offset, key.value, key.mask, key.offset_mask != 0);
            }
            sketch.title = words::keys(u32, sketch.v6);
            sketches.push(sketch.swapped());
            sketches.push(sketch);
        }
    }
    for dump in filters {
        if let FilterEntry::Filter { params: FilterParams::Flower(flower), .. } = &dump.entry {
            let title = words::filter(dump, &|_| None).unwrap_or_default();
            let mut sketch = Sketch { v6: dump.protocol == ethertype::IPV6, title, ..Sketch::default() };
            flower.keys.iter().for_each(|key| sketch.take_key(key));
            sketches.push(sketch.swapped());
            sketches.push(sketch);
        }
    }
    // Priorities come from the TOS field: one conversation for each.
    for dsfield in [0x00, 0x08, 0x10, 0x18, 0x20, 0x48, 0x88, 0xb8] {
        sketches.push(Sketch { dsfield, title: format!("DS field {dsfield:#04x}"), ..Sketch::default() });
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for candidate in sketches.iter().flat_map(Sketch::candidates) {
        if candidates.len() < MAX_CANDIDATES && !candidates.iter().any(|c| c.traffic == candidate.traffic) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// What is known of a packet from what is asked of it.
#[derive(Clone, Debug, Default)]
struct Sketch {
    title: String,
    gateway: bool,
    v6: bool,
    protocol: Option<u8>,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    sport: Option<u16>,
    dport: Option<u16>,
    dsfield: u8,
    /// Bytes of the network packet.
    length: Option<u16>,
}

impl Sketch {
    fn of_rule(chain: &str, rule: &Rule) -> Sketch {
        let connection = rule.targets().any(|target| matches!(target, Target::Connmark(_)));
        let gateway = chain.eq_ignore_ascii_case("output");
        let mut sketch = Sketch { gateway, title: words::rule(rule, connection), ..Sketch::default() };
        for m in rule.matches.iter().filter(|m| !m.not) {
            sketch.take(&m.what);
        }
        sketch.v6 |= [sketch.source, sketch.destination].into_iter().flatten().any(|address| address.is_ipv6());
        sketch
    }

    fn take(&mut self, what: &Condition) {
        match what {
            Condition::Protocol(number) if *number != 0 => self.protocol = Some(*number),
            Condition::Source(net, bits) => self.source = Some(host_in(net, *bits)),
            Condition::Destination(net, bits) => self.destination = Some(host_in(net, *bits)),
            Condition::SourcePort(range) => self.sport = Some(range.0),
            Condition::DestinationPort(range) => self.dport = Some(range.0),
            Condition::SourcePorts(ranges) => self.sport = ranges.first().map(|range| range.0),
            Condition::DestinationPorts(ranges) | Condition::Ports(ranges) => {
                self.dport = ranges.first().map(|range| range.0);
            }
            Condition::Length(low, high) => self.length = Some(low / 2 + high / 2),
            Condition::Dscp(dscp) => self.dsfield = dscp << 2,
            Condition::Tos(value, _) => self.dsfield = *value,
            Condition::Version6(v6) => self.v6 = *v6,
            // One of them will do.
            Condition::Any(several) => several.iter().take(1).for_each(|one| self.take(one)),
            _ => {}
        }
    }

    /// Of a packet: what nobody asked of it is left open.
    fn of_packet(packet: &Packet) -> Sketch {
        let plain = Packet::default();
        let known = |address: IpAddr| (!address.is_unspecified()).then_some(address);
        let has_ports = tidegate_insight::has_ports(packet.protocol);
        Sketch {
            title: packet.to_string(),
            v6: packet.is_ipv6(),
            protocol: packet.is_ip().then_some(packet.protocol),
            source: known(packet.source),
            destination: known(packet.destination),
            sport: has_ports.then_some(packet.ports.0),
            dport: has_ports.then_some(packet.ports.1),
            dsfield: packet.dsfield,
            length: (packet.length != plain.length).then_some(packet.length),
            gateway: false,
        }
    }

    /// Takes in a comparison of u32, if it is of a field we know.
    fn take_word(&mut self, offset: i32, value: u32, mask: u32, next: bool) {
        let address = |value: u32, mask: u32| {
            let host = if mask == u32::MAX { 0 } else { 9 };
            Some(IpAddr::V4(Ipv4Addr::from(value | host & !mask)))
        };
        match (offset, next, self.v6) {
            (0, false, false) if mask & 0x00ff_0000 != 0 => self.dsfield = (value >> 16) as u8,
            (0, false, true) if mask & 0x0ff0_0000 != 0 => self.dsfield = (value >> 20) as u8,
            (8, false, false) if mask & 0x00ff_0000 != 0 => self.protocol = Some((value >> 16) as u8),
            (4, false, true) if mask & 0x0000_ff00 != 0 => self.protocol = Some((value >> 8) as u8),
            (12, false, false) => self.source = address(value, mask),
            (16, false, false) => self.destination = address(value, mask),
            (20, false, false) | (40, false, true) | (0, true, _) => {
                if mask >> 16 != 0 {
                    self.sport = Some((value >> 16) as u16);
                }
                if mask & 0xffff != 0 {
                    self.dport = Some(value as u16);
                }
            }
            _ => {}
        }
    }

    /// Takes in a key of flower, if it is of a field we know.
    fn take_key(&mut self, key: &FlowerKey) {
        let address = |v6: bool| {
            let host = if key.mask.leading_ones() == 128 || !v6 && key.mask as u32 == u32::MAX { 0 } else { 9 };
            let value = key.value | host;
            Some(if v6 { Ipv6Addr::from(value).into() } else { Ipv4Addr::from(value as u32).into() })
        };
        match key.field {
            FlowerField::IpProto => self.protocol = Some(key.value as u8),
            FlowerField::IpTos => self.dsfield = key.value as u8,
            FlowerField::SrcIp => self.source = address(self.v6),
            FlowerField::DstIp => self.destination = address(self.v6),
            FlowerField::SrcPort => self.sport = Some(key.value as u16),
            FlowerField::DstPort => self.dport = Some(key.value as u16),
            _ => {}
        }
    }

    /// The same, as the other side would send it.
    fn swapped(&self) -> Sketch {
        Sketch {
            source: self.destination,
            destination: self.source,
            sport: self.dport,
            dport: self.sport,
            ..self.clone()
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let local = match (self.gateway, self.source) {
            (true, _) => Local::Gateway,
            (false, Some(address)) => Local::At(address),
            (false, None) => Local::Host(5),
        };
        let parties = Parties {
            remote: self.destination,
            v6: self.v6,
            dsfield: self.dsfield,
            ..Parties::new(local, self.sport.unwrap_or(41000), self.dport.unwrap_or(40999))
        };
        let bulk = |up: bool| Traffic::Bulk(Bulk { parties, ..Bulk::new(up, 0) });
        let datagrams = |protocol: u8| {
            let headers = if self.v6 { 48 } else { 28 };
            Traffic::Datagrams(Datagrams {
                parties,
                up: true,
                protocol,
                payload: self.length.map_or(200, |length| u32::from(length).saturating_sub(headers)),
                interval: Span::millis(40),
                start: Span(0),
            })
        };
        let ping = || Traffic::Ping(Ping { parties, ..Ping::every(Span::millis(200)) });
        let kinds = match self.protocol {
            Some(proto::TCP) => vec![bulk(true), bulk(false)],
            Some(proto::ICMP | proto::ICMPV6) => vec![ping()],
            Some(other) => vec![datagrams(other)],
            None => vec![bulk(true), bulk(false), datagrams(proto::UDP), ping()],
        };
        let candidate = |traffic| Candidate { title: self.title.clone(), traffic };
        kinds.into_iter().map(candidate).collect()
    }
}

/// An address within a network, not its first.
fn host_in(net: &[u8; 16], bits: u8) -> IpAddr {
    if net[..12].iter().all(|&b| b == 0) {
        let host = if bits >= 32 { 0 } else { 9 };
        let value = u32::from_be_bytes([net[12], net[13], net[14], net[15]]);
        return Ipv4Addr::from(value | host).into();
    }
    let host = if bits >= 128 { 0 } else { 9 };
    Ipv6Addr::from(u128::from_be_bytes(*net) | host).into()
}

impl TrialPolicy {
    /// The rules of the mangle tables, each with its chain.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (&str, &Rule)> {
        self.ops.iter().filter_map(|op| {
            let Op::Netfilter(nf) = op else { return None };
            match &nf.command {
                NfCommand::Append(chain, rule) | NfCommand::Insert(chain, _, rule) => {
                    (!matches!(nf.table.as_str(), "nat" | "filter" | "raw")).then_some((chain.as_str(), rule))
                }
                _ => None,
            }
        })
    }

    /// The rules that set a mark; true: on whole connections.
    fn setters(&self, mark: u32) -> impl Iterator<Item = (&Rule, bool)> {
        let sets = move |target: &Target| match target {
            Target::Mark { value, .. } if *value == mark => Some(false),
            Target::Connmark(Connmark::Set { value, .. }) if *value == mark => Some(true),
            _ => None,
        };
        self.rules().filter_map(move |(_, rule)| Some((rule, rule.targets().find_map(sets)?)))
    }

    /// What the rules that set a mark ask for, in words; but for those that others write over.
    pub(crate) fn what_gets_mark(&self, mark: u32) -> Option<String> {
        let mut what: Vec<String> = Vec::new();
        for (rule, connection) in self.setters(mark) {
            if !connection && self.is_overwritten(rule) {
                continue;
            }
            let words = words::rule(rule, connection);
            if !what.contains(&words) {
                what.push(words);
            }
        }
        (!what.is_empty()).then(|| what.join("; "))
    }

    /// What a class is for, from what leads to it: the words of its filters.
    pub fn title_of(&self, place: &DeviceClass, filters: &[FilterDump]) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        for dump in filters.iter().filter(|dump| dump.dev == place.device) {
            let FilterEntry::Filter { handle, params, .. } = &dump.entry else { continue };
            if classid(dump) == Some(place.class) {
                let told = match params {
                    FilterParams::Fw(_) => self.what_gets_mark(*handle).unwrap_or_else(|| format!("mark {handle}")),
                    FilterParams::U32(u32) => words::keys(u32, dump.protocol == ethertype::IPV6),
                    FilterParams::Matchall(_) => "everything".to_owned(),
                    _ => words::filter(dump, &|_| None).unwrap_or_default(),
                };
                if !words.contains(&told) {
                    words.push(told);
                }
            }
        }
        if self.default_class(&place.device) == Some(place.class) {
            words.push("everything else".to_owned());
        }
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The class that `default` of the HTB or HFSC at a device's root names.
    pub(crate) fn default_class(&self, device: &str) -> Option<Handle> {
        self.ops.iter().rev().find_map(|op| match op {
            Op::Qdisc(q) if q.dev == device && q.parent == Handle::ROOT => match &q.params {
                Some(QdiscParams::Htb(htb)) if htb.default != 0 => {
                    Some(Handle::new(q.handle.major(), htb.default as u16))
                }
                Some(QdiscParams::Hfsc(hfsc)) if hfsc.default != 0 => Some(Handle::new(q.handle.major(), hfsc.default)),
                _ => None,
            },
            _ => None,
        })
    }
}
