//! What is refused, in the words of iptables.

use crate::Refusal;
use tidegate_policy::TcError;

/// The version whose words and formats are followed.
pub const VERSION: &str = "v1.8.9 (nf_tables)";

/// The tool's words for an operation that was refused, and its exit code.
pub fn refusal_text(tool: &str, error: &TcError) -> (String, u8) {
    let why = error.message.as_deref().unwrap_or(error.errno.text());
    // What the tool looks up itself.
    if why.starts_with("Chain '") {
        return (complain(tool, why).stderr, 2);
    }
    if why.starts_with("RULE_") || why.starts_with("CHAIN_") {
        return (format!("{tool} {VERSION}:  {why}\n"), 4);
    }
    (format!("{tool}: {why}.\n"), 1)
}

/// A complaint in the tool's form, with exit code 2.
pub fn complain(tool: &str, what: impl std::fmt::Display) -> Refusal {
    Refusal::new(2, format!("{tool} {VERSION}: {what}"))
        .then(&format!("Try `{tool} -h' or '{tool} --help' for more information."))
}

/// The refusal of what iptables knows and this version does not.
pub(crate) fn later(what: impl std::fmt::Display, place: usize) -> Refusal {
    Refusal::new(2, format!("tidegate: {what} is not supported in this version"))
        .at(place)
        .remedy("tidegate does not model this yet; the command was not carried out.")
}
