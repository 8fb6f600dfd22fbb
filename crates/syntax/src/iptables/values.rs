//! The values of matches and targets: protocols, ports, marks, DS fields.

use crate::number::{u8_in, u16_in, u32_in};
use crate::tc::{parse_masked4, parse_prefix6};
use tidegate_policy::netfilter::{Connstate, Connstates, CountDirection, CountMode, Translation};

/// Names of protocols: iptables' own, and those of Debian's /etc/protocols.
pub(super) const PROTOCOLS: &[(&str, u8)] = &[
    ("all", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("sctp", 132),
    ("udplite", 136),
    ("ggp", 3),
    ("ipencap", 4),
    ("st", 5),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("skip", 57),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("fc", 133),
    ("mobility-header", 135),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
];

/// Names of services that scripts use.
pub(super) const SERVICES: [(&str, u16); 85] = [
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("chargen", 19),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("time", 37),
    ("whois", 43),
    ("tacacs", 49),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("gopher", 70),
    ("finger", 79),
    ("http", 80),
    ("www", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("nntp", 119),
    ("ntp", 123),
    ("epmap", 135),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("bgp", 179),
    ("ptp-event", 319),
    ("ptp-general", 320),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("ssmtp", 465),
    ("submissions", 465),
    ("isakmp", 500),
    ("syslog", 514),
    ("printer", 515),
    ("dhcpv6-client", 546),
    ("dhcpv6-server", 547),
    ("rtsp", 554),
    ("submission", 587),
    ("ipp", 631),
    ("ldaps", 636),
    ("kerberos-adm", 749),
    ("domain-s", 853),
    ("rsync", 873),
    ("ftps", 990),
    ("imaps", 993),
    ("pop3s", 995),
    ("socks", 1080),
    ("openvpn", 1194),
    ("ms-sql-s", 1433),
    ("l2f", 1701),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("nfs", 2049),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ms-wbt-server", 3389),
    ("svn", 3690),
    ("ipsec-nat-t", 4500),
    ("iax", 4569),
    ("munin", 4949),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
    ("mdns", 5353),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("redis", 6379),
    ("sane-port", 6566),
    ("ircd", 6667),
    ("http-alt", 8080),
    ("webcache", 8080),
    ("git", 9418),
    ("zabbix-agent", 10050),
    ("zabbix-trapper", 10051),
];

/// The DS field's classes.
pub(super) const DSCP_CLASSES: [(&str, u8); 22] = [
    ("CS0", 0),
    ("BE", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
];

/// The old meanings of the TOS byte.
pub(super) const TOS_NAMES: [(&str, u8); 5] = [
    ("Minimize-Delay", 0x10),
    ("Maximize-Throughput", 0x08),
    ("Maximize-Reliability", 0x04),
    ("Minimize-Cost", 0x02),
    ("Normal-Service", 0x00),
];

/// TCP's flags, as `--tcp-flags` names them.
pub(super) const TCP_FLAGS: [(&str, u8); 6] =
    [("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

fn named<N: Copy>(table: &[(&str, N)], text: &str) -> Option<N> {
    table.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number)
}

pub(super) fn protocol(text: &str) -> Option<u8> {
    named(PROTOCOLS, text).or_else(|| u8_in(text, 0))
}

pub(super) fn port(text: &str) -> Option<u16> {
    u16_in(text, 0).or_else(|| named(&SERVICES, text))
}

/// `A`, `A:B`, `A:`, `:B`; one that ends before it begins matches nothing.
pub(super) fn port_range(text: &str) -> Option<(u16, u16)> {
    match text.split_once(':') {
        None => port(text).map(|port| (port, port)),
        Some((low, high)) => {
            let low = if low.is_empty() { 0 } else { port(low)? };
            let high = if high.is_empty() { u16::MAX } else { port(high)? };
            Some((low, high))
        }
    }
}

/// The most ports of a multiport list, a range counting twice.
const MAX_PORTS: usize = 15;

/// Multiport's list: at most 15 ports, a range counting twice.
///
/// # Errors
/// iptables' words.
pub(super) fn port_list(text: &str) -> Result<Vec<(u16, u16)>, String> {
    let mut left = MAX_PORTS;
    let mut one = |text: &str| {
        left = left.checked_sub(1).ok_or("too many ports specified")?;
        port(text).ok_or_else(|| format!("invalid port/service `{text}' specified"))
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let range = match part.split_once(':') {
            None => one(part).map(|port| (port, port))?,
            Some((low, high)) => (one(low)?, one(high)?),
        };
        if part.contains(':') && range.0 >= range.1 {
            return Err("invalid portrange specified".to_owned());
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// `VALUE[/MASK]`; the mask's default is all ones.
pub(super) fn mark(text: &str) -> Option<(u32, Option<u32>)> {
    match text.split_once('/') {
        None => Some((u32_in(text, 0)?, None)),
        Some((value, mask)) => Some((u32_in(value, 0)?, Some(u32_in(mask, 0)?))),
    }
}

/// `A:B` of `--length`; one that ends before it begins matches nothing.
pub(super) fn length(text: &str) -> Option<(u16, u16)> {
    match text.split_once(':') {
        None => u16_in(text, 0).map(|length| (length, length)),
        Some((low, high)) => {
            let low = if low.is_empty() { 0 } else { u16_in(low, 0)? };
            let high = if high.is_empty() { u16::MAX } else { u16_in(high, 0)? };
            Some((low, high))
        }
    }
}

pub(super) fn dscp(text: &str) -> Option<u8> {
    u8_in(text, 0).filter(|value| *value < 64)
}

/// The first class with whose name the text begins: iptables compares no more.
pub(super) fn dscp_class(text: &str) -> Option<u8> {
    let begins = |name: &str| text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    DSCP_CLASSES.iter().find(|(name, _)| begins(name)).map(|(_, number)| *number)
}

/// `VALUE[/MASK]` or a name; a name means the six bits of the old TOS.
pub(super) fn tos(text: &str) -> Option<(u8, u8)> {
    if let Some(value) = named(&TOS_NAMES, text) {
        return Some((value, 0x3f));
    }
    match text.split_once('/') {
        None => u8_in(text, 0).map(|value| (value, 0xff)),
        Some((value, mask)) => Some((u8_in(value, 0)?, u8_in(mask, 0)?)),
    }
}

/// A list of TCP's flags: `SYN,ACK`, `ALL`, `NONE`.
pub(super) fn tcp_flags(text: &str) -> Option<u8> {
    text.split(',').try_fold(0, |bits, name| match name {
        "ALL" => Some(bits | 0x3f),
        "NONE" => Some(bits),
        _ => named(&TCP_FLAGS, name).map(|bit| bits | bit),
    })
}

/// An address or prefix; IPv4 in the last four bytes.
pub(super) fn address(text: &str, ipv6: bool) -> Option<([u8; 16], u8)> {
    if ipv6 {
        let (mut bytes, length) = parse_prefix6(text)?;
        for (index, byte) in bytes.iter_mut().enumerate() {
            let kept = length.saturating_sub(8 * index as u32).min(8);
            *byte &= 0xffu8.checked_shl(8 - kept).unwrap_or(0);
        }
        return Some((bytes, length as u8));
    }
    let (address, mask) = parse_masked4(text)?;
    let length = mask.leading_ones();
    // A mask with holes cannot be kept as a prefix.
    (mask.leading_ones() + mask.trailing_zeros() == 32 || mask == 0).then_some(())?;
    let mut bytes = [0; 16];
    bytes[12..].copy_from_slice(&(address & mask).to_be_bytes());
    Some((bytes, length as u8))
}

/// The states of a connection.
pub(super) const STATES: [(&str, Connstate); 5] = [
    ("INVALID", Connstate::Invalid),
    ("NEW", Connstate::New),
    ("RELATED", Connstate::Related),
    ("ESTABLISHED", Connstate::Established),
    ("UNTRACKED", Connstate::Untracked),
];
/// What connbytes counts.
pub(super) const COUNT_MODES: [(&str, CountMode); 3] =
    [("packets", CountMode::Packets), ("bytes", CountMode::Bytes), ("avgpkt", CountMode::Average)];
/// Where it counts.
pub(super) const COUNT_DIRECTIONS: [(&str, CountDirection); 3] = [
    ("original", CountDirection::Original),
    ("reply", CountDirection::Reply),
    ("both", CountDirection::Both),
];

/// A name of an ICMP type: its number, and the first and last of its codes.
pub(super) type IcmpName = (&'static str, u8, (u8, u8));
/// Names of ICMP types and their codes (RFC 792, RFC 1812); type 255 is any.
pub(super) const ICMP_TYPES: [IcmpName; 40] = [
    ("any", 255, (0, 255)),
    ("echo-reply", 0, (0, 255)),
    ("pong", 0, (0, 255)),
    ("destination-unreachable", 3, (0, 255)),
    ("network-unreachable", 3, (0, 0)),
    ("host-unreachable", 3, (1, 1)),
    ("protocol-unreachable", 3, (2, 2)),
    ("port-unreachable", 3, (3, 3)),
    ("fragmentation-needed", 3, (4, 4)),
    ("source-route-failed", 3, (5, 5)),
    ("network-unknown", 3, (6, 6)),
    ("host-unknown", 3, (7, 7)),
    ("network-prohibited", 3, (9, 9)),
    ("host-prohibited", 3, (10, 10)),
    ("TOS-network-unreachable", 3, (11, 11)),
    ("TOS-host-unreachable", 3, (12, 12)),
    ("communication-prohibited", 3, (13, 13)),
    ("host-precedence-violation", 3, (14, 14)),
    ("precedence-cutoff", 3, (15, 15)),
    ("source-quench", 4, (0, 255)),
    ("redirect", 5, (0, 255)),
    ("network-redirect", 5, (0, 0)),
    ("host-redirect", 5, (1, 1)),
    ("TOS-network-redirect", 5, (2, 2)),
    ("TOS-host-redirect", 5, (3, 3)),
    ("echo-request", 8, (0, 255)),
    ("ping", 8, (0, 255)),
    ("router-advertisement", 9, (0, 255)),
    ("router-solicitation", 10, (0, 255)),
    ("time-exceeded", 11, (0, 255)),
    ("ttl-exceeded", 11, (0, 255)),
    ("ttl-zero-during-transit", 11, (0, 0)),
    ("ttl-zero-during-reassembly", 11, (1, 1)),
    ("parameter-problem", 12, (0, 255)),
    ("ip-header-bad", 12, (0, 0)),
    ("required-option-missing", 12, (1, 1)),
    ("timestamp-request", 13, (0, 255)),
    ("timestamp-reply", 14, (0, 255)),
    ("address-mask-request", 17, (0, 255)),
    ("address-mask-reply", 18, (0, 255)),
];
/// Those of ICMPv6 (RFC 4443, RFC 4861).
pub(super) const ICMPV6_TYPES: [IcmpName; 28] = [
    ("destination-unreachable", 1, (0, 255)),
    ("no-route", 1, (0, 0)),
    ("communication-prohibited", 1, (1, 1)),
    ("beyond-scope", 1, (2, 2)),
    ("address-unreachable", 1, (3, 3)),
    ("port-unreachable", 1, (4, 4)),
    ("failed-policy", 1, (5, 5)),
    ("reject-route", 1, (6, 6)),
    ("packet-too-big", 2, (0, 255)),
    ("time-exceeded", 3, (0, 255)),
    ("ttl-exceeded", 3, (0, 255)),
    ("ttl-zero-during-transit", 3, (0, 0)),
    ("ttl-zero-during-reassembly", 3, (1, 1)),
    ("parameter-problem", 4, (0, 255)),
    ("bad-header", 4, (0, 0)),
    ("unknown-header-type", 4, (1, 1)),
    ("unknown-option", 4, (2, 2)),
    ("echo-request", 128, (0, 255)),
    ("ping", 128, (0, 255)),
    ("echo-reply", 129, (0, 255)),
    ("pong", 129, (0, 255)),
    ("router-solicitation", 133, (0, 255)),
    ("router-advertisement", 134, (0, 255)),
    ("neighbour-solicitation", 135, (0, 255)),
    ("neighbor-solicitation", 135, (0, 255)),
    ("neighbour-advertisement", 136, (0, 255)),
    ("neighbor-advertisement", 136, (0, 255)),
    ("redirect", 137, (0, 255)),
];

/// What REJECT answers, the customary answer first; then those of IPv6.
pub(super) const REJECTIONS: [&[&str]; 2] = [
    &[
        "icmp-port-unreachable",
        "icmp-net-unreachable",
        "icmp-host-unreachable",
        "icmp-proto-unreachable",
        "icmp-net-prohibited",
        "icmp-host-prohibited",
        "icmp-admin-prohibited",
        "tcp-reset",
    ],
    &[
        "icmp6-port-unreachable",
        "icmp6-no-route",
        "icmp6-adm-prohibited",
        "icmp6-addr-unreachable",
        "tcp-reset",
    ],
];
/// Syslog's levels by number.
pub(super) const LOG_LEVELS: [&str; 8] =
    ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];
/// What LOG notes beside, by bit.
pub(super) const LOG_FLAGS: [&str; 4] = ["tcp-sequence", "tcp-options", "ip-options", "uid"];

/// A level by name or number.
pub(super) fn log_level(text: &str) -> Option<u8> {
    let named = LOG_LEVELS.iter().position(|name| *name == text || text == "warning" && *name == "warn");
    named.map(|level| level as u8).or_else(|| text.parse().ok().filter(|level| *level < 8))
}

/// `NEW,ESTABLISHED`.
pub(super) fn states(text: &str) -> Option<Connstates> {
    text.split(',').try_fold(Connstates(0), |set, word| {
        let (_, state) = STATES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))?;
        Some(Connstates(set.0 | *state as u8))
    })
}

/// `A:B`, `A:`, `A`: an amount from A on.
pub(super) fn amount(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once(':').unwrap_or((text, ""));
    let number = |text: &str, missing: u64| if text.is_empty() { Some(missing) } else { text.parse().ok() };
    Some((number(from, 0)?, number(to, u64::MAX)?))
}

/// A name, `TYPE` or `TYPE/CODE`.
pub(super) fn icmp_type(text: &str, ipv6: bool) -> Option<(u8, (u8, u8))> {
    let names: &[IcmpName] = if ipv6 { &ICMPV6_TYPES } else { &ICMP_TYPES };
    if let Some((_, kind, codes)) = names.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text)) {
        return Some((*kind, *codes));
    }
    match text.split_once('/') {
        Some((kind, code)) => {
            let code = code.parse().ok()?;
            Some((kind.parse().ok()?, (code, code)))
        }
        None => Some((text.parse().ok()?, (0, 255))),
    }
}

/// `PORT` or `FIRST-LAST`, as translating targets take them.
pub(super) fn to_ports(text: &str) -> Result<Translation, String> {
    let bad = |text: &str| format!("Port `{text}' not valid");
    let read = |text: &str| port(text).ok_or_else(|| bad(text));
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let ports = (read(low)?, read(high)?);
    if ports.0 > ports.1 {
        return Err(format!("Port range `{high}' funky"));
    }
    Ok(Translation { ports: Some(ports), ..Translation::default() })
}

/// `ADDRESS[-ADDRESS]`, with `:PORTS` behind it or alone (`[ADDRESS]:PORTS` in IPv6).
pub(super) fn translation(text: &str, ipv6: bool) -> Result<Translation, String> {
    let (name, ports) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) if ipv6 => (name, rest.strip_prefix(':')),
        _ if ipv6 => (text, None),
        _ => text.split_once(':').map_or((text, None), |(name, ports)| (name, Some(ports))),
    };
    let whole = if ipv6 { 128 } else { 32 };
    let read = |text: &str| {
        let read = address(text, ipv6).filter(|(_, length)| *length == whole && !text.contains('/'));
        read.map(|(bytes, _)| bytes).ok_or_else(|| format!("Bad IP address \"{text}\""))
    };
    let mut to = match ports {
        Some(text) => to_ports(text)?,
        None => Translation::default(),
    };
    if !name.is_empty() || ports.is_none() {
        let (low, high) = name.split_once('-').unwrap_or((name, name));
        to.addresses = Some((read(low)?, read(high)?));
        if to.addresses.is_some_and(|(low, high)| low > high) {
            return Err(format!("Bad IP range \"{name}\""));
        }
    }
    Ok(to)
}
