//! Which class each conversation takes: found on the policy's own machine, by running the conversation on a
//! fast link.
//!
//! For classes that nothing reached, the policy's rules and filters are inverted: the conditions of each are
//! made into a conversation, which is tried. A conversation that then reaches the class is a witness. Where
//! there is none, a packet out of the exact set of those that come to the class is made into a conversation;
//! and where that set is empty, nothing is tried, and the class is named with the known reason.

use crate::home::{self, InstalledTrees};
use crate::policy::TrialPolicy;
use crate::words;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_gateway::EgressPath;
use tidegate_inspect::{Arrival, Packet, PacketEntry, Reached, asked_mark};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Nanos};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, NetfilterRule, NetfilterTarget, NfCommand};
use tidegate_policy::{FilterParams, FlowerField, FlowerKey, Op, QdiscParams};
use tidegate_scenario::series::{counts, is_leaf};
use tidegate_sim::{Bulk, DatagramTraffic, HomeTraffic, Local, Parties, PingTraffic};

/// A class on a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceClass {
    /// The device's name.
    pub device: String,
    /// The class's id.
    pub class: Handle,
}

impl DeviceClass {
    /// As a report shows it: the device only where it is not the one before the modem.
    pub(crate) fn label(&self, policy: &TrialPolicy) -> String {
        if self.device == policy.wan {
            self.class.to_string()
        } else {
            format!("{} {}", self.device, self.class)
        }
    }
}

/// The leaf classes that a conversation's packets take, those with the most bytes first.
pub(crate) fn ask(policy: &TrialPolicy, traffic: &HomeTraffic, seed: u64) -> Vec<DeviceClass> {
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

/// A short version of the conversation.
fn brief(traffic: &HomeTraffic) -> HomeTraffic {
    match traffic {
        HomeTraffic::Bulk(bulk) => HomeTraffic::Bulk(Bulk { bytes: Some(40_000), start: Nanos(0), ..*bulk }),
        HomeTraffic::Ping(ping) => HomeTraffic::Ping(PingTraffic { start: Nanos(0), ..*ping }),
        HomeTraffic::Datagrams(datagrams) => {
            HomeTraffic::Datagrams(DatagramTraffic { start: Nanos(0), ..*datagrams })
        }
        HomeTraffic::Transaction(transaction) => {
            let mut transaction = transaction.clone();
            transaction.start = Nanos(0);
            HomeTraffic::Transaction(transaction)
        }
    }
}

/// A conversation made from the conditions of a rule or a filter.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// What the conversation is.
    title: String,
    /// The words of the filter that it is made from, and the class which that leads to.
    led: Option<(String, DeviceClass)>,
    pub(crate) traffic: HomeTraffic,
}

impl Candidate {
    /// What it is called beside the class that it takes: the words of its filter where that leads there,
    /// else its own, for what the filter names goes elsewhere.
    pub(crate) fn title(&self, place: &DeviceClass) -> &str {
        match &self.led {
            Some((words, to)) if to == place => words,
            _ => &self.title,
        }
    }
}

/// What is known of the leaf classes that the trial's own traffic leaves out.
#[derive(Default)]
pub(crate) struct Filled {
    /// Conversations that take them.
    pub(crate) found: Vec<(DeviceClass, Candidate)>,
    /// Classes that no packet can come to, and why.
    pub(crate) unreachable: BTreeMap<DeviceClass, String>,
    /// Classes that packets come to, though no conversation that was tried.
    pub(crate) unsent: Vec<DeviceClass>,
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
    let is_open = |place: &DeviceClass| arrivals.get(place) != Some(&Arrival::Unreachable);
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
            // Where a hash distributes packets, any traffic shows what a class does: nothing more is needed.
            if !hashed {
                found.push((place, candidate));
            }
        }
    }
    let mut filled = Filled { found, ..Filled::default() };
    for place in missing {
        match arrivals.get(&place) {
            Some(Arrival::Unreachable) => {
                drop(filled.unreachable.insert(place.clone(), reason(policy, trees, &place)))
            }
            // Another host's packets may come there.
            Some(Arrival::Hashed) => {}
            _ if hashed => {}
            Some(Arrival::Packet(_)) => filled.unsent.push(place),
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
    // A device below another one carries its frames, which the reading does not know.
    let known = places.iter().filter(|place| policy.beneath.as_ref() != Some(&place.device));
    known.map(|place| (place.clone(), reached.class(&reading, &place.device, place.class))).collect()
}

/// The conversations that a packet which comes to a class may belong to.
fn of_arrival(arrival: &Arrival) -> Vec<Candidate> {
    let Arrival::Packet(witness) = arrival else { return Vec::new() };
    let sketch = Sketch::of_packet(&witness.packet);
    let sketch =
        Sketch { gateway: matches!(witness.course, PacketEntry::Leaves(_, EgressPath::Local)), ..sketch };
    if let PacketEntry::Arrives(_) = witness.course {
        sketch.swapped().candidates()
    } else {
        sketch.candidates()
    }
}

/// Why no packet can come to a class of which that is shown.
fn reason(
    policy: &TrialPolicy,
    InstalledTrees { classes, filters, .. }: &InstalledTrees,
    place: &DeviceClass,
) -> String {
    let here = filters.iter().filter(|dump| dump.dev == place.device);
    let leading: Vec<&FilterDump> = here.filter(|dump| classid(dump) == Some(place.class)).collect();
    let named = policy.rules().any(|(_, rule)| {
        rule.targets()
            .any(|target| matches!(target, NetfilterTarget::Classify(class) if *class == place.class))
    });
    if policy.default_class(&place.device) == Some(place.class) {
        return "a filter before takes all that could come to this default class".to_owned();
    }
    let here = classes.iter().find(|class| class.dev == place.device && class.classid == place.class);
    // To classes that are made packets come only if something names them; to others priorities lead, too.
    let by_name = here.is_some_and(|class| class.kind.classes_are_made());
    if leading.is_empty() && !named && by_name {
        return "no filter, mark or default that was carried out leads to it".to_owned();
    }
    let on_leaf = leading.iter().all(|dump| is_leaf_list(dump, classes));
    let leading: Vec<&FilterDump> =
        leading.into_iter().filter(|dump| on_leaf || !is_leaf_list(dump, classes)).collect();
    let unmet = leading.iter().find_map(|dump| unmet_mark(policy, dump));
    match unmet {
        _ if named && policy.uses().comes_unmarked(&place.device) => format!(
            "rules name it, but netfilter's rules see packets only after the ingress filters have \
            redirected them to {}",
            place.device
        ),
        _ if named => {
            "no packet fits what leads to it, or a filter or rule before takes those that do".to_owned()
        }
        _ if on_leaf && !leading.is_empty() => {
            "what leads to it hangs on a class without classes below it, whose filters are never evaluated"
                .to_owned()
        }
        Some(unmet) => unmet,
        None if !leading.is_empty() && leading.iter().all(|dump| policy.uses().is_taken(dump)) => {
            "the filters before take all packets that fit those which lead to it".to_owned()
        }
        None if leading.is_empty() => {
            "no filter leads to it, and no packet comes to it by its priority: none has such a one, or a filter \
            takes it first (a socket may set any: SO_PRIORITY)"
                .to_owned()
        }
        None => "no packet fits what leads to it, or a filter or rule before takes those that do".to_owned(),
    }
}

/// Whether a filter is attached to a class of HTB or HFSC that has no classes below it.
fn is_leaf_list(dump: &FilterDump, classes: &[ClassDump]) -> bool {
    let on = classes.iter().find(|class| class.dev == dump.dev && class.classid == dump.parent);
    on.is_some_and(|class| class.classid.minor() != 0 && is_leaf(class, classes))
}

/// Why no packet has the mark that a filter matches when it comes there; `None`: one may, or the filter
/// matches no mark.
fn unmet_mark(policy: &TrialPolicy, dump: &FilterDump) -> Option<String> {
    let (mark, _) = asked_mark(&dump.entry)?;
    let uses = policy.uses();
    let writers: Vec<_> = uses.writers(dump).collect();
    let condition = format!("its filter matches mark {mark}");
    if writers.is_empty() {
        Some(format!("{condition}, which no rule that was carried out sets"))
    } else if uses.comes_unmarked(&dump.dev) {
        Some(format!(
            "{condition}, which netfilter's rules set only after the ingress filters have redirected the packets \
            to {}: none of them has the mark there",
            dump.dev
        ))
    } else if writers.iter().all(|writer| !writer.fits_protocol(dump)) {
        let (set, wants) = if dump.protocol == ethertype::IPV6 { ("IPv4", "ipv6") } else { ("IPv6", "ip") };
        Some(format!("{condition} on packets of protocol {wants}, and the rules that set it see {set} only"))
    } else if writers.iter().all(|writer| uses.is_overwritten(&writer.rule)) {
        Some(format!("{condition}, which no packet has any more when it comes to a queue"))
    } else {
        None
    }
}

/// The class that a filter leads to, among those of its qdisc or below. What filters of arriving packets name
/// is no class of the device's root, though it may be called the same.
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
                let protocol = Some(proto::UDP);
                sketches.push(Sketch { source, dsfield, protocol, ..Sketch::default() });
            }
        }
    }
    for (chain, rule) in policy.rules() {
        if rule.targets().any(|target| !matches!(target, NetfilterTarget::Accept | NetfilterTarget::Return)) {
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
            sketch.led = led(dump, words::keys(u32, dump.protocol));
            sketches.push(sketch.swapped());
            sketches.push(sketch);
        }
    }
    for dump in filters {
        if let FilterEntry::Filter { params: FilterParams::Flower(flower), .. } = &dump.entry {
            let led = words::filter(dump, None).and_then(|words| led(dump, words));
            let mut sketch = Sketch { v6: dump.protocol == ethertype::IPV6, led, ..Sketch::default() };
            flower.keys.iter().filter(|key| !key.never_holds()).for_each(|key| sketch.take_key(key));
            sketches.push(sketch.swapped());
            sketches.push(sketch);
        }
    }
    // Priorities come from the TOS field: one conversation for each.
    for dsfield in [0x00, 0x08, 0x10, 0x18, 0x20, 0x48, 0x88, 0xb8] {
        sketches.push(Sketch { dsfield, ..Sketch::default() });
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for candidate in sketches.iter().flat_map(Sketch::candidates) {
        if candidates.len() < MAX_CANDIDATES && !candidates.iter().any(|c| c.traffic == candidate.traffic) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// What conditions determine of a packet.
#[derive(Clone, Debug, Default)]
struct Sketch {
    /// The words of the filter that it is made from, and the class which that leads to.
    led: Option<(String, DeviceClass)>,
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
    fn of_rule(chain: &str, rule: &NetfilterRule) -> Sketch {
        let mut sketch = Sketch { gateway: chain.eq_ignore_ascii_case("output"), ..Sketch::default() };
        for m in rule.matches.iter().filter(|m| !m.not) {
            sketch.take(&m.what);
        }
        sketch.v6 |=
            [sketch.source, sketch.destination].into_iter().flatten().any(|address| address.is_ipv6());
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

    /// The sketch of a packet: fields without a condition are left open.
    fn of_packet(packet: &Packet) -> Sketch {
        let plain = Packet::default();
        let known = |address: IpAddr| (!address.is_unspecified()).then_some(address);
        let has_ports = tidegate_inspect::has_ports(packet.protocol);
        Sketch {
            led: None,
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
            let host =
                if key.mask.leading_ones() == 128 || !v6 && key.mask as u32 == u32::MAX { 0 } else { 9 };
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

    /// The reply: sender and receiver exchanged.
    fn swapped(&self) -> Sketch {
        Sketch {
            source: self.destination,
            destination: self.source,
            sport: self.dport,
            dport: self.sport,
            // What fits the filter is the other direction.
            led: None,
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
        let bulk = |up: bool| HomeTraffic::Bulk(Bulk { parties, ..Bulk::new(up, 0) });
        let datagrams = |protocol: u8| {
            let headers = if self.v6 { 48 } else { 28 };
            HomeTraffic::Datagrams(DatagramTraffic {
                parties,
                up: true,
                protocol,
                payload: self.length.map_or(200, |length| u32::from(length).saturating_sub(headers)),
                interval: Nanos::millis(40),
                start: Nanos(0),
            })
        };
        let ping = || HomeTraffic::Ping(PingTraffic { parties, ..PingTraffic::every(Nanos::millis(200)) });
        let kinds = match self.protocol {
            Some(proto::TCP) => vec![bulk(true), bulk(false)],
            Some(proto::ICMP | proto::ICMPV6) => vec![ping()],
            Some(other) => vec![datagrams(other)],
            None => vec![bulk(true), bulk(false), datagrams(proto::UDP), ping()],
        };
        let candidate = |traffic: HomeTraffic| {
            let title = self.words(&traffic);
            Candidate { title, led: self.led.clone(), traffic }
        };
        kinds.into_iter().map(candidate).collect()
    }

    /// What a conversation made from it is, by what was determined.
    fn words(&self, traffic: &HomeTraffic) -> String {
        let protocol = match traffic {
            HomeTraffic::Bulk(bulk) if bulk.up => "TCP upload".to_owned(),
            HomeTraffic::Bulk(_) => "TCP download".to_owned(),
            HomeTraffic::Datagrams(datagrams) => words::protocol(datagrams.protocol),
            HomeTraffic::Ping(_) => "ping".to_owned(),
            HomeTraffic::Transaction(_) => "exchange".to_owned(),
        };
        let side = |address: Option<IpAddr>, port: Option<u16>| match (address, port) {
            (Some(address), Some(port)) => Some(format!("{address} port {port}")),
            (Some(address), None) => Some(address.to_string()),
            (None, Some(port)) => Some(format!("port {port}")),
            (None, None) => None,
        };
        let here = match side(self.source, self.sport) {
            None if self.gateway => Some("the gateway itself".to_owned()),
            here => here,
        };
        let there = side(self.destination, self.dport);
        let field = (self.dsfield != 0).then(|| format!(", DS field {:#04x}", self.dsfield));
        [
            Some(protocol),
            here.map(|here| format!(" of {here}")),
            there.map(|there| format!(" with {there}")),
            field,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The words of a filter and the class that it leads to.
fn led(dump: &FilterDump, words: String) -> Option<(String, DeviceClass)> {
    Some((words, DeviceClass { device: dump.dev.clone(), class: classid(dump)? }))
}

/// Does a filter of u32 take every packet of its protocol?
fn is_open(params: &FilterParams) -> bool {
    matches!(params, FilterParams::U32(u32) if u32.mark.is_none() && u32.keys.iter().all(|key| key.mask == 0))
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
    pub(crate) fn rules(&self) -> impl Iterator<Item = (&str, &NetfilterRule)> {
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

    /// What the rules whose mark brings packets to a filter ask for, in words.
    pub(crate) fn what_brings(&self, dump: &FilterDump) -> Option<String> {
        let mut what: Vec<String> = Vec::new();
        for marker in self.uses().markers(dump) {
            let connection =
                marker.rule.targets().any(|target| matches!(target, NetfilterTarget::Connmark(_)));
            let words = words::marker(marker, connection);
            let words = if marker.by_connection { format!("connections of {words}") } else { words };
            if !what.contains(&words) {
                what.push(words);
            }
        }
        (!what.is_empty()).then(|| what.join("; "))
    }

    /// What a class is for: what its writer called it, or from what leads packets to it, the words of the
    /// filters that get any.
    pub fn title_of(&self, place: &DeviceClass, filters: &[FilterDump]) -> Option<String> {
        self.title_below(place, filters, &mut Vec::new())
    }

    /// The title, below classes that are already being named: filters may lead in a circle.
    fn title_below(
        &self,
        place: &DeviceClass,
        filters: &[FilterDump],
        reported: &mut Vec<Handle>,
    ) -> Option<String> {
        if let Some(name) = self.names.get(&(place.device.clone(), place.class)) {
            return Some(name.clone());
        }
        let mut words: Vec<String> = Vec::new();
        let here =
            filters.iter().filter(|dump| dump.dev == place.device && classid(dump) == Some(place.class));
        for dump in here.filter(|dump| !self.uses().is_idle(dump)) {
            let FilterEntry::Filter { handle, params, .. } = &dump.entry else { continue };
            let text = match params {
                FilterParams::Fw(_) => self.what_brings(dump).unwrap_or_else(|| format!("mark {handle}")),
                FilterParams::U32(u32) => words::keys(u32, dump.protocol),
                FilterParams::Matchall(_) => words::everything(dump.protocol),
                FilterParams::Flower(_) => words::flower(params, dump.protocol),
                _ => words::filter(dump, None).unwrap_or_default(),
            };
            // Others had their part before.
            let text =
                if self.uses().is_partial(dump) { words::what_is_left(text, dump.protocol) } else { text };
            // Packets come to an inner class's filters by filters above.
            let inner = DeviceClass { class: dump.parent, ..place.clone() };
            let circle = inner == *place || reported.contains(&inner.class);
            let above = if dump.parent.minor() == 0 || circle {
                None
            } else {
                reported.push(place.class);
                let above = self.title_below(&inner, filters, reported);
                reported.pop();
                above
            };
            let text = match above {
                Some(above) if matches!(params, FilterParams::Matchall(_)) || is_open(params) => above,
                Some(above) => format!("{above}: {text}"),
                None => text,
            };
            if !words.contains(&text) {
                words.push(text);
            }
        }
        for marker in self.uses().classifiers(&place.device, place.class) {
            let text = words::marker(marker, false);
            if !words.contains(&text) {
                words.push(text);
            }
        }
        let is_default = self.default_class(&place.device) == Some(place.class);
        if is_default && !self.uses().is_idle_default(&place.device, place.class) {
            let left = "everything else".to_owned();
            if !words.contains(&left) {
                words.push(left);
            }
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
                Some(QdiscParams::Hfsc(hfsc)) if hfsc.default != 0 => {
                    Some(Handle::new(q.handle.major(), hfsc.default))
                }
                _ => None,
            },
            _ => None,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::policy::Configured;
    use std::path::PathBuf;
    use tidegate_inspect::ClassNames;
    use tidegate_packet::{Pool, Seeded};
    use tidegate_shims::{Answer, Call, Machine};

    pub(crate) fn policy(script: &str) -> TrialPolicy {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        for line in script.lines() {
            let mut words = line.split_whitespace().map(str::to_owned);
            let Some(tool) = words.next() else { continue };
            let call =
                Call { tool, args: words.collect(), stdin: None, cwd: PathBuf::from("/"), netns: None };
            let reply = machine.shim(&mut pool, &mut draws).answer(&call);
            assert_eq!(reply.code, 0, "{line}: {}", String::from_utf8_lossy(&reply.stderr));
        }
        let names = ClassNames::new();
        let configured = Configured { machine, commands: 1, wan: None, lan: None, notes: Vec::new(), names };
        TrialPolicy::new(configured, crate::TrialDevices { wan: Some("eth0"), ..Default::default() })
            .expect("a policy")
    }

    fn place(device: &str, minor: u16) -> DeviceClass {
        DeviceClass { device: device.to_owned(), class: Handle::new(1, minor) }
    }

    const TREE: &str = "\
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:10 htb rate 3mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 3mbit
tc class add dev eth0 parent 1: classid 1:30 htb rate 3mbit
";

    /// Why nothing comes to class 1:20 of a device, and what it is called.
    fn without_class(rest: &str, device: &str) -> (String, Option<String>) {
        let policy = policy(&format!("{TREE}{rest}"));
        let trees = home::trees(&policy, 1);
        let place = place(device, 0x20);
        let arrivals = arrivals(&policy, std::slice::from_ref(&place));
        assert_eq!(arrivals.get(&place), Some(&Arrival::Unreachable), "{rest}");
        (reason(&policy, &trees, &place), policy.title_of(&place, &trees.filters))
    }

    #[test]
    fn a_class_without_packets_gets_the_reason() {
        let fw = "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:20\n";
        let why = |rest: &str| {
            let (why, title) = without_class(rest, "eth0");
            assert_eq!(title, None, "{rest}");
            why
        };
        // Where the policy has no rules, others may set the mark.
        let (foreign, title) = without_class(fw, "eth0");
        assert_eq!(title.as_deref(), Some("mark 3"));
        let table = [
            (why(""), "no filter, mark or default that was carried out leads to it"),
            (foreign, "its filter matches mark 3, which no rule that was carried out sets"),
            (
                why(&format!("{fw}ip6tables -t mangle -A FORWARD -j MARK --set-mark 3")),
                "its filter matches mark 3 on packets of protocol ip, and the rules that set it see IPv6 only",
            ),
            (
                why(&format!(
                    "{fw}iptables -t mangle -A FORWARD -p tcp -j MARK --set-mark 3\niptables -t mangle -A \
                    FORWARD -j MARK --set-mark 4"
                )),
                "its filter matches mark 3, which no packet has any more when it comes to a queue",
            ),
            (
                why("tc filter add dev eth0 parent 1: protocol all prio 1 matchall flowid 1:10\n\
                     tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 22 0xffff \
                     flowid 1:20"),
                "the filters before take all packets that fit those which lead to it",
            ),
            (
                why("tc filter add dev eth0 parent 1:10 protocol ip prio 2 u32 match ip dport 22 0xffff \
                    flowid 1:20"),
                "what leads to it hangs on a class without classes below it, whose filters are never evaluated",
            ),
        ];
        for (text, wanted) in table {
            assert_eq!(text, wanted);
        }
    }

    #[test]
    fn what_arrives_is_redirected_before_rules_mark_it() {
        let rest = "\
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev ifb0 root handle 1: htb default 30
tc class add dev ifb0 parent 1: classid 1:20 htb rate 3mbit
tc class add dev ifb0 parent 1: classid 1:30 htb rate 3mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:20
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb0
iptables -t mangle -A PREROUTING -p tcp -j MARK --set-mark 3
iptables -t mangle -A POSTROUTING -j MARK --set-mark 4
";
        let (why, title) = without_class(rest, "ifb0");
        assert_eq!(title, None);
        assert_eq!(
            why,
            "its filter matches mark 3, which netfilter's rules set only after the ingress filters have \
            redirected the packets to ifb0: none of them has the mark there"
        );
        let named = rest.replace(
            "-A PREROUTING -p tcp -j MARK --set-mark 3",
            "-A FORWARD -p tcp -j CLASSIFY --set-class 1:20",
        );
        let (why, _) = without_class(
            &named
                .replace("tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:20\n", ""),
            "ifb0",
        );
        assert_eq!(
            why,
            "rules name it, but netfilter's rules see packets only after the ingress filters have \
            redirected them to ifb0"
        );
    }

    /// `ip link add` makes both ends of a veth: on a machine that is made again, as on the first.
    #[test]
    fn a_veth_that_the_policy_makes_has_its_qdisc() {
        let script = "ip link add veth1 type veth peer name pveth1\ntc qdisc add dev veth1 root tbf rate \
        5mbit burst 4k limit 9k\n";
        let mut policy = policy(script);
        policy.wan = "veth1".to_owned();
        assert!(home::trees(&policy, 1).qdiscs.iter().any(|qdisc| qdisc.kind.name() == "tbf"));
        assert!(policy.reading().qdiscs.iter().any(|qdisc| qdisc.kind.name() == "tbf"));
    }

    #[test]
    fn titles_of_inner_classes_end_where_lists_share_tables_or_lead_in_a_circle() {
        let filter = |parent: &str, what: &str, to: &str| {
            format!(
                "tc filter add dev eth0 parent {parent} protocol ip prio 1 u32 match ip {what} flowid {to}\n"
            )
        };
        let tree = "tc qdisc add dev eth0 root handle 1: htb\n\
            tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit\n\
            tc class add dev eth0 parent 1:10 classid 1:11 htb rate 1mbit\n\
            tc class add dev eth0 parent 1: classid 1:20 htb rate 2mbit\n\
            tc class add dev eth0 parent 1:20 classid 1:21 htb rate 1mbit\n";
        let title = |filters: &[String], minor: u16| {
            let policy = policy(&format!("{tree}{}", filters.concat()));
            policy.title_of(&place("eth0", minor), &home::trees(&policy, 1).filters)
        };
        let hosts = [filter("1:", "src 192.168.1.10", "1:10"), filter("1:", "src 192.168.1.11", "1:20")];
        let ports = [filter("1:10", "dport 22 0xffff", "1:11"), filter("1:20", "dport 22 0xffff", "1:21")];
        let both = [hosts.clone(), ports].concat();
        assert_eq!(title(&both, 0x21).as_deref(), Some("from 192.168.1.11: port 22"));
        let circle = [filter("1:10", "dport 22 0xffff", "1:20"), filter("1:20", "dport 22 0xffff", "1:10")];
        assert!(title(&[hosts, circle].concat(), 0x20).is_some());
    }

    /// A conversation made from a filter has its words only where the filter leads to: a class that it comes
    /// to for another reason is not the class of those packets.
    #[test]
    fn conversations_are_named_after_what_they_are() {
        let policy = policy(
            "tc qdisc add dev eth0 root handle 1: prio bands 4 priomap 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3\n\
             tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.1.0/24 flowid 1:1",
        );
        let filled = fill(&policy, &home::trees(&policy, 1), &[], 1);
        let title = |minor: u16| {
            let (place, candidate) = filled.found.iter().find(|(found, _)| *found == place("eth0", minor))?;
            Some(candidate.title(place).to_owned())
        };
        assert_eq!(title(1).as_deref(), Some("to 10.0.1.0/24"));
        // Their replies come here, from that network.
        assert_eq!(title(4).as_deref(), Some("TCP upload of 10.0.1.9"));
    }

    #[test]
    fn titles_come_from_filters_that_get_packets() {
        let title = |rest: &str, minor: u16| {
            let policy = policy(&format!("{TREE}{rest}"));
            policy.title_of(&place("eth0", minor), &home::trees(&policy, 1).filters)
        };
        let behind = "tc filter add dev eth0 parent 1: protocol all prio 1 u32 match u32 0 0 flowid 1:10\n\
                      tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 22 0xffff \
                      flowid 1:10\n";
        assert_eq!(title(behind, 0x10).as_deref(), Some("everything"));
        // Nothing is left for the default.
        assert_eq!(title(behind, 0x30), None);
        assert_eq!(title("", 0x30).as_deref(), Some("everything else"));
        // What others take first is not in "everything".
        let before = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff \
        flowid 1:20\n\
                      tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match u32 0 0 flowid 1:10\n";
        assert_eq!(title(before, 0x10).as_deref(), Some("other IPv4"));
        // What comes in here and leaves here is seldom, and titles nothing where others come.
        let turned = "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10\n\
                      iptables -t mangle -A PREROUTING -i eth0 -p tcp --sport 443 -j MARK --set-mark 1\n\
                      iptables -t mangle -A FORWARD -i br0 -p udp --dport 5060 -j MARK --set-mark 1\n";
        assert_eq!(title(turned, 0x10).as_deref(), Some("udp port 5060"));
        let arp = "tc filter add dev eth0 parent 1: protocol arp prio 1 matchall flowid 1:10\n";
        assert_eq!(title(arp, 0x10).as_deref(), Some("ARP"));
        let flower = "tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 5060 \
                      src_ip 10.0.0.0/8 classid 1:10\n";
        assert_eq!(title(flower, 0x10).as_deref(), Some("udp from 10.0.0.0/8 port 5060"));
        let two = "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:10\n\
                   iptables -t mangle -A FORWARD -p udp -j MARK --set-mark 3\n\
                   ip6tables -t mangle -A FORWARD -p tcp -j MARK --set-mark 3\n";
        assert_eq!(title(two, 0x10).as_deref(), Some("udp"));
    }
}
