//! Netfilter's tables as far as traffic control needs them: chains of rules that set marks and classes.
//!
//! iptables and nft work on the same tables. Those of iptables have well-known names, chains and hooks; those
//! that nft makes have any name, and each of their base chains names its own hook.

use alloc::string::String;
use alloc::vec::Vec;
use tidegate_packet::Handle;

/// Which packets a table sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4: iptables, nft's `ip`.
    #[default]
    Ipv4,
    /// IPv6: ip6tables, nft's `ip6`.
    Ipv6,
    /// Both: nft's `inet`.
    Inet,
}

impl Family {
    /// The family of iptables (IPv4) or ip6tables (IPv6).
    pub const fn of(ipv6: bool) -> Family {
        if ipv6 { Family::Ipv6 } else { Family::Ipv4 }
    }

    /// Is this state in the set?
    pub const fn has(self, ipv6: bool) -> bool {
        match self {
            Family::Ipv4 => !ipv6,
            Family::Ipv6 => ipv6,
            Family::Inet => true,
        }
    }

    /// nft's word.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Ipv4 => "ip",
            Family::Ipv6 => "ip6",
            Family::Inet => "inet",
        }
    }
}

/// A point on a packet's path where chains are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// It came in; where it goes is not known yet.
    Prerouting,
    /// It is for the machine itself.
    Input,
    /// It is routed on.
    Forward,
    /// The machine itself sends it.
    Output,
    /// After routing, when the packet leaves.
    Postrouting,
}

impl Hook {
    /// All hooks.
    pub const ALL: [Hook; 5] =
        [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];

    /// nft's word.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::Prerouting => "prerouting",
            Hook::Input => "input",
            Hook::Forward => "forward",
            Hook::Output => "output",
            Hook::Postrouting => "postrouting",
        }
    }
}

/// What a base chain is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainType {
    /// Any rules.
    Filter,
    /// Packets of the machine's own are routed again when a mark changes.
    Route,
    /// Connections are translated.
    Nat,
}

impl ChainType {
    /// nft's word.
    pub const fn name(self) -> &'static str {
        match self {
            ChainType::Filter => "filter",
            ChainType::Route => "route",
            ChainType::Nat => "nat",
        }
    }
}

/// Where a base chain is attached: of a hook's chains lower priorities are evaluated first; of equal ones the
/// one made last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// What it is for: filtering, translation, marking.
    pub kind: ChainType,
    /// The hook that packets come to it by.
    pub hook: Hook,
    /// When at that hook: chains with lower numbers come first.
    pub priority: i32,
}

impl Base {
    /// Connections are looked up at this priority.
    pub const CONNECTIONS: i32 = -200;
    /// Destinations are translated at this one,
    pub const DESTINATIONS: i32 = -100;
    /// sources at this one.
    pub const SOURCES: i32 = 100;

    /// Where a built-in chain of iptables is attached; `None`: there is no such chain.
    pub fn of_iptables(table: &str, chain: &str) -> Option<Base> {
        let hook = match chain {
            "PREROUTING" => Hook::Prerouting,
            "INPUT" => Hook::Input,
            "FORWARD" => Hook::Forward,
            "OUTPUT" => Hook::Output,
            "POSTROUTING" => Hook::Postrouting,
            _ => return None,
        };
        let (kind, priority) = match (table, hook) {
            ("raw", _) => (ChainType::Filter, -300),
            ("mangle", Hook::Output) => (ChainType::Route, -150),
            ("mangle", _) => (ChainType::Filter, -150),
            ("nat", Hook::Prerouting | Hook::Output) => (ChainType::Nat, Base::DESTINATIONS),
            ("nat", _) => (ChainType::Nat, Base::SOURCES),
            ("security", _) => (ChainType::Filter, 50),
            _ => (ChainType::Filter, 0),
        };
        Some(Base { kind, hook, priority })
    }
}

/// An operation on a table of netfilter, as a rule of iptables or nft comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct NfOp {
    /// The family of the table.
    pub family: Family,
    /// The table's name: `mangle`, `filter`, `nat`, `raw`, or whatever nft calls it.
    pub table: String,
    /// What is done to the table.
    pub command: NfCommand,
}

/// What to do to a table.
#[derive(Clone, Debug, PartialEq)]
pub enum NfCommand {
    /// `-A CHAIN rule`.
    Append(String, NetfilterRule),
    /// `-I CHAIN [N] rule`; positions count from 1.
    Insert(String, usize, NetfilterRule),
    /// `-R CHAIN N rule`.
    ReplaceAt(String, usize, NetfilterRule),
    /// `-D CHAIN rule`.
    Delete(String, NetfilterRule),
    /// `-D CHAIN N`.
    DeleteAt(String, usize),
    /// `-F [CHAIN]`.
    Flush(Option<String>),
    /// `-Z [CHAIN]`.
    Zero(Option<String>),
    /// `-N CHAIN`.
    NewChain(String),
    /// `-X [CHAIN]`.
    DeleteChain(Option<String>),
    /// `-P CHAIN ACCEPT|DROP`: true = accept.
    Policy(String, bool),
    /// Sets packets and bytes of a chain's rule (counted from 1; 0 is the last), or without a number of its
    /// policy.
    Counters(String, Option<usize>, u64, u64),
    /// nft's `add table`: made if it is not there, without chains.
    NewTable,
    /// nft's `delete table`.
    DeleteTable,
    /// nft's `add chain … { type … hook … priority …; }` with its policy (true = accept); one that is there
    /// keeps its place.
    NewBase(String, Base, Option<bool>),
    /// nft's `add rule … handle N` and `insert rule … handle N`.
    Beside {
        /// The chain's name.
        chain: String,
        /// The rule by its handle,
        handle: u64,
        /// behind it or before it.
        behind: bool,
        /// What is put there.
        rule: NetfilterRule,
    },
    /// nft's `replace rule … handle N`.
    ReplaceHandle(String, u64, NetfilterRule),
    /// nft's `delete rule … handle N`.
    DeleteHandle(String, u64),
}

impl NfCommand {
    /// The rule that it puts into a chain.
    pub const fn rule(&self) -> Option<&NetfilterRule> {
        match self {
            NfCommand::Append(_, rule)
            | NfCommand::Insert(_, _, rule)
            | NfCommand::ReplaceAt(_, _, rule)
            | NfCommand::Beside { rule, .. }
            | NfCommand::ReplaceHandle(_, _, rule) => Some(rule),
            _ => None,
        }
    }
}

/// A rule: all matches must hold, then what it does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetfilterRule {
    /// The conditions, all of which must hold.
    pub matches: Vec<Match>,
    /// What is done first: nft's rules may do several things. None of these decides.
    pub first: Vec<NetfilterTarget>,
    /// What is done; `None` only counts.
    pub target: Option<NetfilterTarget>,
    /// nft shows its counts: it was written with `counter`, behind so many of its statements.
    pub counter: Option<usize>,
    /// Whether it is a part of a longer rule.
    pub part: RulePart,
}

/// What a rule is of a rule as nft has it. nft evaluates conditions and statements in the order of the words;
/// here conditions come first. A rule in which conditions stand behind `counter` or other statements is
/// therefore several, one after the other with the same handle: each has the conditions of those before it
/// and further ones, and is evaluated only where those before it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RulePart {
    /// All of it.
    #[default]
    Whole,
    /// Its beginning.
    First,
    /// Neither its beginning nor its end.
    Middle,
    /// Its end.
    Last,
}

impl RulePart {
    /// Does a further part follow?
    pub const fn goes_on(self) -> bool {
        matches!(self, RulePart::First | RulePart::Middle)
    }

    /// Does a part precede it?
    pub const fn is_later(self) -> bool {
        matches!(self, RulePart::Middle | RulePart::Last)
    }
}

impl NetfilterRule {
    /// All it does, in order.
    pub fn targets(&self) -> impl Iterator<Item = &NetfilterTarget> {
        self.first.iter().chain(&self.target)
    }

    /// Can packets of this IP version meet it? (nft's tables of both families may have rules for one of
    /// them.)
    pub fn is_for(&self, ipv6: bool) -> bool {
        !self.matches.iter().any(|m| matches!(m.what, Condition::Version6(v6) if (v6 == ipv6) == m.not))
    }
}

/// One condition; `not` inverts it.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// The condition is inverted (`!`).
    pub not: bool,
    /// The condition.
    pub what: Condition,
}

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `-p`: IP protocol number; 0 = all.
    Protocol(u8),
    /// `-s`: address and prefix length (IPv4 in the last four bytes).
    Source([u8; 16], u8),
    /// `-d`.
    Destination([u8; 16], u8),
    /// `-i`: a name; a final `+` matches any ending.
    In(String),
    /// `-o`.
    Out(String),
    /// `--sport`: from one to another.
    SourcePort((u16, u16)),
    /// `--dport`.
    DestinationPort((u16, u16)),
    /// `-m multiport --sports`: ranges.
    SourcePorts(Vec<(u16, u16)>),
    /// `-m multiport --dports`.
    DestinationPorts(Vec<(u16, u16)>),
    /// `-m multiport --ports`: either.
    Ports(Vec<(u16, u16)>),
    /// `--tcp-flags MASK COMP`, `--syn`.
    TcpFlags(u8, u8),
    /// `-m mark --mark V/M`.
    Mark(u32, u32),
    /// `-m length --length A:B`: bytes of the network packet.
    Length(u16, u16),
    /// `-m dscp --dscp N`.
    Dscp(u8),
    /// `-m tos --tos V/M`.
    Tos(u8, u8),
    /// `-m connmark --mark V/M`: the mark of the packet's connection.
    Connmark(u32, u32),
    /// `-m conntrack --ctstate`.
    Connstate(Connstates),
    /// `-m state --state`: the same in older words.
    State(Connstates),
    /// `-m connbytes`.
    Connbytes(Connbytes),
    /// `--icmp-type`, `--icmpv6-type`: type, and codes from one to another.
    IcmpType(u8, (u8, u8)),
    /// `-m comment`: holds always.
    Comment(String),
    /// nft's `meta nfproto`: IPv6 (true) or IPv4.
    Version6(bool),
    /// nft's sets `{ … }`: one of them holds.
    Any(Vec<Condition>),
}

/// What a packet is to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Connstate {
    /// The first, or one of several before any answer.
    New = 1,
    /// The other side has been heard.
    Established = 2,
    /// Of another connection's making (an error message).
    Related = 4,
    /// It fits no connection and cannot begin one.
    Invalid = 8,
    /// The packet is not tracked (`UNTRACKED`).
    Untracked = 16,
}

/// A set of connection states (`--ctstate`), a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connstates(pub u8);

impl Connstates {
    /// Is it among them?
    pub const fn has(self, state: Connstate) -> bool {
        self.0 & state as u8 != 0
    }
}

/// What of a connection is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountMode {
    /// Packets.
    Packets,
    /// Bytes of network packets.
    Bytes,
    /// Bytes per packet.
    Average,
}

/// Which direction of a connection is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountDirection {
    /// As it began.
    Original,
    /// Against that.
    Reply,
    /// The sum of both directions.
    Both,
}

/// `-m connbytes --connbytes FROM:TO`: how much a connection has carried, this packet included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connbytes {
    /// The least count that matches, in the unit of the mode.
    pub from: u64,
    /// The greatest count that matches.
    pub to: u64,
    /// What is counted: packets, bytes or the mean packet.
    pub mode: CountMode,
    /// In which direction of the connection.
    pub direction: CountDirection,
}

impl Connbytes {
    /// Is it so for a connection with these packets and bytes, as it began and against that?
    pub fn matches(&self, packets: [u64; 2], bytes: [u64; 2]) -> bool {
        let of = |counted: [u64; 2]| match self.direction {
            CountDirection::Original => counted[0],
            CountDirection::Reply => counted[1],
            CountDirection::Both => counted[0] + counted[1],
        };
        let counted = match self.mode {
            CountMode::Packets => of(packets),
            CountMode::Bytes => of(bytes),
            CountMode::Average => of(bytes).checked_div(of(packets)).unwrap_or(0),
        };
        (self.from..=self.to).contains(&counted)
    }
}

/// What is done with a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum NetfilterTarget {
    /// Leave the table, continue.
    Accept,
    /// Drops the packet (`-j DROP`).
    Drop,
    /// The connection is not tracked: `-j CT --notrack` (true), or its older form, `-j NOTRACK`.
    Notrack(bool),
    /// Drops the packet and notifies the sender; the reply's type in iptables' words.
    Reject(String),
    /// Note it down: level 0 to 7, prefix, and what else to note (the bits of `--log-tcp-sequence` and its
    /// like).
    Log {
        /// Syslog's level.
        level: u8,
        /// What the line begins with.
        prefix: String,
        /// Bit 0 TCP's sequence numbers, 1 its options, 2 the IP options, 3 the user.
        flags: u8,
    },
    /// Write the segment size into a SYN; `None`: what fits the way (`--clamp-mss-to-pmtu`). Hosts of the
    /// model fit their segments to the way themselves, so nothing changes for them.
    Tcpmss(Option<u16>),
    /// Back to the calling chain.
    Return,
    /// `mark = (mark & !mask) ^ value`.
    Mark {
        /// Value.
        value: u32,
        /// Bits cleared first.
        mask: u32,
    },
    /// `-j CONNMARK`: the mark of the packet's connection.
    Connmark(ConnmarkTarget),
    /// `--set-class`: `skb->priority`.
    Classify(Handle),
    /// `--set-dscp`.
    Dscp(u8),
    /// `--set-tos V/M`.
    Tos(u8, u8),
    /// `-j SNAT`, `DNAT`, `MASQUERADE`, `REDIRECT`, in the table nat.
    Translate(Translate),
    /// `-j CHAIN`.
    Jump(String),
    /// `-g CHAIN`.
    Goto(String),
}

/// What is done with a connection's mark; without a connection, nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnmarkTarget {
    /// `--set-mark`, `--set-xmark` and the like: `ctmark = (ctmark & !mask) ^ value`.
    Set {
        /// Value.
        value: u32,
        /// Bits cleared first.
        mask: u32,
    },
    /// `--save-mark`: `ctmark = (ctmark & !ctmask) ^ (nfmark & nfmask)`.
    Save {
        /// Bits taken from the packet.
        nfmask: u32,
        /// Bits replaced in the connection.
        ctmask: u32,
    },
    /// `--restore-mark`: `nfmark = (nfmark & !nfmask) ^ (ctmark & ctmask)`.
    Restore {
        /// Bits replaced in the packet.
        nfmask: u32,
        /// Bits taken from the connection.
        ctmask: u32,
    },
}

/// How an end of a connection is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translate {
    /// The target that translates.
    pub how: Translator,
    /// The addresses and ports that it translates to.
    pub to: Translation,
}

/// A target that translates addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translator {
    /// SNAT: rewrites the source.
    Source,
    /// DNAT: the destination.
    Destination,
    /// MASQUERADE: the source, to the address of the device it leaves by.
    Masquerade,
    /// REDIRECT: the destination, to the machine itself.
    Redirect,
}

impl Translator {
    /// The target's name.
    pub const fn name(self) -> &'static str {
        match self {
            Translator::Source => "SNAT",
            Translator::Destination => "DNAT",
            Translator::Masquerade => "MASQUERADE",
            Translator::Redirect => "REDIRECT",
        }
    }

    /// The option that gives the new address.
    pub const fn option(self) -> &'static str {
        match self {
            Translator::Source => "--to-source",
            Translator::Destination => "--to-destination",
            Translator::Masquerade | Translator::Redirect => "--to-ports",
        }
    }

    /// Is it the source that is translated?
    pub const fn is_source(self) -> bool {
        matches!(self, Translator::Source | Translator::Masquerade)
    }
}

/// What an end is translated to; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// Addresses, from one to another; IPv4 in the last four bytes.
    pub addresses: Option<([u8; 16], [u8; 16])>,
    /// Ports, from one to another.
    pub ports: Option<(u16, u16)>,
    /// How one of them is chosen.
    pub choice: Choice,
}

/// How a port or address is chosen. Kept for listings: the model always does as with [`Choice::Plain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// What it was, where that is free.
    #[default]
    Plain,
    /// `--random`.
    Random,
    /// `--random-fully`.
    RandomFully,
    /// `--persistent`.
    Persistent,
}

impl Choice {
    /// Its word in iptables; empty for [`Choice::Plain`].
    pub const fn word(self) -> &'static str {
        match self {
            Choice::Plain => "",
            Choice::Random => "random",
            Choice::RandomFully => "random-fully",
            Choice::Persistent => "persistent",
        }
    }
}

/// A table of iptables or nft with all its rules, as a machine holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleTable {
    /// The family that it is for.
    pub family: Family,
    /// The table's name: `mangle`, or what the user called it.
    pub name: String,
    /// The table's chains.
    pub chains: Vec<RuleChain>,
}

impl RuleTable {
    /// True if it has any rule, or a chain whose policy is to drop.
    #[must_use]
    pub fn does_anything(&self) -> bool {
        self.chains.iter().any(|chain| !chain.rules.is_empty() || !chain.accepts)
    }
}

/// A chain of a [`RuleTable`].
#[derive(Clone, Debug, PartialEq)]
pub struct RuleChain {
    /// The chain's name.
    pub name: String,
    /// The hook that packets come to it by; `None`: only rules lead to it.
    pub base: Option<Base>,
    /// True if what reaches its end continues, false if that is dropped.
    pub accepts: bool,
    /// Its rules, in order.
    pub rules: Vec<NetfilterRule>,
}
