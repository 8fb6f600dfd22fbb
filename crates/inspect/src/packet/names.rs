//! Names of numbers in headers.

use tidegate_packet::header::{proto, tcp_flags};

/// Protocols that have a word of their own.
pub(crate) const PROTOCOLS: &[(&str, u8)] = &[
    ("tcp", proto::TCP),
    ("udp", proto::UDP),
    ("icmp", proto::ICMP),
    ("icmp6", proto::ICMPV6),
    ("igmp", 2),
    ("ipip", proto::IPIP),
    ("sit", proto::IPV6),
    ("gre", proto::GRE),
    ("esp", 50),
    ("ah", 51),
    ("dccp", 33),
    ("sctp", 132),
    ("udplite", 136),
];

/// TCP's flags, in the order of people's words.
pub(crate) const TCP_FLAGS: &[(&str, u8)] = &[
    ("syn", tcp_flags::SYN),
    ("ack", tcp_flags::ACK),
    ("fin", tcp_flags::FIN),
    ("rst", tcp_flags::RST),
    ("psh", tcp_flags::PSH),
    ("urg", tcp_flags::URG),
    ("ece", tcp_flags::ECE),
    ("cwr", tcp_flags::CWR),
];

/// Code points (RFC 2474, 2597, 3246, 5865, 8622, 9956).
pub const CODE_POINTS: &[(&str, u8)] = &[
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("NQB", 45),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

/// The ECN field.
pub(crate) const ECN: &[(&str, u8)] = &[("ect1", 1), ("ect0", 2), ("ce", 3)];

/// Messages of ICMP: type, and code where it has one name.
pub(crate) const ICMP: &[(&str, u8)] =
    &[("echo", 8), ("echo-reply", 0), ("unreachable", 3), ("time-exceeded", 11)];

/// Messages of ICMPv6.
pub(crate) const ICMPV6: &[(&str, u8)] = &[
    ("echo", 128),
    ("echo-reply", 129),
    ("unreachable", 1),
    ("too-big", 2),
    ("time-exceeded", 3),
    ("router-solicitation", 133),
    ("router-advertisement", 134),
    ("neighbour-solicitation", 135),
    ("neighbour-advertisement", 136),
];

/// The number of a name; letters large or small.
pub(crate) fn number(table: &[(&str, u8)], name: &str) -> Option<u8> {
    table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
}

/// The name of a number.
pub(crate) fn name<'a>(table: &[(&'a str, u8)], number: u8) -> Option<&'a str> {
    table.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// The word for a protocol, if it has one.
pub(crate) fn protocol_word(protocol: u8) -> Option<&'static str> {
    name(PROTOCOLS, protocol)
}
