//! What a packet met in the tables, and what was known about it then.

use alloc::string::String;
use tidegate_packet::{FwMark, Head, LinuxVersion};
use tidegate_policy::netfilter::{Connstate, Family, Hook};

/// What the machine knows of a packet at some moment, beside its length.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its firewall mark.
    pub mark: FwMark,
    /// Its priority (`skb->priority`).
    pub priority: u32,
    /// Its DS field, all eight bits.
    pub dsfield: u8,
    /// What it is to its connection.
    pub state: Connstate,
    /// Its connection's mark, if it has a connection.
    pub connmark: Option<u32>,
    /// Packets and bytes of its connection, as that began and against that, where they are counted.
    pub counters: Option<([u64; 2], [u64; 2])>,
    /// Its headers; the DS field there is as it came.
    pub head: Head,
}

/// A rule that a packet met, or a base chain's policy.
#[derive(Clone, Debug)]
pub struct RuleTrace {
    /// The hook; `None` outside of any.
    pub hook: Option<Hook>,
    /// The table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The chain's name.
    pub chain: String,
    /// The rule, counted from 0; `None`: the policy at the chain's end.
    pub rule: Option<usize>,
    /// The first of its conditions that does not hold; `None`: all hold.
    pub failed: Option<usize>,
    /// The device it came in by, as far as rules may ask here.
    pub input: String,
    /// The device it leaves by.
    pub output: String,
    /// The release of Linux whose netfilter it is.
    pub linux: LinuxVersion,
    /// The packet when it met the rule,
    pub before: Known,
    /// and when the rule had done what does not decide.
    pub after: Known,
}
