//! Names that nft knows for numbers.

use tidegate_policy::netfilter::{ChainType, Connstate, Hook};

/// Protocols; the first name of a number is the one that is printed.
pub(super) const PROTOCOLS: [(&str, u64); 13] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipencap", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("sctp", 132),
];

/// DSCPs, as nft writes them (RFC 2474, 2597, 3246, 8622).
pub(super) const DSCPS: [(&str, u64); 23] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("be", 0),
    ("lephb", 1),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
];

/// Types of ICMP (RFC 792).
pub(super) const ICMP: [(&str, u64); 14] = [
    ("echo-reply", 0),
    ("destination-unreachable", 3),
    ("source-quench", 4),
    ("redirect", 5),
    ("echo-request", 8),
    ("router-advertisement", 9),
    ("router-solicitation", 10),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp-request", 13),
    ("timestamp-reply", 14),
    ("info-request", 15),
    ("info-reply", 16),
    ("address-mask-request", 17),
];

/// Types of ICMPv6 (RFC 4443, RFC 4861, RFC 2710).
pub(super) const ICMPV6: [(&str, u64); 15] = [
    ("destination-unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("mld-listener-query", 130),
    ("mld-listener-report", 131),
    ("mld-listener-done", 132),
    ("nd-router-solicit", 133),
    ("nd-router-advert", 134),
    ("nd-neighbor-solicit", 135),
    ("nd-neighbor-advert", 136),
    ("nd-redirect", 137),
    ("mld2-listener-report", 143),
];

/// TCP's flags, in the order in which they are printed.
pub(super) const FLAGS: [(&str, u64); 8] = [
    ("fin", 0x01),
    ("syn", 0x02),
    ("rst", 0x04),
    ("psh", 0x08),
    ("ack", 0x10),
    ("urg", 0x20),
    ("ecn", 0x40),
    ("cwr", 0x80),
];

/// States of connections, in the order in which they are printed.
pub(super) const STATES: [(&str, Connstate); 5] = [
    ("invalid", Connstate::Invalid),
    ("established", Connstate::Established),
    ("related", Connstate::Related),
    ("new", Connstate::New),
    ("untracked", Connstate::Untracked),
];

/// Priorities by name.
pub(super) const PRIORITIES: [(&str, i32); 6] =
    [("raw", -300), ("mangle", -150), ("dstnat", -100), ("filter", 0), ("security", 50), ("srcnat", 100)];

/// Levels of a log.
pub(super) const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];

/// The number of a name in a table.
pub(super) fn number<N: Copy>(table: &[(&str, N)], text: &str) -> Option<N> {
    table.iter().find(|(name, _)| *name == text).map(|(_, number)| *number)
}

/// The name of a number in a table.
pub(super) fn name<'t>(table: &[(&'t str, u64)], value: u64) -> Option<&'t str> {
    table.iter().find(|(_, number)| *number == value).map(|(name, _)| *name)
}

/// The hook of that name.
pub(super) fn hook(text: &str) -> Option<Hook> {
    Hook::ALL.into_iter().find(|hook| hook.name() == text)
}

/// The type of chain of that name.
pub(super) fn chain_type(text: &str) -> Option<ChainType> {
    [ChainType::Filter, ChainType::Route, ChainType::Nat].into_iter().find(|kind| kind.name() == text)
}

/// A priority as it is printed: by the nearest name, if one is near.
pub(super) fn priority(value: i32) -> String {
    let near = PRIORITIES.iter().find(|(_, there)| (value - there).abs() <= 10);
    match near.map(|(name, there)| (name, value - there)) {
        None => value.to_string(),
        Some((name, 0)) => (*name).to_string(),
        Some((name, more)) if more > 0 => format!("{name} + {more}"),
        Some((name, less)) => format!("{name} - {}", -less),
    }
}

/// The DSCP of that name, whatever its case, or of that number.
pub fn dscp_number(text: &str) -> Option<u8> {
    let text = text.to_lowercase();
    let named = match text.as_str() {
        "va" => Some(44),
        "le" => Some(1),
        name => number(&DSCPS, name),
    };
    named.or_else(|| text.parse().ok()).filter(|value| *value < 64).map(|value| value as u8)
}

/// What to do about a statement that is not carried out.
pub(super) fn instead_of(statement: &str) -> &'static str {
    match statement {
        "limit" | "quota" | "meter" => {
            "Without it the rule applies to every packet that the rest of it matches, at any rate."
        }
        "snat" | "dnat" | "masquerade" | "redirect" => {
            "Translate with iptables -t nat, which tidegate models: filters see other addresses behind it."
        }
        _ => "Leave it out if the policy's marks and classes do not depend on it.",
    }
}
