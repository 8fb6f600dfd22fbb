//! Rules and filters in a few words: `udp`, `tcp port 80, 443`, `tcp ACK, 40 to 64 bytes`.

use tidegate_inspect::MarkingRule;
use tidegate_inspect::bytes::condition_words;
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{
    Condition, Connbytes, Connstate, Connstates, CountMode, Match, NetfilterRule,
};
use tidegate_policy::{FilterOp, FilterParams, FlowKeySet, U32Key, U32Params};
use tidegate_syntax::tc::conditions;

/// The conditions of a rule, interfaces left out; `connection`: it marks whole connections, so that only the
/// first packet must match.
fn rule(rule: &NetfilterRule, connection: bool) -> String {
    let selected = rule.matches.iter().filter(|m| !(connection && matches!(m.what, Condition::TcpFlags(..))));
    let words: Vec<String> = selected.filter_map(condition).collect();
    if !words.is_empty() {
        return words.join(" ");
    }
    let by = matched_devices(rule);
    if by.is_empty() { "everything".to_owned() } else { by.join(" and ") }
}

/// As [`rule`]; a rule without conditions says by its chain which packets there are.
pub(super) fn marker(marker: &MarkingRule, connection: bool) -> String {
    let text = rule(&marker.rule, connection);
    match marker.chain.as_str() {
        "OUTPUT" if text == "everything" && !marker.is_nft => "what the gateway itself sends".to_owned(),
        "FORWARD" if text == "everything" && !marker.is_nft => "what is forwarded".to_owned(),
        _ => text,
    }
}

/// The devices that a rule matches, in words.
fn matched_devices(rule: &NetfilterRule) -> Vec<String> {
    let word = |m: &Match| match &m.what {
        Condition::In(name) if m.not => Some(format!("what does not arrive at {name}")),
        Condition::In(name) => Some(format!("what arrives at {name}")),
        // Which device packets leave by is known where a class's title is read, unless they do not.
        Condition::Out(name) if m.not => Some(format!("what does not leave by {name}")),
        _ => None,
    };
    rule.matches.iter().filter_map(word).collect()
}

/// What remains for a filter that matches everything of its protocol, behind filters that take a part.
pub(super) fn what_is_left(text: String, protocol: u16) -> String {
    let left = match protocol {
        ethertype::IPV4 => "other IPv4",
        ethertype::IPV6 => "other IPv6",
        FilterOp::ALL => "everything else",
        _ => return text,
    };
    let all = everything(protocol);
    let part =
        |part: &str| if part == "everything" || part == all { left.to_owned() } else { part.to_owned() };
    text.split("; ").map(part).collect::<Vec<_>>().join("; ")
}

fn condition(m: &Match) -> Option<String> {
    let not = if m.not { "not " } else { "" };
    let words = match &m.what {
        Condition::Protocol(0) | Condition::In(_) | Condition::Out(_) => return None,
        Condition::Protocol(number) => protocol(*number),
        Condition::Source(net, bits) => format!("from {}", network(net, *bits)),
        Condition::Destination(net, bits) => format!("to {}", network(net, *bits)),
        Condition::SourcePort(range) => format!("from port {}", ports(&[*range])),
        Condition::DestinationPort(range) => format!("port {}", ports(&[*range])),
        Condition::SourcePorts(ranges) => format!("from port {}", ports(ranges)),
        Condition::DestinationPorts(ranges) | Condition::Ports(ranges) => format!("port {}", ports(ranges)),
        Condition::TcpFlags(mask, comp) => flags(*mask, *comp),
        // Not marked yet: as every packet is at first.
        Condition::Mark(0, _) | Condition::Connmark(0, _) if !m.not => return None,
        Condition::Mark(value, mask) => format!("mark {}", masked(*value, *mask)),
        Condition::Length(low, high) => format!("of {low} to {high} bytes"),
        Condition::Dscp(dscp) => format!("DSCP {}", dscp_name(*dscp)),
        Condition::Tos(value, mask) => tos(*value, *mask),
        Condition::Connmark(value, mask) => format!("of connections marked {}", masked(*value, *mask)),
        Condition::Connstate(states) | Condition::State(states) => {
            format!("of {} connections", state_names(*states))
        }
        Condition::Connbytes(range) => carried(range),
        Condition::IcmpType(kind, _) => format!("type {kind}"),
        Condition::Comment(_) => return None,
        Condition::Version6(v6) => if *v6 { "IPv6" } else { "IPv4" }.to_owned(),
        Condition::Any(several) => {
            let one = |what: &Condition| condition(&Match { not: false, what: what.clone() });
            several.iter().filter_map(one).collect::<Vec<_>>().join(" or ")
        }
    };
    Some(format!("{not}{words}"))
}

fn state_names(states: Connstates) -> String {
    let all = [
        (Connstate::New, "new"),
        (Connstate::Established, "established"),
        (Connstate::Related, "related"),
        (Connstate::Invalid, "no"),
        (Connstate::Untracked, "untracked"),
    ];
    all.iter().filter(|(state, _)| states.has(*state)).map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
}

/// The condition of connbytes: `after 6.00 MB`.
fn carried(range: &Connbytes) -> String {
    let amount = |n: u64| match range.mode {
        CountMode::Packets => format!("{n} packets"),
        CountMode::Bytes => tidegate_measure::numbers::size(n),
        CountMode::Average => format!("{n} bytes a packet"),
    };
    match (range.from, range.to) {
        (from, u64::MAX) => format!("after {}", amount(from)),
        (0, to) => format!("up to {}", amount(to)),
        (from, to) => format!("between {} and {}", amount(from), amount(to)),
    }
}

pub(crate) fn protocol(number: u8) -> String {
    match number {
        proto::TCP => "tcp".into(),
        proto::UDP => "udp".into(),
        proto::ICMP => "icmp".into(),
        proto::ICMPV6 => "icmpv6".into(),
        proto::GRE => "gre".into(),
        proto::IPIP => "ip in ip".into(),
        proto::IPV6 => "ipv6 in ip".into(),
        50 => "esp".into(),
        other => format!("protocol {other}"),
    }
}

fn network(net: &[u8; 16], bits: u8) -> String {
    let v4 = net[..12].iter().all(|&b| b == 0);
    let address = if v4 {
        std::net::Ipv4Addr::new(net[12], net[13], net[14], net[15]).to_string()
    } else {
        std::net::Ipv6Addr::from(*net).to_string()
    };
    if bits == if v4 { 32 } else { 128 } { address } else { format!("{address}/{bits}") }
}

fn ports(ranges: &[(u16, u16)]) -> String {
    let range =
        |&(low, high): &(u16, u16)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

const FLAGS: [&str; 6] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];

/// Flags that must be set; those that must not are left out.
fn flags(mask: u8, comp: u8) -> String {
    let names =
        FLAGS.iter().enumerate().filter(|(bit, _)| comp & mask & 1 << bit != 0).map(|(_, name)| *name);
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "without flags".into() } else { names.join("+") }
}

fn masked(value: u32, mask: u32) -> String {
    if mask == u32::MAX { value.to_string() } else { format!("{value:#x}/{mask:#x}") }
}

fn masked8(value: u8, mask: u8) -> String {
    if mask == u8::MAX { format!("{value:#04x}") } else { format!("{value:#04x}/{mask:#04x}") }
}

/// The name of a DSCP (RFC 2474, 2597, 3246), or its number.
pub(super) fn dscp_name(dscp: u8) -> String {
    match dscp {
        46 => "EF".into(),
        dscp if dscp & 7 == 0 => format!("CS{}", dscp >> 3),
        dscp if dscp & 1 == 0 && (1..=4).contains(&(dscp >> 3)) => {
            format!("AF{}{}", dscp >> 3, dscp >> 1 & 3)
        }
        dscp => dscp.to_string(),
    }
}

/// A filter and its conditions; `marked`: the conditions of the rules that set its mark.
pub(super) fn filter(dump: &FilterDump, marked: Option<String>) -> Option<String> {
    let FilterEntry::Filter { handle, params, .. } = &dump.entry else { return None };
    Some(match params {
        FilterParams::Fw(_) => {
            let what = marked.map_or_else(String::new, |what| format!(": {what}"));
            format!("mark {handle}{what}")
        }
        FilterParams::U32(u32) => format!("u32 {}", keys(u32, dump.protocol)),
        FilterParams::Flow(flow) => {
            let names = FlowKeySet::NAMES.iter().enumerate().filter(|(bit, _)| flow.keys.has(*bit as u32));
            let names: Vec<&str> = names.map(|(_, name)| *name).collect();
            format!("flow by {}", names.join(", "))
        }
        FilterParams::Matchall(_) => everything(dump.protocol),
        // In tc's words.
        FilterParams::Flower(_) | FilterParams::Basic(_) => {
            let conditions = condition_words(params);
            match conditions.trim() {
                "" => everything(dump.protocol),
                conditions => conditions.to_owned(),
            }
        }
        FilterParams::Cgroup(_) => "cgroup".to_owned(),
        FilterParams::Route(_) => "route".to_owned(),
    })
}

/// The conditions of a filter of flower, in the words of u32's where these have some.
pub(super) fn flower(params: &FilterParams, protocol: u16) -> String {
    let conditions = conditions(params);
    let words = conditions.iter().filter_map(|condition| {
        let text = condition.text.as_str();
        let (name, value) = text.split_once(' ').unwrap_or((text, ""));
        Some(match name {
            // The filter's protocol is known.
            "eth_type" => return None,
            "ip_proto" => value.to_owned(),
            "src_ip" => format!("from {value}"),
            "dst_ip" => format!("to {value}"),
            "src_port" => format!("from port {value}"),
            "dst_port" => format!("port {value}"),
            _ => text.to_owned(),
        })
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { everything(protocol) } else { words.join(" ") }
}

/// All packets of a filter's protocol.
pub(super) fn everything(protocol: u16) -> String {
    match protocol {
        ethertype::IPV4 => "all IPv4".to_owned(),
        ethertype::IPV6 => "all IPv6".to_owned(),
        ethertype::ARP => "ARP".to_owned(),
        FilterOp::ALL => "everything".to_owned(),
        other => format!("all of protocol {other:#06x}"),
    }
}

/// The conditions of a u32 filter of a protocol, in words where they are known.
pub(super) fn keys(params: &U32Params, protocol: u16) -> String {
    let v6 = protocol == ethertype::IPV6;
    let mut words: Vec<String> =
        params.keys.iter().filter_map(|k| if v6 { key6(k) } else { key(k) }).collect();
    if let Some((value, mask)) = params.mark {
        words.push(format!("mark {}", masked(value, mask)));
    }
    if words.is_empty() { everything(protocol) } else { words.join(" ") }
}

fn key(key: &U32Key) -> Option<String> {
    let (value, mask) = (key.value, key.mask);
    let next = key.offset_mask != 0;
    Some(match (key.offset, mask, next) {
        (_, 0, _) => return None,
        (0, mask, false) if mask & 0xff00_ffff == 0 => tos((value >> 16) as u8, (mask >> 16) as u8),
        (8, 0x00ff_0000, false) => protocol((value >> 16) as u8),
        (12, _, false) => format!("from {}", prefix(value, mask)),
        (16, _, false) => format!("to {}", prefix(value, mask)),
        (20, 0xffff_0000, false) | (0, 0xffff_0000, true) => format!("from port {}", value >> 16),
        (20, 0x0000_ffff, false) | (0, 0x0000_ffff, true) => format!("port {value}"),
        (20, mask, false) | (0, mask, true) => port_range(value, mask).unwrap_or_else(|| raw(key)),
        _ => raw(key),
    })
}

/// The ports that a mask matches together, where only one end is compared.
fn port_range(value: u32, mask: u32) -> Option<String> {
    let (word, value, mask) = match (mask >> 16, mask & 0xffff) {
        (0, low @ 1..) => ("port", value & 0xffff, low),
        (high @ 1.., 0) => ("from port", value >> 16, high),
        _ => return None,
    };
    let open = !mask & 0xffff;
    // ICMP's type is in the same place, in eight bits.
    let is_range = open & (open + 1) == 0 && open < 0xff;
    is_range.then(|| format!("{word} {}", ports(&[((value & mask) as u16, (value & mask | open) as u16)])))
}

fn key6(key: &U32Key) -> Option<String> {
    let (value, mask) = (key.value, key.mask);
    Some(match (key.offset, mask) {
        (_, 0) => return None,
        (0, mask) if mask & 0xf00f_ffff == 0 => tos((value >> 20) as u8, (mask >> 20) as u8),
        (4, 0x0000_ff00) => protocol((value >> 8) as u8),
        (40, 0xffff_0000) => format!("from port {}", value >> 16),
        (40, 0x0000_ffff) => format!("port {value}"),
        (40, mask) => port_range(value, mask).unwrap_or_else(|| raw(key)),
        _ => raw(key),
    })
}

fn raw(key: &U32Key) -> String {
    let from = if key.offset_mask != 0 { "nexthdr+" } else { "" };
    format!("{:#010x}/{:#010x} at {from}{}", key.value, key.mask, key.offset)
}

/// A TOS byte; where the mask takes all of a DSCP that has a name, that.
fn tos(value: u8, mask: u8) -> String {
    let name = dscp_name(value >> 2);
    let named = mask == 0xfc && value & 3 == 0 && !name.starts_with(|c: char| c.is_ascii_digit());
    if named { format!("DSCP {name}") } else { format!("TOS {}", masked8(value, mask)) }
}

fn prefix(value: u32, mask: u32) -> String {
    let address = std::net::Ipv4Addr::from(value);
    match mask.leading_ones() {
        32 => address.to_string(),
        ones if ones + mask.trailing_zeros() == 32 => format!("{address}/{ones}"),
        _ => format!("{address}/{}", std::net::Ipv4Addr::from(mask)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition_match(what: Condition) -> Match {
        Match { not: false, what }
    }

    #[test]
    fn rules_in_words() {
        let all = |matches: Vec<Match>, connection| {
            rule(&NetfilterRule { matches, ..NetfilterRule::default() }, connection)
        };
        let tcp = || condition_match(Condition::Protocol(6));
        let rows = [
            all(vec![], false),
            all(
                vec![
                    condition_match(Condition::Out("eth0".into())),
                    condition_match(Condition::Protocol(17)),
                ],
                false,
            ),
            all(
                vec![tcp(), condition_match(Condition::DestinationPorts(vec![(80, 80), (8000, 8100)]))],
                false,
            ),
            all(
                vec![
                    tcp(),
                    condition_match(Condition::TcpFlags(2, 2)),
                    condition_match(Condition::DestinationPort((22, 22))),
                ],
                true,
            ),
            all(
                vec![
                    tcp(),
                    condition_match(Condition::TcpFlags(0x3f, 0x10)),
                    condition_match(Condition::Length(40, 64)),
                ],
                false,
            ),
            all(
                vec![
                    Match { not: true, what: Condition::Dscp(8) },
                    condition_match(Condition::Tos(0x10, 0x1c)),
                ],
                false,
            ),
        ];
        assert_eq!(all(vec![condition_match(Condition::In("br0".into()))], false), "what arrives at br0");
        let elsewhere = Match { not: true, what: Condition::Out("eth0".into()) };
        assert_eq!(
            all(vec![elsewhere, condition_match(Condition::In("br0".into()))], false),
            "what does not leave by eth0 and what arrives at br0"
        );
        let expected = [
            "everything",
            "udp",
            "tcp port 80, 8000-8100",
            "tcp port 22",
            "tcp ACK of 40 to 64 bytes",
            "not DSCP CS1 TOS 0x10/0x1c",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn where_others_have_a_part_it_is_not_everything() {
        let left = |text: &str, protocol| what_is_left(text.to_owned(), protocol);
        assert_eq!(left("everything", FilterOp::ALL), "everything else");
        assert_eq!(left("all IPv4", ethertype::IPV4), "other IPv4");
        assert_eq!(left("udp; everything", ethertype::IPV4), "udp; other IPv4");
        assert_eq!(left("tcp port 22", ethertype::IPV4), "tcp port 22");
    }

    #[test]
    fn keys_in_words() {
        let one = |value, mask, offset, offset_mask| {
            keys(
                &U32Params {
                    keys: vec![U32Key { value, mask, offset, offset_mask }],
                    ..U32Params::default()
                },
                ethertype::IPV4,
            )
        };
        let rows = [
            one(0, 0, 0, 0),
            one(0x0010_0000, 0x001c_0000, 0, 0),
            one(0x00b8_0000, 0x00fc_0000, 0, 0),
            one(0x0029_0000, 0x00ff_0000, 8, 0),
            one(0xc0a8_0100, 0xffff_ff00, 12, 0),
            one(80, 0xffff, 20, 0),
            one(22 << 16, 0xffff_0000, 0, -1),
            one(1, 7, 33, 0),
            one(0x13c4_0000, 0xfffe_0000, 20, 0),
        ];
        let expected = [
            "all IPv4",
            "TOS 0x10/0x1c",
            "DSCP EF",
            "ipv6 in ip",
            "from 192.168.1.0/24",
            "port 80",
            "from port 22",
            "0x00000001/0x00000007 at 33",
            "from port 5060-5061",
        ];
        assert_eq!(rows, expected);
    }
}
