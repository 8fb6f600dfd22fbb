//! iptables and ip6tables, as far as traffic control needs them: the rules that set marks, classes and DS fields.

mod parse;
mod print;
mod restore;
mod values;

pub use parse::parse;
pub use print::{ListedChain, ListedRule, list, print_rule, save};
pub use restore::{Restore, RestoreLine, RestoredTable, blamed, restore};

use crate::Refusal;
use tidegate_policy::TcError;
use tidegate_policy::netfilter::NfOp;

/// The version whose words and formats are followed.
pub const VERSION: &str = "v1.8.9 (nf_tables)";

/// A command understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What to do.
    pub command: IptCommand,
    /// What was accepted and means nothing here.
    pub notes: Vec<String>,
}

/// What a command line of iptables asks.
#[derive(Clone, Debug, PartialEq)]
pub enum IptCommand {
    /// An operation on a table.
    Apply(NfOp),
    /// `-C`: is there such a rule? Exit code 1 and `iptables: Bad rule (does a matching rule exist in that chain?).` when not.
    Check(NfOp),
    /// `-L` and `-S`.
    List {
        /// IPv6?
        ipv6: bool,
        /// The table.
        table: String,
        /// Only this chain.
        chain: Option<String>,
        /// How.
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

/// The tool's words for an operation that was refused, and its exit code.
pub fn refusal_text(tool: &str, error: &TcError) -> (String, u8) {
    let why = error.message.as_deref().unwrap_or(error.errno.text());
    // What the tool looks up itself.
    if why.starts_with("Chain '") {
        return (complain(tool, why).stderr, 2);
    }
    if why.starts_with("RULE_") {
        return (format!("{tool} {VERSION}:  {why}\n"), 4);
    }
    (format!("{tool}: {why}.\n"), 1)
}

/// A complaint in the tool's form, with exit code 2.
pub fn complain(tool: &str, what: impl std::fmt::Display) -> Refusal {
    Refusal::new(2, format!("{tool} {VERSION}: {what}"))
        .then(&format!("Try `{tool} -h' or '{tool} --help' for more information."))
}

/// The port of a service.
pub(crate) fn service(name: &str) -> Option<u16> {
    values::SERVICES.iter().find(|(known, _)| *known == name).map(|(_, port)| *port)
}

/// The refusal of what iptables knows and this version does not.
pub(crate) fn later(what: impl std::fmt::Display, place: usize) -> Refusal {
    Refusal::new(2, format!("tidegate: {what} is not supported in this version"))
        .at(place)
        .remedy("iptables would have accepted this word; the command was not carried out.")
}
