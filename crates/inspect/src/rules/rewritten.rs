//! R27: filters and rules that ask for what is rewritten where they do not see it: addresses that NAT
//! replaces before a packet comes to a qdisc, or puts back after it arrived; a DSCP that a later rule sets.

use super::context::{RuleContext, witness};
use super::making::at_word;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::Prober;
use crate::reach::Candidate;
use crate::reading::{PolicyModel, Step};
use crate::sets::bdd::TooLarge;
use crate::walk::ways::Way;
use crate::walk::{Parts, RuleKey, RuleSeen, fits};
use std::net::{IpAddr, Ipv4Addr};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Addrs, Dissector, Handle, dissect};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{self, Condition, Family, NetfilterTarget, NfCommand, NfOp, Translator};
use tidegate_policy::{FilterParams, FlowerField, Op};

/// Addresses of IPv4 with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Net {
    address: u32,
    mask: u32,
}

impl Net {
    fn has(self, address: u32) -> bool {
        address & self.mask == self.address & self.mask
    }

    /// Has it none but addresses of the other?
    fn within(self, other: Net) -> bool {
        self.mask & other.mask == other.mask && other.has(self.address)
    }

    /// Addresses that no router of the internet knows (RFC 1918).
    fn is_private(self) -> bool {
        let known = [([10, 0, 0, 0], 8), ([172, 16, 0, 0], 12), ([192, 168, 0, 0], 16)];
        known.into_iter().any(|(bytes, bits)| {
            self.within(Net { address: u32::from_be_bytes(bytes), mask: u32::MAX << (32 - bits) })
        })
    }

    /// `is in 192.168.1.0/24`.
    fn condition(self) -> String {
        if self.mask == u32::MAX { format!("is {self}") } else { format!("is in {self}") }
    }

    /// One of its hosts.
    fn host(self) -> Ipv4Addr {
        let first = self.address & self.mask;
        Ipv4Addr::from(if self.mask & 0xff == 0 { first | 10 } else { first })
    }
}

impl std::fmt::Display for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = Ipv4Addr::from(self.address & self.mask);
        match self.mask.leading_ones() {
            32 => write!(f, "{address}"),
            bits => write!(f, "{address}/{bits}"),
        }
    }
}

/// The network that a filter matches at one end; `None`: it does not match addresses, or others.
fn matched_net(dump: &FilterDump, is_source: bool) -> Option<Net> {
    let FilterEntry::Filter { params, .. } = &dump.entry else { return None };
    let (offset, field) = if is_source { (12, FlowerField::SrcIp) } else { (16, FlowerField::DstIp) };
    let net = match params {
        FilterParams::U32(u32) if dump.protocol == ethertype::IPV4 => {
            let mut keys = u32.keys.iter().filter(|key| key.offset_mask == 0 && key.offset == offset);
            let key = keys.next().filter(|_| keys.next().is_none())?;
            Net { address: key.value, mask: key.mask }
        }
        FilterParams::Flower(flower) if dump.protocol == ethertype::IPV4 => {
            let key = flower.keys.iter().find(|key| key.field == field && !key.range)?;
            Net { address: u32::try_from(key.value).ok()?, mask: u32::try_from(key.mask).ok()? }
        }
        _ => return None,
    };
    // What is compared are the first bits, at least the first four.
    (net.mask.leading_ones() >= 4 && net.mask.leading_ones() == net.mask.count_ones()).then_some(net)
}

/// The command by which every packet of a network that a device sends gets another source address.
fn hidden<'r>(reading: &'r PolicyModel, device: &str, net: Net) -> Option<&'r Step> {
    let tables = reading.gateway.all_tables().iter().filter(|table| table.family() != Family::Ipv6);
    for table in tables {
        for chain in table.chains() {
            let place = (table.family(), table.name(), chain.name.as_str());
            let is_last = chain.base.is_some_and(|base| base.hook == netfilter::Hook::Postrouting);
            for counted in chain.rules.iter().filter(|_| is_last) {
                // Whatever else may end the chain before leaves some as they are.
                let Some(NetfilterTarget::Translate(translate)) = &counted.rule.target else { break };
                let takes = |what: &Condition| match what {
                    Condition::Out(pattern) => fits(pattern, device),
                    Condition::Version6(v6) => !v6,
                    Condition::Source(bytes, bits) => {
                        let bytes: [u8; 4] = bytes[12..].try_into().unwrap_or_default();
                        let mask = u32::MAX.checked_shl(32 - u32::from(*bits).min(32)).unwrap_or(0);
                        net.within(Net { address: u32::from_be_bytes(bytes), mask })
                    }
                    _ => false,
                };
                let all = counted.rule.matches.iter().all(|one| !one.not && takes(&one.what));
                if all && matches!(translate.how, Translator::Masquerade | Translator::Source) {
                    return reading.step_of(reading.maker_of_rule(place, &counted.rule, 0)?);
                }
            }
        }
    }
    None
}

/// Filters for addresses that NAT hides from them.
pub(super) fn addresses(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    for (at, dump) in reading.filters.iter().enumerate() {
        if context.leaves_out(&dump.dev) {
            continue;
        }
        if let Some(net) = matched_net(dump, true) {
            found.extend(replaced(context, at, net)?);
        }
        if let Some(net) = matched_net(dump, false) {
            found.extend(put_back(context, at, net)?);
        }
    }
    Ok(found)
}

/// The paths of packets that a filter matches.
fn matched_paths(context: &RuleContext<'_>, at: usize) -> Parts {
    context.reached.walked.seen.filters.get(&at).map(|seen| seen.eligible.clone()).unwrap_or_default()
}

/// A filter on leaving packets for a source that every packet has lost by translation.
fn replaced(context: &mut RuleContext<'_>, at: usize, net: Net) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    let dump = &reading.filters[at];
    let Some(nat) = hidden(reading, &dump.dev, net) else { return Ok(None) };
    let ways = &context.reached.walked.ways;
    let routed = |way: usize| matches!(&ways[way], Way::Forwarded(device) if *device == dump.dev);
    let forwarded = Parts(matched_paths(context, at).0.into_iter().filter(|(way, _)| routed(*way)).collect());
    let Some(mut candidate) = context.reached.pick(reading, &forwarded)? else { return Ok(None) };
    candidate.packet.source = IpAddr::V4(net.host());
    let Some(source) = leaves_as(&mut context.prober, &candidate, &dump.dev) else { return Ok(None) };
    let Some(step) = context.step_of_filter(at).filter(|_| !net.has(source.into())) else { return Ok(None) };
    let before = context.hits(dump);
    // Whether this filter takes it, its counter shows.
    let _ = context.send(&candidate);
    if context.hits(dump) != before {
        return Ok(None);
    }
    // A packet that another filter leads to the same class shows nothing.
    let class = super::context::classid(dump);
    let mut ports = [443, 8080, 4000, 53].into_iter();
    let shown = ports.find_map(|port| {
        let mut other = candidate.clone();
        if port != 443 {
            other.packet.ports.1 = port;
        }
        let way = context.send(&other);
        let there = context.prober.device(&dump.dev).and_then(|id| way.stop_at(id));
        there.is_some_and(|stop| stop.leaf_class() != class).then_some((other, way))
    });
    let Some((candidate, way)) = shown else { return Ok(None) };
    let went = context.went(&way, &dump.dev);
    let fix = super::context::classid(dump).and_then(|class| by_rule(context, &candidate, class, net));
    Ok(Some(Finding {
        rule: Rule::Rewritten,
        level: Level::Warning,
        place: at_word(step, "src")
            .filter(|_| step.after("src").is_some())
            .or_else(|| at_word(step, "src_ip")),
        what: format!("what comes from {net} has another source address when it comes to this filter"),
        because: format!(
            "{} replaces it in POSTROUTING, before any qdisc of {} sees the packet: unless the new one {} \
            too, the filter never matches",
            context.line(nat),
            dump.dev,
            net.condition()
        ),
        witness: witness(&candidate, &went),
        fix,
    }))
}

/// The source address with which a packet comes to a device's tree.
fn leaves_as(prober: &mut Prober, candidate: &Candidate, device: &str) -> Option<Ipv4Addr> {
    let id = prober.device(device)?;
    let mut source = None;
    let _ = prober.travel_with(&candidate.packet, candidate.course, &mut |glimpse| {
        if let Addrs::V4(from, _) = dissect(&glimpse.head, Dissector::Legacy).addrs
            && glimpse.stop.device == id
        {
            source = Some(Ipv4Addr::from(from));
        }
    });
    source
}

/// A rule of the mangle table that gives packets the class, where the engine has it do so: it comes before
/// NAT.
fn by_rule(context: &RuleContext<'_>, candidate: &Candidate, class: Handle, net: Net) -> Option<Fix> {
    let device = candidate.packet.to.as_ref()?;
    let words = format!("-t mangle -A POSTROUTING -o {device} -s {net} -j CLASSIFY --set-class {class}");
    let args: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let parsed = tidegate_syntax::iptables::parse("iptables", &args).ok()?;
    let tidegate_syntax::iptables::IptCommand::Apply(op @ NfOp { command: NfCommand::Append(..), .. }) =
        parsed.command
    else {
        return None;
    };
    let mut prober = Prober::new(context.reading);
    prober.apply(&Op::Netfilter(op))?;
    let there = prober.travel(&candidate.packet, candidate.course).leaf_class() == Some(class);
    there.then(|| Fix {
        what: format!(
            "classify it in netfilter, which sees the address before it is replaced: iptables {words}"
        ),
        edits: Vec::new(),
    })
}

/// A filter on what arrives for a destination that packets get only after it.
fn put_back(context: &mut RuleContext<'_>, at: usize, net: Net) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    if !net.is_private() {
        return Ok(None);
    }
    // All of them come straight from one device, by which the network's packets leave with another address.
    let mut arrives = None;
    for (way, _) in matched_paths(context, at).0 {
        match &context.reached.walked.ways[way] {
            Way::Arrives(device) if arrives.as_ref().is_none_or(|known| known == device) => {
                arrives = Some(device.clone());
            }
            _ => return Ok(None),
        }
    }
    let Some(device) = arrives else { return Ok(None) };
    let Some(nat) = hidden(reading, &device, net) else { return Ok(None) };
    let Some(id) = context.prober.device(&device) else { return Ok(None) };
    // What its hosts send shows to which address the answers come.
    let Ok(mut packet) = Packet::parse("tcp 192.168.1.10:40000 > 198.51.100.7:443") else { return Ok(None) };
    packet.source = IpAddr::V4(net.host());
    packet.to = Some(device.clone());
    let course = crate::probe::PacketEntry::Leaves(id, tidegate_gateway::EgressPath::Forwarded(None));
    let candidate = Candidate { packet, course };
    let Some(source) = leaves_as(&mut context.prober, &candidate, &device) else { return Ok(None) };
    let Some(step) = context.step_of_filter(at).filter(|_| !net.has(source.into())) else { return Ok(None) };
    Ok(Some(Finding {
        rule: Rule::Rewritten,
        level: Level::Warning,
        place: at_word(step, "dst").filter(|_| step.after("dst").is_some()).or_else(|| at_word(step, "dst_ip")),
        what: format!("what arrives at {device} for {net} has the address of {device} when it comes to this \
        filter"),
        because: format!(
            "{} hides {net} behind that address, and NAT puts the hosts' own back only after the filters on \
            what arrives: unless it {} too, the filter takes none of the answers",
            context.line(nat),
            net.condition()
        ),
        witness: Some(Witness::Packet {
            packet: candidate.packet.to_string(),
            went: "the network with another source address, to which the answers come".to_owned(),
        }),
        fix: Some(Fix {
            what: "sort what leaves towards the hosts, by their own device: there the addresses are theirs again"
                .into(),
            edits: Vec::new(),
        }),
    }))
}

/// Rules for a DSCP that packets get only later, so that what the rule gives is not given to them.
pub(super) fn late(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let mut found = Vec::new();
    for (reader, rule_seen) in &known {
        let Some(rule) = context.rule(reader) else { continue };
        let mut codes = rule.matches.iter().filter_map(|one| match one.what {
            Condition::Dscp(code) if !one.not => Some(code),
            _ => None,
        });
        let Some(code) = codes.next().filter(|code| *code != 0) else { continue };
        let Some(given) = rule
            .targets()
            .find(|target| matches!(target, NetfilterTarget::Mark { .. } | NetfilterTarget::Classify(_)))
        else {
            continue;
        };
        let given = given.clone();
        for (setter, taken) in known.iter().filter(|(key, _)| key != reader) {
            let sets = context.rule(setter).into_iter().flat_map(|rule| rule.targets());
            if !sets.into_iter().any(|target| *target == NetfilterTarget::Dscp(code)) {
                continue;
            }
            if let Some(finding) = set_later(context, (reader, rule_seen, &given), (setter, taken), code)? {
                found.push(finding);
                break;
            }
        }
    }
    Ok(found)
}

fn set_later(
    context: &mut RuleContext<'_>,
    (reader, rule, given): (&RuleKey, &RuleSeen, &NetfilterTarget),
    (setter, taken): (&RuleKey, &RuleSeen),
    code: u8,
) -> Result<Option<Finding>, TooLarge> {
    let early = context.reached.walked.ways.iter().position(|way| *way == Way::ComesIn);
    let mut both = Parts::default();
    for (way, set) in &taken.matched.0 {
        let space = &mut context.reached.walked.space;
        let before = early.map_or(crate::sets::bdd::Set::NONE, |early| rule.met.by(early));
        let forwarded = matches!(context.reached.walked.ways[*way], Way::Forwarded(_));
        let met = if forwarded { space.store.or(rule.met.by(*way), before)? } else { rule.met.by(*way) };
        let before = early.map_or(crate::sets::bdd::Set::NONE, |early| rule.matched.by(early));
        let matched =
            if forwarded { space.store.or(rule.matched.by(*way), before)? } else { rule.matched.by(*way) };
        let set = space.store.and(*set, met)?;
        let set = space.store.minus(set, matched)?;
        both.add(space, *way, set)?;
    }
    // Another rule may give the same to some of them: it must be so for none.
    if both.is_empty() || context.reached.carries(setter, given, Some(&both))? != Some(false) {
        return Ok(None);
    }
    let Some(candidate) = context.reached.pick(context.reading, &both)? else { return Ok(None) };
    let way = context.send(&candidate);
    let (lost, what) = match given {
        NetfilterTarget::Mark { value, mask } => (way.mark & mask != value & mask, format!("mark {value}")),
        NetfilterTarget::Classify(class) => (Handle(way.priority) != *class, format!("class {class}")),
        _ => return Ok(None),
    };
    let (Some(step), Some(by)) = (context.step_of_rule(reader), context.step_of_rule(setter)) else {
        return Ok(None);
    };
    if !lost || way.dsfield >> 2 != code || way.dropped.is_some() {
        return Ok(None);
    }
    let by = context.line(by);
    Ok(Some(Finding {
        rule: Rule::Rewritten,
        level: Level::Warning,
        place: at_word(step, "dscp")
            .filter(|_| step.after("dscp").is_some())
            .or_else(|| at_word(step, "--dscp")),
        what: format!("what {by} gives this DSCP gets no {what} here: it is set behind this rule"),
        because: format!("a packet comes to this rule first, with the DSCP that it had, and to {by} later"),
        witness: witness(&candidate, &format!("its queue with DSCP {code:#04x} and without {what}")),
        fix: Some(Fix {
            what: format!("have the DSCP set before it is matched, or give {what} where it is set"),
            edits: Vec::new(),
        }),
    }))
}
