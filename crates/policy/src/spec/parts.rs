//! What filters are made of: the actions that are built and, of filters, conditions and actions, those that
//! Linux has and tidegate has not, each with the reason.

/// A name of tc's, and a sentence's end about it: what it does or, where it is not built, why not.
pub type DocumentedName = (&'static str, &'static str);

/// The actions that are built.
pub const ACTIONS: &[DocumentedName] = &[
    (
        "gact",
        "decides: pass, drop, continue, reclassify, pipe, trap, jump N, goto chain N; `random` mixes in \
        another decision",
    ),
    ("police", "measures bytes or packets and decides otherwise about what comes too fast"),
    (
        "mirred",
        "leads packets (redirect) or copies of them (mirror) out by another device, or has them arrive \
        there (ingress)",
    ),
    ("skbedit", "sets priority, mark and packet type"),
    ("connmark", "gives a packet its connection's mark (CONNMARK of iptables sets that)"),
    ("simple", "counts; its line in the kernel's log is written nowhere"),
    ("sample", "samples packets for a listener, and counts; there is no listener"),
    (
        "ct",
        "at ingress or clsact: looks the packet's connection up, begins, keeps, marks, labels, translates \
        or forgets it, in a zone",
    ),
    ("ctinfo", "gives a packet the DSCP and the mark that are written in its connection's mark"),
    ("nat", "rewrites addresses of IPv4 packet by packet, without memory, and the checksums over them"),
    (
        "pedit",
        "rewrites bytes of the headers, by field (`ip`, `ip6`, `tcp`, `udp`, `eth`) or by offset; \
        checksums stay as they were",
    ),
    ("csum", "recomputes checksums: `ip4h`, `icmp`, `igmp`, `tcp`, `udp`"),
    ("skbmod", "rewrites the link header, or marks congestion"),
    (
        "vlan",
        "puts a tag of 802.1Q or 802.1ad on (`push`), changes (`modify`) or takes off the outermost \
        (`pop`); at most two",
    ),
];

/// The conditions of basic filters that are built.
pub const EMATCHES: &[DocumentedName] = &[
    ("cmp", "compares a number at a place in the packet"),
    ("nbyte", "compares bytes at a place in the packet"),
    ("u32", "compares masked bits at a place in the packet"),
    ("meta", "compares what the kernel knows of the packet: its length, mark, priority and so on"),
];

/// Kinds of filters that are not built.
pub const REFUSED_FILTERS: &[DocumentedName] = &[
    ("gate", "opening times of a gate are not modelled"),
    ("xt", "targets of iptables are not carried out by filters"),
    ("ipt", "targets of iptables are not carried out by filters"),
    ("bpf", "programs of Berkeley's packet filter are not run"),
    ("cgroup", "packets here are sent by no process that a control group could hold"),
    ("route", "routes here carry no realms; a mark that iptables sets does the same"),
    ("rsvp", "Linux has it no more since 6.3; flower matches addresses, protocols and ports"),
    ("rsvp6", "Linux has it no more since 6.3; flower matches addresses, protocols and ports"),
    ("tcindex", "Linux has it no more since 6.3; it sorted by what dsmark wrote beside the packet"),
];

/// Conditions of basic filters that are not built.
pub const REFUSED_EMATCHES: &[DocumentedName] = &[
    ("ipset", "sets of addresses are not kept"),
    ("ipt", "iptables' matches are asked by its own rules, which may set a mark for filters"),
    ("canid", "there are no CAN frames"),
];

/// Actions that are not built.
pub const REFUSED_ACTIONS: &[DocumentedName] = &[
    ("tunnel_key", "tunnels that take their addresses from packets are not built"),
    ("mpls", "MPLS labels are not read"),
    ("gate", "opening times of a gate are not modelled"),
    ("xt", "targets of iptables are not carried out by filters"),
    ("ipt", "targets of iptables are not carried out by filters"),
    ("bpf", "programs of Berkeley's packet filter are not run"),
    ("ife", "no other machine is there to read what it adds to packets"),
];

/// Keys of flower that are not built.
pub const REFUSED_FLOWER_KEYS: &[DocumentedName] = &[
    ("ct_zone", "filters do not ask for the zone of a connection"),
    ("ct_label", "filters do not ask for the labels of a connection"),
    ("hw_tc", "no card here sorts packets into traffic classes"),
    ("enc_dst_ip", TUNNEL),
    ("enc_src_ip", TUNNEL),
    ("enc_key_id", TUNNEL),
    ("enc_dst_port", TUNNEL),
    ("enc_tos", TUNNEL),
    ("enc_ttl", TUNNEL),
    ("geneve_opts", TUNNEL),
    ("vxlan_opts", TUNNEL),
    ("erspan_opts", TUNNEL),
    ("gtp_opts", TUNNEL),
    ("mpls", MPLS),
    ("mpls_label", MPLS),
    ("mpls_tc", MPLS),
    ("mpls_bos", MPLS),
    ("mpls_ttl", MPLS),
    ("pppoe_sid", "what is in PPPoE is matched by its own fields"),
];
const TUNNEL: &str = "tunnels that leave their outer header beside the packet are not built";
const MPLS: &str = "MPLS labels are not read";

/// The proper name of a kind of actions, if the kernel has it.
pub fn action_kind(name: &str) -> Option<&'static str> {
    ACTIONS.iter().chain(REFUSED_ACTIONS).map(|(known, _)| *known).find(|known| *known == name)
}

/// Why a part is not built, if it is in a list of such.
pub fn why_not(list: &[DocumentedName], name: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}
