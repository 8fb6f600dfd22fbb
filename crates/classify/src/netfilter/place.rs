//! Where rules are allowed.

use alloc::format;
use tidegate_packet::header::tcp_flags::SYN;
use tidegate_policy::netfilter::{
    Condition, NetfilterRule, NetfilterTarget, NfCommand, NfOp, Translate, Translator,
};
use tidegate_policy::{Errno, TcError};

/// The chains that a table has from the start.
pub(super) fn built_in(table: &str) -> &'static [&'static str] {
    match table {
        "filter" | "security" => &["INPUT", "FORWARD", "OUTPUT"],
        "nat" => &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
        "raw" => &["PREROUTING", "OUTPUT"],
        _ => &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
    }
}

/// Only SYNs have a segment size to change.
fn matches_syn(rule: &NetfilterRule) -> bool {
    rule.matches
        .iter()
        .any(|m| matches!(m.what, Condition::TcpFlags(mask, flags) if !m.not && mask & flags & SYN != 0))
}

/// A refusal in the words that iptables has for it.
pub(super) fn named(op: &NfOp, error: TcError) -> TcError {
    let (verb, chain) = match &op.command {
        NfCommand::Append(chain, _) => ("APPEND", chain),
        NfCommand::Insert(chain, ..) => ("INSERT", chain),
        NfCommand::ReplaceAt(chain, ..) => ("REPLACE", chain),
        _ => return error,
    };
    if error.errno != Errno::Links {
        return error;
    }
    let message = format!("RULE_{verb} failed ({}): rule in chain {chain}", error.errno.text());
    TcError { message: Some(message.into()), ..error }
}

/// Some targets are in certain tables only, and in the chains where what they change is still open.
pub(super) fn check(op: &NfOp) -> Result<(), TcError> {
    let (verb, chain, rule) = match &op.command {
        NfCommand::Append(chain, rule) => ("APPEND", chain, rule),
        NfCommand::Insert(chain, _, rule) => ("INSERT", chain, rule),
        NfCommand::ReplaceAt(chain, _, rule) => ("REPLACE", chain, rule),
        _ => return Ok(()),
    };
    let chain = chain.as_str();
    let is_built_in = built_in("mangle").contains(&chain);
    let fits = match &rule.target {
        Some(NetfilterTarget::Translate(Translate { how, .. })) => {
            let open: &[&str] = match how {
                Translator::Destination | Translator::Redirect => &["PREROUTING", "OUTPUT"],
                Translator::Source => &["INPUT", "POSTROUTING"],
                Translator::Masquerade => &["POSTROUTING"],
            };
            op.table == "nat" && (!is_built_in || open.contains(&chain))
        }
        // Before routing the priority would be overwritten.
        Some(NetfilterTarget::Classify(_)) => {
            !is_built_in || ["FORWARD", "OUTPUT", "POSTROUTING"].contains(&chain)
        }
        Some(NetfilterTarget::Notrack(_)) => op.table == "raw",
        Some(NetfilterTarget::Dscp(_) | NetfilterTarget::Tos(..)) => op.table == "mangle",
        Some(NetfilterTarget::Reject(_)) => op.table == "filter",
        Some(NetfilterTarget::Tcpmss(_)) => matches_syn(rule),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let message = format!("RULE_{verb} failed (Invalid argument): rule in chain {chain}");
    Err(TcError { errno: Errno::Inval, message: Some(message.into()) })
}
