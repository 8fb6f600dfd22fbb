//! The tables of the filters: their words are read by hand in `syntax`, because most are not `name value`;
//! the tables carry the help.

use super::table::{FilterSpec, OptionSpec, Takes};

/// What every kind takes at its end.
const ACTION: OptionSpec = OptionSpec::exact(
    "action",
    Takes::Ignored,
    "",
    "at the end: pass, drop, continue, reclassify, pipe, goto chain N, police …, skbedit …, mirred egress \
    redirect|mirror dev DEVICE; several in turn",
);

/// fw.
pub const FW: FilterSpec = FilterSpec {
    name: "fw",
    title: "by firewall mark; `handle MARK[/MASK]` before the kind says which",
    options: &[
        OptionSpec::short("classid", Takes::Hex, "the mark itself", "where matching packets go")
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
            Takes::Ignored,
            "",
            "ip|ip6|tcp|udp|icmp|ether FIELD VALUE MASK, u8|u16|u32 VALUE MASK at OFFSET, mark VALUE MASK",
        ),
        OptionSpec::short("classid", Takes::Hex, "none", "where matching packets go").or(&["flowid"]),
        OptionSpec::exact("ht", Takes::Hex, "800:", "the hash table to put it in"),
        OptionSpec::exact(
            "divisor",
            Takes::Number,
            "",
            "not a filter but a hash table of so many buckets (handle 2: before u32)",
        ),
        OptionSpec::exact("link", Takes::Hex, "none", "the table whose filters are asked about what matches"),
        OptionSpec::exact(
            "hashkey",
            Takes::Ignored,
            "bucket 0",
            "mask MASK at OFFSET: the bits that pick the bucket of the linked table",
        ),
        OptionSpec::exact(
            "offset",
            Takes::Ignored,
            "none",
            "at OFFSET mask MASK shift N plus N eat: where the header behind begins",
        ),
        OptionSpec::exact(
            "sample",
            Takes::Ignored,
            "",
            "MATCH [divisor N]: put it in the bucket that such packets come to",
        ),
        OptionSpec::exact("order", Takes::Hex, "the next free", "place in its bucket: lower is asked first"),
        ACTION,
    ],
};

/// flow.
pub const FLOW: FilterSpec = FilterSpec {
    name: "flow",
    title: "spread flows over classes by a hash of keys (`hash keys K,…`), or compute with one key (`map \
    key K`)",
    options: &[
        OptionSpec::short("hash", Takes::Flag, "", "hash the keys"),
        OptionSpec::short("map", Takes::Flag, "this", "compute with one key"),
        OptionSpec::short(
            "keys",
            Takes::Ignored,
            "",
            "src, dst, proto, proto-src, proto-dst, mark, priority …, with commas",
        ),
        OptionSpec::short("and", Takes::Number, "all bits", "map: keep these bits"),
        OptionSpec::short("or", Takes::Number, "0", "map: set these bits"),
        OptionSpec::short("xor", Takes::Number, "0", "map: turn these bits over"),
        OptionSpec::short("rshift", Takes::Number, "0", "map: shift right by so many bits"),
        OptionSpec::short(
            "addend",
            Takes::Number,
            "0",
            "map: add a number or an address, or take an address away (-A.B.C.D)",
        ),
        OptionSpec::short("divisor", Takes::Number, "none", "the result is taken modulo this"),
        OptionSpec::short("baseclass", Takes::Hex, "class 1 of the qdisc", "the class of result 0"),
        OptionSpec::short("perturb", Takes::Number, "never", "seconds between changes of the hash's seed"),
        OptionSpec::short(
            "match",
            Takes::Ignored,
            "everything",
            "conditions that packets must fulfil, as basic has them",
        ),
        ACTION,
    ],
};

/// matchall.
pub const MATCHALL: FilterSpec = FilterSpec {
    name: "matchall",
    title: "every packet",
    options: &[OptionSpec::short("classid", Takes::Hex, "none", "where packets go").or(&["flowid"]), ACTION],
};

/// basic.
pub const BASIC: FilterSpec = FilterSpec {
    name: "basic",
    title: "by an expression of several conditions: and, or, not, parentheses",
    options: &[
        OptionSpec::short(
            "match",
            Takes::Ignored,
            "everything",
            "cmp(u16 at 2 layer transport gt 1023), nbyte(\"AB\" at 20), u32(u32 0x0a000000 0xff000000 at \
            12), meta(nf_mark mask 0xf eq 3), joined",
        ),
        OptionSpec::short("classid", Takes::Hex, "none", "where matching packets go").or(&["flowid"]),
        ACTION,
    ],
};

/// flower.
pub const FLOWER: FilterSpec = FilterSpec {
    name: "flower",
    title: "by fields of the headers, the innermost where there are several",
    options: &[
        OptionSpec::exact(
            "ip_proto",
            Takes::Ignored,
            "any",
            "tcp, udp, sctp, icmp, icmpv6, or a hexadecimal number",
        ),
        OptionSpec::exact(
            "src_ip",
            Takes::Ignored,
            "any",
            "source address or prefix; dst_ip for the destination",
        ),
        OptionSpec::exact(
            "src_port",
            Takes::Ignored,
            "any",
            "N, N/MASK or N-M, after ip_proto; dst_port likewise",
        ),
        OptionSpec::exact(
            "ip_tos",
            Takes::Hex,
            "any",
            "the DS field, with /MASK if need be; ip_ttl for the time to live",
        ),
        OptionSpec::exact("tcp_flags", Takes::Hex, "any", "TCP's flags, with /MASK if need be"),
        OptionSpec::exact("type", Takes::Decimal, "any", "ICMP's type; code for its code"),
        OptionSpec::exact(
            "ip_flags",
            Takes::Ignored,
            "any",
            "frag, nofrag, firstfrag, nofirstfrag, with slashes between",
        ),
        OptionSpec::exact(
            "src_mac",
            Takes::Ignored,
            "any",
            "source on the link, with /BITS or /MASK; dst_mac likewise",
        ),
        OptionSpec::exact(
            "vlan_id",
            Takes::Decimal,
            "any",
            "of the tag (protocol 802.1q); vlan_prio, vlan_ethtype, cvlan_… likewise",
        ),
        OptionSpec::exact(
            "arp_op",
            Takes::Ignored,
            "any",
            "request, reply or a number; arp_sip, arp_tip, arp_sha, arp_tha likewise",
        ),
        OptionSpec::exact(
            "ct_state",
            Takes::Ignored,
            "any",
            "what it is to its connection: + or - before trk, new, est, rel, inv, rpl; ct_mark for that \
            one's mark",
        ),
        OptionSpec::exact("indev", Takes::Ignored, "any", "the device it came in by"),
        OptionSpec::short("classid", Takes::Hex, "none", "where matching packets go").or(&["flowid"]),
        ACTION,
    ],
};

/// All filters with a table.
pub const FILTERS: &[&FilterSpec] = &[&FW, &U32, &FLOW, &MATCHALL, &BASIC, &FLOWER];
