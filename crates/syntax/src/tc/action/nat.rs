//! `nat ingress|egress OLD NEW`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::prefix::parse_prefix4;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, TcChange};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Nat};

/// `nat`.
pub(super) const ROW: Row = Row {
    name: "nat",
    form: "nat ingress|egress OLD[/BITS] NEW [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

fn parse(words: &mut Words<'_>, env: &Env) -> Result<Action, Failed> {
    const FORM: &str =
        "Addresses are rewritten so: action nat egress 10.0.0.0/24 192.0.2.0 (ingress: destinations).";
    let direction = words.need()?;
    let wrong = || Failed::say(format!("Illegal nat construct ({direction})"), FORM);
    let egress = match ["egress", "ingress"].into_iter().find(|name| begins(direction, name)) {
        Some(name) => name == "egress",
        None => return Err(wrong()),
    };
    let (old, mask) = parse_prefix4(words.need()?).ok_or_else(wrong)?;
    let (new, _) = parse_prefix4(words.need()?).ok_or_else(wrong)?;
    let control = control_after(words)?.unwrap_or(Control::Pass);
    // tc 6.1 shifts a word by all its bits for a prefix of none, and the processor leaves it as it was.
    let mask = if mask == 0 && !env.tc.has(TcChange::NatWords) { u32::MAX } else { mask };
    let nat = Nat { egress, old: old.into(), new: new.into(), mask, control };
    let index = own_index(words, |_| "Nat: Illegal \"index\"".into())?;
    Ok(Action { index, ..Act::Nat(nat).into() })
}

fn show(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    let Act::Nat(nat) = &dump.action.act else { return };
    let direction = if nat.egress { "egress" } else { "ingress" };
    let prefix = match flags.tc.has(TcChange::NatWords) {
        true => nat.mask.count_ones(),
        false => printed_prefix(nat.mask),
    };
    let old = format!("{}/{prefix}", nat.old);
    entry.say(&format!(" nat {direction} {old} {} {}", nat.new, control_name(nat.control)));
    entry.member("direction", Json::text(direction));
    entry.member("old_addr", Json::text(old));
    entry.member("new_addr", Json::text(nat.new.to_string()));
    entry.member("control_action", type_of(nat.control));
}

/// The prefix length that tc 6.1 prints for a mask: it looks for the first bit that is set with the bytes
/// in the wrong order.
fn printed_prefix(mask: u32) -> u32 {
    match mask.swap_bytes().trailing_zeros() {
        32 => 0,
        zeros => 32 - zeros,
    }
}
