//! What rules and filters ask of a packet, in a short policy's words; what has none is named.

use super::compile::CONTROL_PORTS;
use super::policy::{PortEnd, Ports};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_policy::U32Params;
use tidegate_policy::netfilter::{Condition, CountMode, NetfilterRule, NetfilterTarget};

/// The reason for a rule whose address is the LAN's on the provider's side.
pub(super) const BEHIND_PROVIDER: &str = "hosts behind the provider";

/// Which way the packets of a device go, as a short policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Towards the provider.
    Up,
    /// Towards the LAN, on the device there.
    Lan,
    /// Towards the LAN, on an ifb.
    Ifb,
}

impl Way {
    /// The end of a connection whose port is the packet's source or destination port.
    fn end(self, source: bool) -> PortEnd {
        if (self == Way::Up) == source { PortEnd::Local } else { PortEnd::Remote }
    }

    /// The other way.
    fn back(self) -> Way {
        if self == Way::Up { Way::Lan } else { Way::Up }
    }

    /// A network of the LAN's, as a packet's source or destination names it.
    fn host(self, network: String, source: bool) -> Result<String, String> {
        if (self == Way::Up) != source {
            return Err(BEHIND_PROVIDER.into());
        }
        // Where NAT hides them, as a short policy takes it, all have one address.
        match self == Way::Ifb && !network.contains(':') {
            true => Err("hosts of IPv4, which a short policy cannot classify on an ifb".into()),
            false => Ok(network),
        }
    }
}

/// What a class is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClassMatch {
    pub(super) ports: Vec<Ports>,
    pub(super) dscp: Vec<u8>,
    pub(super) hosts: Vec<String>,
    pub(super) after: Option<u64>,
    /// What the rules call it.
    pub(super) name: Option<String>,
    /// It matched what a short policy always puts first (its control class).
    pub(super) control: bool,
}

impl ClassMatch {
    /// Is nothing left that a class of a short policy may ask for?
    pub(super) fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.dscp.is_empty() && self.hosts.is_empty() && self.after.is_none()
    }

    /// The ports, joined where they may be, those of one protocol and end together.
    pub(super) fn port_texts(&self) -> Vec<String> {
        // Each protocol's, by the ends that have them; then both protocols', where they have the same.
        let of = |protocol: u8| Split::of(&self.ports, protocol);
        let (tcp, udp) = (of(6), of(17));
        let mut texts = Vec::new();
        for end in PortEnd::ALL {
            let (tcp, udp) = (tcp.by(end), udp.by(end));
            let both: Vec<(u16, u16)> = tcp.iter().filter(|range| udp.contains(range)).copied().collect();
            for (protocol, ranges) in [(Some(6), tcp), (Some(17), udp), (None, &both[..])] {
                let own = |range: &&(u16, u16)| protocol.is_none() || !both.contains(range);
                // No program has port 0.
                let text = |(low, high): &(u16, u16)| {
                    port_text(&Ports { protocol, end, range: (*low.max(&1), *high.max(&1)) })
                };
                texts.extend(ranges.iter().filter(own).map(text));
            }
        }
        texts
    }

    /// Leaves out what the built-in class takes first, and what other classes before this one take.
    pub(super) fn without(&mut self, before: &[&ClassMatch]) -> bool {
        let was = self.clone();
        let control = CONTROL_PORTS.map(|range| Ports { protocol: Some(17), end: PortEnd::Either, range });
        let taken: Vec<Ports> =
            before.iter().flat_map(|class_match| &class_match.ports).chain(&control).copied().collect();
        self.ports =
            [6u8, 17].into_iter().flat_map(|protocol| left_of(&self.ports, &taken, protocol)).collect();
        self.dscp.retain(|dscp| !before.iter().any(|class_match| class_match.dscp.contains(dscp)));
        self.hosts.retain(|host| !before.iter().any(|class_match| class_match.hosts.contains(host)));
        if before.iter().any(|class_match| {
            class_match.after.is_some_and(|after| self.after.is_some_and(|own| own >= after))
        }) {
            self.after = None;
        }
        self.control |= control.iter().any(|range| {
            was.ports.iter().any(|own| {
                own.protocol != Some(6) && own.range.0 <= range.range.1 && range.range.0 <= own.range.1
            })
        });
        was.port_texts() != self.port_texts()
            || was.dscp.len() != self.dscp.len()
            || was.hosts.len() != self.hosts.len()
            || was.after != self.after
    }

    pub(super) fn take(&mut self, other: ClassMatch) {
        self.control |= other.control;
        for port in other.ports {
            if !self.ports.contains(&port) {
                self.ports.push(port);
            }
        }
        for dscp in other.dscp {
            if !self.dscp.contains(&dscp) {
                self.dscp.push(dscp);
            }
        }
        for host in other.hosts {
            if !self.hosts.contains(&host) {
                self.hosts.push(host);
            }
        }
        self.after = self.after.or(other.after);
        self.name = self.name.take().or(other.name);
    }
}

/// The ranges of one protocol by the ends that have them: either, only the remote one, only the local one.
struct Split([Vec<(u16, u16)>; 3]);

impl Split {
    fn of(ports: &[Ports], protocol: u8) -> Split {
        let at = |end: PortEnd| {
            let of = |p: &&Ports| {
                p.protocol.is_none_or(|own| own == protocol) && (p.end == PortEnd::Either || p.end == end)
            };
            joined(ports.iter().filter(of).map(|p| p.range).collect())
        };
        let (remote, local) = (at(PortEnd::Remote), at(PortEnd::Local));
        let either = common(&remote, &local);
        let [remote, local] = [minus(&remote, &either), minus(&local, &either)];
        Split([either, remote, local])
    }

    fn by(&self, end: PortEnd) -> &[(u16, u16)] {
        &self.0[end as usize]
    }
}

/// The port ranges of one protocol that others did not take whole. A range that is left in part is given
/// whole: the class that comes first has its part anyway.
fn left_of(ports: &[Ports], taken: &[Ports], protocol: u8) -> Vec<Ports> {
    let at = |ports: &[Ports], end: PortEnd| {
        let Split([either, remote, local]) = Split::of(ports, protocol);
        joined([either, if end == PortEnd::Remote { remote } else { local }].concat())
    };
    let mut left = Vec::new();
    for end in [PortEnd::Remote, PortEnd::Local] {
        let taken = at(taken, end);
        let open = at(ports, end).into_iter().filter(|range| !minus(&[*range], &taken).is_empty());
        left.extend(open.map(|range| Ports { protocol: Some(protocol), end, range }));
    }
    left
}

/// Sorted, without overlaps.
fn joined(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u16, u16)> = Vec::new();
    for (low, high) in ranges {
        match joined.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => joined.push((low, high)),
        }
    }
    joined
}

/// What is in both; they are [`joined`].
fn common(a: &[(u16, u16)], b: &[(u16, u16)]) -> Vec<(u16, u16)> {
    let of = |x: &(u16, u16)| b.iter().map(move |y| (x.0.max(y.0), x.1.min(y.1))).collect::<Vec<_>>();
    a.iter().flat_map(of).filter(|(low, high)| low <= high).collect()
}

/// What is in the first only; they are [`joined`].
fn minus(a: &[(u16, u16)], b: &[(u16, u16)]) -> Vec<(u16, u16)> {
    let mut left = a.to_vec();
    for (low, high) in b {
        let cut = |(from, to): (u16, u16)| {
            let before = (from, to.min(low.saturating_sub(1)));
            let behind = (from.max(high.saturating_add(1)), to);
            let whole = to < *low || from > *high;
            let parts = [(before, from < *low && *low > 0), (behind, to > *high && *high < u16::MAX)];
            if whole {
                vec![(from, to)]
            } else {
                parts.into_iter().filter(|part| part.1).map(|part| part.0).collect()
            }
        };
        left = left.into_iter().flat_map(cut).collect();
    }
    left
}

/// Does a rule lead what a short policy lets never wait: short acknowledgements, neighbours looking for one
/// another?
pub(super) fn never_waits(rule: &NetfilterRule) -> bool {
    let matches = |wanted: fn(&Condition) -> bool| rule.matches.iter().any(|m| wanted(&m.what));
    let acknowledges = matches(|what| matches!(what, Condition::TcpFlags(mask, 0x10) if mask & 0x17 == 0x17));
    let is_short = matches(|what| matches!(what, Condition::Length(_, high) if *high <= 128));
    acknowledges && is_short || matches(|what| matches!(what, Condition::Protocol(58)))
}

/// A rule's conditions in a short policy's keys; a condition without one is named in the error.
pub(super) fn by_rule(rule: &NetfilterRule, way: Way) -> Result<ClassMatch, String> {
    let mut class_match = ClassMatch::default();
    let at = |end: PortEnd, range: (u16, u16), protocol| Ports { protocol, end, range };
    let protocol = rule.matches.iter().find_map(|m| match m.what {
        Condition::Protocol(number) if !m.not => Some(number),
        _ => None,
    });
    // Conditions of one rule must all hold; each key of a short policy matches alone.
    let mut given = 0;
    for found in &rule.matches {
        let single = std::slice::from_ref(&found.what);
        let all = if let Condition::Any(several) = &found.what { several.as_slice() } else { single };
        if found.not {
            return Err("the opposite of something".into());
        }
        let mut counts = true;
        for what in all {
            match what {
                Condition::Protocol(6 | 17) | Condition::Version6(_) => counts = false,
                Condition::Comment(text) => {
                    let fits = !text.is_empty()
                        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
                    class_match.name = fits.then(|| text.clone());
                    counts = false;
                }
                Condition::In(_) | Condition::Out(_) => counts = false,
                Condition::SourcePort(range) => class_match.ports.push(at(way.end(true), *range, protocol)),
                Condition::DestinationPort(range) => {
                    class_match.ports.push(at(way.end(false), *range, protocol))
                }
                Condition::SourcePorts(ranges) => {
                    class_match.ports.extend(ranges.iter().map(|range| at(way.end(true), *range, protocol)));
                }
                Condition::DestinationPorts(ranges) => {
                    class_match.ports.extend(ranges.iter().map(|range| at(way.end(false), *range, protocol)));
                }
                Condition::Ports(ranges) => {
                    class_match
                        .ports
                        .extend(ranges.iter().map(|range| at(PortEnd::Either, *range, protocol)));
                }
                Condition::Dscp(dscp) => class_match.dscp.push(*dscp),
                Condition::Tos(value, mask) if mask & 0xfc == 0xfc => class_match.dscp.push(value >> 2),
                Condition::Source(bytes, bits) => {
                    class_match.hosts.push(way.host(host_text(bytes, *bits), true)?)
                }
                Condition::Destination(bytes, bits) => {
                    class_match.hosts.push(way.host(host_text(bytes, *bits), false)?)
                }
                Condition::Connbytes(bytes) if bytes.mode == CountMode::Bytes && bytes.to == u64::MAX => {
                    class_match.after = Some(bytes.from)
                }
                // The first packet of a connection is marked, and with it the connection.
                Condition::TcpFlags(_, 2)
                    if rule.targets().any(|t| matches!(t, NetfilterTarget::Connmark(_))) =>
                {
                    counts = false
                }
                other => return Err(named(other)),
            }
        }
        given += usize::from(counts);
    }
    match given {
        0 => match protocol {
            Some(6 | 17) => {
                class_match.ports.push(at(PortEnd::Either, (1, u16::MAX), protocol));
                Ok(class_match)
            }
            Some(number) => Err(format!("all of protocol {number}")),
            None => Err("nothing".into()),
        },
        1 => Ok(class_match),
        _ => Err("several things at once".into()),
    }
}

/// The hosts of the LAN that a rule matches in packets of the other direction, where it has no other
/// conditions.
pub(super) fn hosts_of_other_way(rule: &NetfilterRule, way: Way) -> Vec<String> {
    by_rule(rule, way.back()).map_or(Vec::new(), |class_match| class_match.hosts)
}

fn named(what: &Condition) -> String {
    match what {
        Condition::TcpFlags(..) => "TCP's flags".into(),
        Condition::Length(..) => "the length".into(),
        Condition::IcmpType(..) => "messages of ICMP".into(),
        Condition::Protocol(number) => format!("all of protocol {number}"),
        Condition::Connstate(_) | Condition::State(_) => "the connection's state".into(),
        Condition::Mark(..) | Condition::Connmark(..) => "a mark".into(),
        _ => "something else".into(),
    }
}

/// The keys of a u32 filter, likewise.
pub(super) fn by_keys(params: &U32Params, v6: bool, way: Way) -> Result<ClassMatch, String> {
    if let Some(below) = acknowledgements(params).filter(|_| !v6) {
        return Err(format!(
            "short acknowledgements (packets of TCP with the flag ACK, of less than {below} bytes)"
        ));
    }
    let mut class_match = ClassMatch::default();
    let mut given = 0;
    let at = if v6 { 40 } else { 20 };
    // The protocol may be given before the ports or after them.
    let protocol = params.keys.iter().filter(|key| key.offset_mask == 0).find_map(|key| {
        match (key.offset, key.mask, v6) {
            (8, 0x00ff_0000, false) => Some((key.value >> 16) as u8),
            (4, 0x0000_ff00, true) => Some((key.value >> 8) as u8),
            _ => None,
        }
    });
    for key in params.keys.iter().filter(|key| key.mask != 0) {
        let (value, mask) = (key.value, key.mask);
        if key.offset_mask != 0 {
            return Err("what is behind the header".into());
        }
        match (key.offset, mask, v6) {
            (8, 0x00ff_0000, false) | (4, 0x0000_ff00, true) => {}
            (0, mask, false) if mask & 0xff00_ffff == 0 && mask >> 16 & 0xfc == 0xfc => {
                class_match.dscp.push((value >> 18) as u8);
                given += 1;
            }
            (0, mask, true) if mask & 0xf00f_ffff == 0 && mask >> 20 & 0xfc == 0xfc => {
                class_match.dscp.push((value >> 22) as u8);
                given += 1;
            }
            // Neighbours looking for one another never wait anyway.
            (40, _, true) if protocol == Some(58) => {
                return Ok(ClassMatch { control: true, ..ClassMatch::default() });
            }
            (offset, mask, _) if offset == at && (mask & 0xffff == 0 || mask >> 16 == 0) => {
                if let Some(other) = protocol.filter(|number| !matches!(number, 6 | 17)) {
                    return Err(format!("packets of protocol {other} by what is behind their header"));
                }
                let (low, bits) = if mask & 0xffff == 0 { (value >> 16, mask >> 16) } else { (value, mask) };
                let open = !bits & 0xffff;
                if open & (open + 1) != 0 {
                    return Err(format!("ports by the bits {bits:#x}, which are no range"));
                }
                let range = (low as u16, (low | !bits & 0xffff) as u16);
                class_match.ports.push(Ports { protocol, end: way.end(mask & 0xffff == 0), range });
                given += 1;
            }
            (12 | 16, mask, false) if mask.leading_ones() + mask.trailing_zeros() == 32 => {
                let address = Ipv4Addr::from(value);
                let bits = mask.leading_ones();
                let network = if bits == 32 { address.to_string() } else { format!("{address}/{bits}") };
                class_match.hosts.push(way.host(network, key.offset == 12)?);
                given += 1;
            }
            _ => {
                let key = format!("match u32 {value:#010x} {mask:#010x} at {}", key.offset);
                return Err(format!("bytes that a short policy cannot match (`{key}`)"));
            }
        }
    }
    match given {
        1 => Ok(class_match),
        0 => Err(match protocol {
            Some(number) => format!("all of protocol {number}"),
            None => "nothing, and takes everything".into(),
        }),
        _ => Err("several things at once".into()),
    }
}

pub(super) fn port_text(ports: &Ports) -> String {
    let (low, high) = ports.range;
    let range = if low == high { low.to_string() } else { format!("{low}-{high}") };
    let protocol = match ports.protocol {
        Some(6) => "tcp",
        Some(17) => "udp",
        _ => "",
    };
    let words = [protocol, ports.end.word(), range.as_str()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn host_text(bytes: &[u8; 16], bits: u8) -> String {
    let v4 = bytes[..12].iter().all(|byte| *byte == 0) && bits <= 32;
    let (address, most) = match v4 {
        true => (IpAddr::V4(Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15])), 32),
        false => (IpAddr::V6(Ipv6Addr::from(*bytes)), 128),
    };
    if bits == most { address.to_string() } else { format!("{address}/{bits}") }
}

/// The size in bytes (at most 128) below which packets are that a u32 filter matches, if it matches IPv4's
/// short acknowledgements: TCP behind a header without options, with the flag ACK.
pub fn acknowledgements(params: &U32Params) -> Option<u32> {
    // The bits that the keys ask for in a word, and their values; the filter is for all its keys at once.
    let word = |at: i32| {
        let here = params.keys.iter().filter(|key| key.offset == at && key.offset_mask == 0);
        here.fold((0, 0), |(value, mask), key| (value | key.value, mask | key.mask))
    };
    let ((first, lengths), (protocol, whole), (flags, bits)) = (word(0), word(8), word(32));
    let is_tcp = whole & 0x00ff_0000 == 0x00ff_0000 && protocol & 0x00ff_0000 == 6 << 16;
    let no_options = lengths & 0x0f00_0000 == 0x0f00_0000 && first & 0x0f00_0000 == 5 << 24;
    let below = (!lengths & 0xffff) + 1;
    let is_short = below <= 128 && first & lengths & 0xffff == 0;
    let flag = bits & 0x0010_0000 != 0 && flags & 0x0010_0000 != 0;
    (is_tcp && no_options && is_short && flag).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::U32Key;

    /// `match ip dport 51820 0xffff match ip protocol 17 0xff` matches UDP, as the other order does.
    #[test]
    fn a_protocol_counts_before_the_ports_and_behind_them() {
        let key = |offset: i32, value: u32, mask: u32| U32Key { offset, value, mask, offset_mask: 0 };
        let (udp, port) = (key(8, 17 << 16, 0x00ff_0000), key(20, 51_820, 0xffff));
        for keys in [vec![udp, port], vec![port, udp]] {
            let class_match =
                by_keys(&U32Params { keys, ..U32Params::default() }, false, Way::Up).expect("it has words");
            assert_eq!(class_match.ports.iter().map(|ports| ports.protocol).collect::<Vec<_>>(), [Some(17)]);
        }
    }
}
