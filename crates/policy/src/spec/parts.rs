//! What filters are made of: the actions that are built and, of filters, conditions and actions, those that
//! Linux has and tidegate has not, each with the reason.

/// A name of tc's, and a sentence's end about it: what it does or, where it is not built, why not.
pub type DocumentedName = (&'static str, &'static str);

/// The actions that are built.
pub const ACTIONS: &[DocumentedName] = &[
    (
        "gact",
        "decides: pass, drop, continue, reclassify, pipe, trap, jump N, goto chain N; `random` \
        adds another decision at random",
    ),
    ("police", "polices: measures bytes or packets and takes another action above the rate"),
    ("mirred", "redirects packets, or mirrors copies of them, to another device's egress or ingress"),
    ("skbedit", "sets priority, mark and packet type"),
    ("connmark", "sets a packet's mark to its connection's (set by CONNMARK of iptables)"),
    ("simple", "counts; its line in the kernel's log is not written"),
    ("sample", "samples packets for a listener, and counts; there is no listener"),
    (
        "ct",
        "at ingress or clsact: looks up, creates, commits, marks, labels, NATs or clears the packet's \
        connection (conntrack), in a zone",
    ),
    ("ctinfo", "sets a packet's DSCP and mark from its connection's mark"),
    ("nat", "stateless NAT: rewrites IPv4 addresses packet by packet, and their checksums"),
    (
        "pedit",
        "rewrites bytes of the headers, by field (`ip`, `ip6`, `tcp`, `udp`, `eth`) or by \
        offset; checksums are not updated",
    ),
    ("csum", "recomputes checksums: `ip4h`, `icmp`, `igmp`, `tcp`, `udp`"),
    ("skbmod", "rewrites the link header, or sets the ECN mark"),
    (
        "vlan",
        "adds an 802.1Q or 802.1ad tag (`push`), changes (`modify`) or removes the outermost \
        (`pop`); at most four",
    ),
    (
        "mpls",
        "pushes, changes (`modify`, `dec_ttl`) or pops MPLS labels; filters cannot match labels by name, \
        u32 reads them",
    ),
    (
        "tunnel_key",
        "sets (`set`) or removes (`unset`) the metadata of a tunnel; no device here reads them, so packets stay \
        as they are",
    ),
    (
        "gate",
        "lets packets pass by a schedule of open and closed intervals; its clocks begin at 0 when a \
        simulation starts",
    ),
];

/// The conditions of basic filters that are built.
pub const EMATCHES: &[DocumentedName] = &[
    ("cmp", "compares a number at a place in the packet"),
    ("nbyte", "compares bytes at a place in the packet"),
    ("u32", "compares masked bits at a place in the packet"),
    ("meta", "compares the packet's metadata: length, mark, priority and so on"),
    ("canid", "compares the first bytes of the packet with identifiers of CAN frames"),
];

/// Kinds of filters that are not built.
pub const REFUSED_FILTERS: &[DocumentedName] = &[
    ("xt", "filters cannot run iptables targets"),
    ("ipt", "filters cannot run iptables targets"),
    ("bpf", "BPF programs are not run; flower and u32 match addresses, protocols and ports"),
    ("rsvp", "removed from Linux in 6.3; flower matches addresses, protocols and ports"),
    ("rsvp6", "removed from Linux in 6.3; flower matches addresses, protocols and ports"),
    ("tcindex", "removed from Linux in 6.3; it classified by the index that dsmark set"),
];

/// Conditions of basic filters that are not built.
pub const REFUSED_EMATCHES: &[DocumentedName] = &[
    ("ipset", "ipsets are not supported"),
    ("ipt", "filters cannot run iptables matches; let an iptables rule set a mark"),
];

/// Actions that are not built.
pub const REFUSED_ACTIONS: &[DocumentedName] = &[
    ("xt", "filters cannot run iptables targets"),
    ("ipt", "filters cannot run iptables targets"),
    ("bpf", "BPF programs are not run"),
    ("ife", "there is no other machine to read the metadata that it adds"),
];

/// Keys of flower that are not built.
pub const REFUSED_FLOWER_KEYS: &[DocumentedName] = &[
    ("ct_zone", "filters cannot match the zone of a connection"),
    ("ct_label", "filters cannot match the labels of a connection"),
    ("hw_tc", "simulated devices have no hardware traffic classes"),
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
    ("pppoe_sid", "packets inside PPPoE are matched by their own fields"),
];
const TUNNEL: &str = "collect-metadata tunnels are not supported";
const MPLS: &str = "MPLS labels are not read";

/// The proper name of a kind of actions, if the kernel has it.
pub fn action_kind(name: &str) -> Option<&'static str> {
    ACTIONS.iter().chain(REFUSED_ACTIONS).map(|(known, _)| *known).find(|known| *known == name)
}

/// Why a part is not built, if it is in a list of such.
pub fn why_not(list: &[DocumentedName], name: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}
