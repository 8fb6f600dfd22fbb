//! What a command line of iptables requests.

use tidegate_policy::netfilter::NfOp;

/// A command understood.
#[derive(Clone, Debug, PartialEq)]
pub struct IptablesCommandLine {
    /// What to do.
    pub command: IptCommand,
    /// What was accepted and means nothing here.
    pub notes: Vec<String>,
}

/// What a command line of iptables requests.
#[derive(Clone, Debug, PartialEq)]
pub enum IptCommand {
    /// An operation on a table.
    Apply(NfOp),
    /// `-C`: is there such a rule? Exit code 1 and `iptables: Bad rule (does a matching rule exist in that
    /// chain?).` when not.
    Check(NfOp),
    /// `-L` and `-S`.
    List {
        /// IPv6?
        ipv6: bool,
        /// The table's name.
        table: String,
        /// Only this chain.
        chain: Option<String>,
        /// The style of the listing.
        style: ListStyle,
    },
    /// `iptables-save [-t TABLE]`.
    Save {
        /// IPv6?
        ipv6: bool,
        /// Only this table.
        table: Option<String>,
        /// With the counters of rules.
        counters: bool,
    },
    /// `-V`: print `TOOL VERSION`.
    Version,
    /// `-h`: our own words.
    Help(String),
}

/// How `-L` lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListStyle {
    /// `-S`: as commands.
    pub commands: bool,
    /// `-v`: counters and devices too.
    pub verbose: bool,
    /// `-n`: numbers for names.
    pub numeric: bool,
    /// `-x`: counters in full.
    pub exact: bool,
    /// `--line-numbers`.
    pub numbers: bool,
}
