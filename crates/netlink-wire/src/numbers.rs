//! Numbers of netlink, rtnetlink and traffic control, under the names that Linux gives them
//! (`linux/netlink.h`, `rtnetlink.h`, `if_link.h`, `pkt_sched.h`, `pkt_cls.h`). Those that several files need
//! are here, once; those of one kind of qdisc, filter or action are in its file.

macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$about])* pub const $name: $type = $value;)*
    };
}

numbers! {
    /// The answer to a message: an error's number, or 0.
    NLMSG_ERROR: u16 = 2;
    /// The end of a dump.
    NLMSG_DONE: u16 = 3;
    /// The message requests something.
    NLM_F_REQUEST: u16 = 0x1;
    /// It is to be acknowledged.
    NLM_F_ACK: u16 = 0x4;
    /// It requests a dump.
    NLM_F_DUMP: u16 = 0x300;
    /// What is there is replaced.
    NLM_F_REPLACE: u16 = 0x100;
    /// It requests all of a tree.
    NLM_F_ROOT: u16 = 0x100;
    /// It fails if the thing is there.
    NLM_F_EXCL: u16 = 0x200;
    /// The thing is made if it is not there.
    NLM_F_CREATE: u16 = 0x400;
    /// It is added behind others.
    NLM_F_APPEND: u16 = 0x800;
    /// In an answer: attributes follow the refused message's head.
    NLM_F_ACK_TLVS: u16 = 0x200;
    /// Makes or changes a link.
    RTM_NEWLINK: u16 = 16;
    /// Deletes a link.
    RTM_DELLINK: u16 = 17;
    /// Requests links.
    RTM_GETLINK: u16 = 18;
    /// Gives a link an address.
    RTM_NEWADDR: u16 = 20;
    /// Makes a route.
    RTM_NEWROUTE: u16 = 24;
    /// Makes or changes a qdisc.
    RTM_NEWQDISC: u16 = 36;
    /// Deletes a qdisc.
    RTM_DELQDISC: u16 = 37;
    /// Requests qdiscs.
    RTM_GETQDISC: u16 = 38;
    /// Makes or changes a class.
    RTM_NEWTCLASS: u16 = 40;
    /// Deletes a class.
    RTM_DELTCLASS: u16 = 41;
    /// Requests classes.
    RTM_GETTCLASS: u16 = 42;
    /// Makes or changes a filter.
    RTM_NEWTFILTER: u16 = 44;
    /// Deletes a filter.
    RTM_DELTFILTER: u16 = 45;
    /// Requests filters.
    RTM_GETTFILTER: u16 = 46;
    /// Makes or changes an action.
    RTM_NEWACTION: u16 = 48;
    /// Deletes an action.
    RTM_DELACTION: u16 = 49;
    /// Requests actions.
    RTM_GETACTION: u16 = 50;
    /// A link's address.
    IFLA_ADDRESS: u16 = 1;
    /// A link's name.
    IFLA_IFNAME: u16 = 3;
    /// Bytes of its largest packet.
    IFLA_MTU: u16 = 4;
    /// The index of the link that it is stacked on.
    IFLA_LINK: u16 = 5;
    /// Packets of its transmit queue.
    IFLA_TXQLEN: u16 = 13;
    /// What its kind has.
    IFLA_LINKINFO: u16 = 18;
    /// Its kind's name, within `IFLA_LINKINFO`.
    IFLA_INFO_KIND: u16 = 1;
    /// The options of its kind, within `IFLA_LINKINFO`.
    IFLA_INFO_DATA: u16 = 2;
    /// A flag of a link: it is up.
    IFF_UP: u32 = 1;
    /// The name of a kind of qdisc, class or filter.
    TCA_KIND: u16 = 1;
    /// The options of that kind.
    TCA_OPTIONS: u16 = 2;
    /// What that kind has counted.
    TCA_XSTATS: u16 = 4;
    /// A rate estimator.
    TCA_RATE: u16 = 5;
    /// What every kind has counted.
    TCA_STATS2: u16 = 7;
    /// A table of sizes.
    TCA_STAB: u16 = 8;
    /// Qdiscs that the kernel attached on its own are dumped too.
    TCA_DUMP_INVISIBLE: u16 = 10;
    /// A filter's chain.
    TCA_CHAIN: u16 = 11;
    /// The shared block of what arrives.
    TCA_INGRESS_BLOCK: u16 = 13;
    /// The shared block of what leaves.
    TCA_EGRESS_BLOCK: u16 = 14;
    /// Instead of a link's number: the message is about a shared block.
    TCM_IFINDEX_MAGIC_BLOCK: u32 = 0xffff_ffff;
    /// An action's kind.
    TCA_ACT_KIND: u16 = 1;
    /// The options of its kind.
    TCA_ACT_OPTIONS: u16 = 2;
    /// The action's number (`index`).
    TCA_ACT_INDEX: u16 = 3;
    /// What it has counted.
    TCA_ACT_STATS: u16 = 4;
    /// Bytes that a program attached to it.
    TCA_ACT_COOKIE: u16 = 6;
    /// The action's flags.
    TCA_ACT_FLAGS: u16 = 7;
    /// Whether hardware counts it.
    TCA_ACT_HW_STATS: u16 = 8;
    /// Bytes of the head of a message (`nlmsghdr`).
    NLMSG_HEAD: usize = 16;
    /// Bytes of what messages about links begin with (`ifinfomsg`).
    LINK_HEAD: usize = 16;
}
