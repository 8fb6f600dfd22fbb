//! Netfilter's tables as far as traffic control needs them: chains of rules in the mangle table that set marks and classes.

use tidegate_packet::Handle;

/// An operation on a table.
#[derive(Clone, Debug, PartialEq)]
pub struct NfOp {
    /// IPv6 (`ip6tables`)?
    pub ipv6: bool,
    /// The table's name: `mangle`, `filter`, `nat`, `raw`.
    pub table: String,
    /// What to do.
    pub command: NfCommand,
}

/// What to do to a table.
#[derive(Clone, Debug, PartialEq)]
pub enum NfCommand {
    /// `-A CHAIN rule`.
    Append(String, Rule),
    /// `-I CHAIN [N] rule`; positions count from 1.
    Insert(String, usize, Rule),
    /// `-R CHAIN N rule`.
    ReplaceAt(String, usize, Rule),
    /// `-D CHAIN rule`.
    Delete(String, Rule),
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
}

/// A rule: all matches must hold, then the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// What must hold.
    pub matches: Vec<Match>,
    /// What is done; `None` only counts.
    pub target: Option<Target>,
}

/// One condition; `not` inverts it.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// `!` was given.
    pub not: bool,
    /// The condition.
    pub what: Condition,
}

/// What a packet is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `-p`: IP protocol number; 0 = all.
    Protocol(u8),
    /// `-s`: address and prefix length (IPv4 in the last four octets).
    Source([u8; 16], u8),
    /// `-d`.
    Destination([u8; 16], u8),
    /// `-i`: name, a final `+` stands for any ending.
    In(String),
    /// `-o`.
    Out(String),
    /// `--sport`, `--sports`: ranges.
    SourcePorts(Vec<(u16, u16)>),
    /// `--dport`, `--dports`.
    DestinationPorts(Vec<(u16, u16)>),
    /// `--ports`: either.
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
}

/// What is done with a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Leave the table, go on.
    Accept,
    /// Drop it.
    Drop,
    /// Back to the calling chain.
    Return,
    /// `mark = (mark & !mask) ^ value`.
    Mark {
        /// Value.
        value: u32,
        /// Bits cleared first.
        mask: u32,
    },
    /// `--set-class`: `skb->priority`.
    Classify(Handle),
    /// `--set-dscp`.
    Dscp(u8),
    /// `--set-tos V/M`.
    Tos(u8, u8),
    /// `-j CHAIN`.
    Jump(String),
    /// `-g CHAIN`.
    Goto(String),
}
