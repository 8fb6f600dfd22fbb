//! Where rules are allowed.

use alloc::format;
use tidegate_packet::header::tcp_flags::SYN;
use tidegate_policy::netfilter::{
    Condition, Hook, NetfilterRule, NetfilterTarget, NfCommand, NfOp, Translate, Translator,
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

/// The refusal of a target where packets come from a hook at which it cannot work.
pub(super) const WRONG_HOOK: TcError = TcError::bare(Errno::Inval);

/// A set of hooks.
pub(super) type HookSet = u8;

/// The set of one hook.
pub(super) const fn hook_bit(hook: Hook) -> HookSet {
    1 << hook as u8
}

/// The hooks at which a target works, whatever chains lead there (Linux 6.1).
pub(super) fn allowed(target: &NetfilterTarget) -> HookSet {
    let of = |hooks: &[Hook]| hooks.iter().fold(0, |set, hook| set | hook_bit(*hook));
    match target {
        NetfilterTarget::Translate(Translate { how, .. }) => match how {
            Translator::Destination | Translator::Redirect => of(&[Hook::Prerouting, Hook::Output]),
            Translator::Source => of(&[Hook::Input, Hook::Postrouting]),
            Translator::Masquerade => of(&[Hook::Postrouting]),
        },
        // Before routing the priority would be overwritten.
        NetfilterTarget::Classify(_) => of(&[Hook::Forward, Hook::Output, Hook::Postrouting]),
        _ => HookSet::MAX,
    }
}

/// A refusal in the words that iptables has for it.
pub(super) fn named(op: &NfOp, error: TcError) -> TcError {
    let (verb, chain) = match &op.command {
        NfCommand::Append(chain, _) => ("APPEND", chain),
        NfCommand::Insert(chain, ..) => ("INSERT", chain),
        NfCommand::ReplaceAt(chain, ..) => ("REPLACE", chain),
        _ => return error,
    };
    let of_kernel = [Errno::Links, Errno::OpNotSupp].map(TcError::bare).contains(&error)
        || error == WRONG_HOOK
        || error == TcError::bare(Errno::NoEnt);
    if !of_kernel {
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
    let fits = match &rule.target {
        Some(NetfilterTarget::Translate(_)) => op.table == "nat",
        Some(NetfilterTarget::Notrack(_)) => op.table == "raw",
        Some(NetfilterTarget::Dscp(_) | NetfilterTarget::Tos(..)) => op.table == "mangle",
        Some(NetfilterTarget::Reject(_)) => op.table == "filter",
        // What fits the way is known behind routing; in chains that are called Linux does not look.
        Some(NetfilterTarget::Tcpmss(size)) => {
            matches_syn(rule) && (size.is_some() || !["PREROUTING", "INPUT"].contains(&chain))
        }
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let message = format!("RULE_{verb} failed (Invalid argument): rule in chain {chain}");
    Err(TcError { errno: Errno::Inval, message: Some(message.into()) })
}
