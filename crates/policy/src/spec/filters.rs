//! The tables of the filters: their words are read by hand in `syntax`, because most are not `name value`;
//! the tables carry the help.

use super::table::{FilterSpec, OptionSpec, ValueKind};

/// What every kind takes at its end.
const ACTION: OptionSpec = OptionSpec::exact(
    "action",
    ValueKind::Ignored,
    "",
    "at the end: pass, drop, continue, reclassify, pipe, goto chain N, police …, skbedit …, mirred egress \
    redirect|mirror dev DEVICE; several in turn",
);

/// fw.
pub const FW: FilterSpec = FilterSpec {
    name: "fw",
    title: "by firewall mark; `handle MARK[/MASK]` before the kind says which",
    options: &[
        OptionSpec::short("classid", ValueKind::Hex, "the mark itself", "class of matching packets")
            .or(&["flowid"]),
        ACTION,
    ],
};

/// u32.
pub const U32: FilterSpec = FilterSpec {
    name: "u32",
    title: "by bits of the packet's header",
    options: &[
        OptionSpec::short(
            "match",
            ValueKind::Ignored,
            "",
            "ip|ip6|tcp|udp|icmp|ether FIELD VALUE MASK, u8|u16|u32 VALUE MASK at OFFSET, mark VALUE MASK",
        ),
        OptionSpec::short("classid", ValueKind::Hex, "none", "class of matching packets").or(&["flowid"]),
        OptionSpec::exact("ht", ValueKind::Hex, "800:", "the hash table that it is added to"),
        OptionSpec::exact(
            "divisor",
            ValueKind::Number,
            "",
            "create a hash table with this number of buckets instead of a filter (handle 2: before \
        u32)",
        ),
        OptionSpec::exact("link", ValueKind::Hex, "none", "the hash table to search for matching packets"),
        OptionSpec::exact(
            "hashkey",
            ValueKind::Ignored,
            "bucket 0",
            "mask MASK at OFFSET: the bits that select the bucket of the linked table",
        ),
        OptionSpec::exact(
            "offset",
            ValueKind::Ignored,
            "none",
            "at OFFSET mask MASK shift N plus N eat: the position of the next header",
        ),
        OptionSpec::exact(
            "sample",
            ValueKind::Ignored,
            "",
            "MATCH [divisor N]: add it to the bucket of such packets",
        ),
        OptionSpec::exact(
            "order",
            ValueKind::Hex,
            "the next free",
            "position in its bucket: lower ones are evaluated first",
        ),
        ACTION,
    ],
};

/// flow.
pub const FLOW: FilterSpec = FilterSpec {
    name: "flow",
    title: "spread flows over classes by a hash of keys (`hash keys K,…`), or compute with one key (`map \
    key K`)",
    options: &[
        OptionSpec::short("hash", ValueKind::Flag, "", "hash the keys"),
        OptionSpec::short("map", ValueKind::Flag, "this", "compute with one key"),
        OptionSpec::short(
            "keys",
            ValueKind::Ignored,
            "",
            "src, dst, proto, proto-src, proto-dst, mark, priority …, with commas",
        ),
        OptionSpec::short("and", ValueKind::Number, "all bits", "map: keep these bits"),
        OptionSpec::short("or", ValueKind::Number, "0", "map: set these bits"),
        OptionSpec::short("xor", ValueKind::Number, "0", "map: flip these bits"),
        OptionSpec::short("rshift", ValueKind::Number, "0", "map: shift right by this number of bits"),
        OptionSpec::short(
            "addend",
            ValueKind::Number,
            "0",
            "map: add a number or an address, or subtract an address (-A.B.C.D)",
        ),
        OptionSpec::short("divisor", ValueKind::Number, "none", "the result is taken modulo this"),
        OptionSpec::short("baseclass", ValueKind::Hex, "class 1 of the qdisc", "the class of result 0"),
        OptionSpec::short(
            "perturb",
            ValueKind::Number,
            "never",
            "seconds between changes of the hash's seed",
        ),
        OptionSpec::short(
            "match",
            ValueKind::Ignored,
            "everything",
            "conditions that packets must meet, as in basic",
        ),
        ACTION,
    ],
};

/// matchall.
pub const MATCHALL: FilterSpec = FilterSpec {
    name: "matchall",
    title: "every packet",
    options: &[
        OptionSpec::short("classid", ValueKind::Hex, "none", "class of the packets").or(&["flowid"]),
        ACTION,
    ],
};

/// basic.
pub const BASIC: FilterSpec = FilterSpec {
    name: "basic",
    title: "by an expression of several conditions: and, or, not, parentheses",
    options: &[
        OptionSpec::short(
            "match",
            ValueKind::Ignored,
            "everything",
            "cmp(u16 at 2 layer transport gt 1023), nbyte(\"AB\" at 20), u32(u32 0x0a000000 0xff000000 at \
            12), meta(nf_mark mask 0xf eq 3), joined",
        ),
        OptionSpec::short("classid", ValueKind::Hex, "none", "class of matching packets").or(&["flowid"]),
        ACTION,
    ],
};

/// cgroup.
pub const CGROUP: FilterSpec = FilterSpec {
    name: "cgroup",
    title: "by the control group of the sending process; simulated packets have none, so none matches",
    options: &[
        OptionSpec::short(
            "match",
            ValueKind::Ignored,
            "everything",
            "conditions that packets must meet beside, as in basic",
        ),
        ACTION,
    ],
};

/// route.
pub const ROUTE: FilterSpec = FilterSpec {
    name: "route",
    title: "by the realms of the packet's route; routes here have none, so none matches",
    options: &[
        OptionSpec::short("from", ValueKind::Number, "any", "the source's realm"),
        OptionSpec::exact("fromif", ValueKind::Ignored, "any", "the device that packets came in by"),
        OptionSpec::short("to", ValueKind::Number, "any", "the destination's realm"),
        OptionSpec::short("order", ValueKind::Number, "0", "place among filters of the same realms"),
        OptionSpec::short("classid", ValueKind::Hex, "none", "class of matching packets").or(&["flowid"]),
        ACTION,
    ],
};

/// flower.
pub const FLOWER: FilterSpec = FilterSpec {
    name: "flower",
    title: "by fields of the headers, but not of what a tunnel carries",
    options: &[
        OptionSpec::exact(
            "ip_proto",
            ValueKind::Ignored,
            "any",
            "tcp, udp, sctp, icmp, icmpv6, or a hexadecimal number",
        ),
        OptionSpec::exact(
            "src_ip",
            ValueKind::Ignored,
            "any",
            "source address or prefix; dst_ip for the destination",
        ),
        OptionSpec::exact(
            "src_port",
            ValueKind::Ignored,
            "any",
            "N, N/MASK or N-M, after ip_proto; dst_port likewise",
        ),
        OptionSpec::exact(
            "ip_tos",
            ValueKind::Hex,
            "any",
            "the DS field, with /MASK if need be; ip_ttl for the time to live",
        ),
        OptionSpec::exact("tcp_flags", ValueKind::Hex, "any", "TCP's flags, with /MASK if need be"),
        OptionSpec::exact("type", ValueKind::Decimal, "any", "ICMP's type; code for its code"),
        OptionSpec::exact(
            "ip_flags",
            ValueKind::Ignored,
            "any",
            "frag, nofrag, firstfrag, nofirstfrag, with slashes between",
        ),
        OptionSpec::exact(
            "src_mac",
            ValueKind::Ignored,
            "any",
            "source MAC address, with /BITS or /MASK; dst_mac likewise",
        ),
        OptionSpec::exact(
            "vlan_id",
            ValueKind::Decimal,
            "any",
            "VLAN id of the tag (protocol 802.1q); vlan_prio, vlan_ethtype, cvlan_… likewise",
        ),
        OptionSpec::exact(
            "arp_op",
            ValueKind::Ignored,
            "any",
            "request, reply or a number; arp_sip, arp_tip, arp_sha, arp_tha likewise",
        ),
        OptionSpec::exact(
            "ct_state",
            ValueKind::Ignored,
            "any",
            "state of the connection: + or - before trk, new, est, rel, inv, rpl; ct_mark for its \
        mark",
        ),
        OptionSpec::exact("indev", ValueKind::Ignored, "any", "the input device"),
        OptionSpec::short("classid", ValueKind::Hex, "none", "class of matching packets").or(&["flowid"]),
        ACTION,
    ],
};

/// All filters with a table.
pub const FILTERS: &[&FilterSpec] = &[&FW, &U32, &FLOW, &MATCHALL, &BASIC, &FLOWER, &CGROUP, &ROUTE];
