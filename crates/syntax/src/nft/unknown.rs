//! Words that nft does not know either, where a match or a statement should begin or a field should stand,
//! and how nft 1.0.6 complains of them.

use super::cursor::Cursor;
use super::lex::{Kind, Span};
use super::wrong::Wrong;

/// Words that are no names anywhere.
const KEYWORDS: [&str; 15] = [
    "priority", "hook", "chain", "table", "rule", "device", "size", "map", "handle", "position", "index",
    "flush", "list", "vmap", "ecn",
];
/// Words that cannot follow a value.
const NO_OPERATORS: [&str; 23] = [
    "set",
    "accept",
    "drop",
    "return",
    "continue",
    "jump",
    "goto",
    "queue",
    "reject",
    "counter",
    "comment",
    "log",
    "limit",
    "masquerade",
    "meta",
    "mark",
    "ct",
    "th",
    "iif",
    "oif",
    "iifname",
    "oifname",
    "priority",
];
/// What `meta` can be asked for.
const META: &str = "length, protocol, priority, mark, iif, oif, iifname, oifname, iiftype, oiftype, skuid, skgid, \
    nftrace, rtclassid, secmark, nfproto, l4proto, ibrname, obrname, pkttype, cpu, iifgroup, oifgroup, cgroup, \
    random, ipsec, iifkind, oifkind, ibrpvid, ibrvproto, time, day, hour, sdif, sdifname";
/// The fields of headers and of connections.
const FIELDS: [(&str, &[&str]); 5] = [
    (
        "ip",
        &[
            "version",
            "hdrlength",
            "dscp",
            "ecn",
            "length",
            "id",
            "frag-off",
            "ttl",
            "protocol",
            "checksum",
            "saddr",
            "daddr",
            "option",
        ],
    ),
    ("ip6", &["version", "dscp", "ecn", "flowlabel", "length", "nexthdr", "hoplimit", "saddr", "daddr"]),
    ("icmp", &["type", "code", "checksum", "id", "sequence", "gateway", "mtu"]),
    (
        "icmpv6",
        &[
            "type",
            "code",
            "checksum",
            "parameter-problem",
            "packet-too-big",
            "id",
            "sequence",
            "max-delay",
            "taddr",
            "daddr",
        ],
    ),
    (
        "ct",
        &[
            "expiration",
            "helper",
            "bytes",
            "packets",
            "avgpkt",
            "l3proto",
            "protocol",
            "proto-src",
            "proto-dst",
            "state",
            "direction",
            "status",
            "mark",
            "saddr",
            "daddr",
            "id",
            "zone",
            "label",
            "count",
            "secmark",
            "original",
            "reply",
            "ip",
            "ip6",
            "timeout",
            "expectation",
            "event",
        ],
    ),
];

/// The complaint about the word here, with which neither a match nor a statement begins. nft takes it for a
/// value where a value may be compared with something, so that what follows decides.
pub(super) fn beginning(cursor: &mut Cursor<'_>) -> Wrong {
    let token = cursor.peek();
    let word = token.text.as_str();
    if token.kind != Kind::Word {
        return cursor.unexpected();
    }
    let wrong = if KEYWORDS.contains(&word) {
        unexpected(token.span, word)
    } else {
        cursor.next();
        match cursor.text() {
            next if cursor.kind() == Kind::Word && NO_OPERATORS.contains(&next) => {
                unexpected(cursor.here(), next)
            }
            _ if cursor.at_end() => cursor.unexpected(),
            _ => Wrong::new(token.span, "No symbol type information"),
        }
    };
    let example = match word {
        "dscp" | "ecn" | "saddr" | "daddr" | "length" | "ttl" | "protocol" => format!("ip {word}, or ip6 …"),
        "tos" => "ip dscp, or ip6 dscp".to_owned(),
        "sport" | "dport" | "port" => "tcp dport, or udp dport".to_owned(),
        "priority" | "classid" => "meta priority set 1:10".to_owned(),
        "state" => "ct state".to_owned(),
        _ => return wrong,
    };
    wrong.remedy(format!("Name the header or the kind of value before it: {example}."))
}

/// The complaint about a field of a header or of the connection, where nft does not know it either.
pub(super) fn field(header: &str, name: &str, span: Span) -> Option<Wrong> {
    let (_, known) = FIELDS.iter().find(|(of, _)| *of == header)?;
    let remedy = || match name {
        "tos" => format!("Write {header} dscp, which is the upper six bits of that byte."),
        _ => format!("Known are {}.", known.join(", ")),
    };
    (!known.contains(&name)).then(|| Wrong::new(span, "syntax error, unexpected string").remedy(remedy()))
}

/// The complaint about what `meta` is asked for, where nft does not know it either; `whole` is the match or
/// statement.
pub(super) fn meta(name: &str, whole: Span) -> Option<Wrong> {
    let remedy = match name {
        "classid" | "class" => "Write meta priority set 1:10.",
        _ => "Look for the one that is meant among them.",
    };
    META.split(", ").all(|known| known != name).then(|| {
        Wrong::new(whole, format!("syntax error, unexpected {name}, known keys are {META}")).remedy(remedy)
    })
}

fn unexpected(span: Span, what: &str) -> Wrong {
    Wrong::new(span, format!("syntax error, unexpected {what}"))
}
