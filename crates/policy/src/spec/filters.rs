//! The tables of the filters: their words are read by hand in `lang`, because most are not `name value`; the tables carry the help.

use super::{KindSpec, OptionSpec, Takes, Voice};

/// What every kind takes at its end.
const ACTION: OptionSpec = OptionSpec::exact(
    "action",
    Takes::Ignored,
    "",
    "at the end: pass, drop, continue, reclassify, pipe, or mirred egress redirect dev DEVICE; several in turn",
);

/// fw.
pub const FW: KindSpec = KindSpec {
    name: "fw",
    title: "by firewall mark; `handle MARK[/MASK]` before the kind says which",
    qdisc: Some(&[
        OptionSpec::short("classid", Takes::Hex, "the mark itself", "where matching packets go").or(&["flowid"]),
        ACTION,
    ]),
    class: None,
    voice: Voice::Plain,
};

/// u32.
pub const U32: KindSpec = KindSpec {
    name: "u32",
    title: "by bits of the packet's header",
    qdisc: Some(&[
        OptionSpec::short(
            "match",
            Takes::Ignored,
            "",
            "ip|ip6|tcp|udp|icmp|ether FIELD VALUE MASK, u8|u16|u32 VALUE MASK at OFFSET, mark VALUE MASK",
        ),
        OptionSpec::short("classid", Takes::Hex, "none", "where matching packets go").or(&["flowid"]),
        OptionSpec::exact("ht", Takes::Hex, "800:", "the hash table to put it in"),
        OptionSpec::exact("order", Takes::Hex, "the next free", "place in its bucket: lower is asked first"),
        ACTION,
    ]),
    class: None,
    voice: Voice::Plain,
};

/// flow.
pub const FLOW: KindSpec = KindSpec {
    name: "flow",
    title: "spread flows over classes by a hash of keys (`hash keys K,…`), or compute with one key (`map key K`)",
    qdisc: Some(&[
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
        OptionSpec::short("baseclass", Takes::Hex, "class 1 of the qdisc", "the class that result 0 stands for"),
        OptionSpec::short("perturb", Takes::Number, "never", "seconds between changes of the hash's seed"),
        ACTION,
    ]),
    class: None,
    voice: Voice::Plain,
};

/// matchall.
pub const MATCHALL: KindSpec = KindSpec {
    name: "matchall",
    title: "every packet",
    qdisc: Some(&[OptionSpec::short("classid", Takes::Hex, "none", "where packets go").or(&["flowid"]), ACTION]),
    class: None,
    voice: Voice::Plain,
};

/// All filters with a table.
pub const FILTERS: &[&KindSpec] = &[&FW, &U32, &FLOW, &MATCHALL];
