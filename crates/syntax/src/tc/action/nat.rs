//! `nat ingress|egress OLD NEW`.

use super::{Failed, control_after, own_index};
use crate::tc::u32_filter::parse_prefix4;
use crate::tc::words::{Words, begins};
use tidegate_policy::{Act, Action, Control, Nat};

pub(super) fn parse(words: &mut Words<'_>) -> Result<Action, Failed> {
    const FORM: &str = "Addresses are rewritten so: action nat egress 10.0.0.0/24 192.0.2.0 (ingress: destinations).";
    let direction = words.need()?;
    let wrong = || Failed::say(format!("Illegal nat construct ({direction})"), FORM);
    let egress = match ["egress", "ingress"].into_iter().find(|name| begins(direction, name)) {
        Some(name) => name == "egress",
        None => return Err(wrong()),
    };
    let (old, mask) = parse_prefix4(words.need()?).ok_or_else(wrong)?;
    let (new, _) = parse_prefix4(words.need()?).ok_or_else(wrong)?;
    let control = control_after(words)?.unwrap_or(Control::Pass);
    // tc shifts a word by all its bits for a prefix of none, and the processor leaves it as it was.
    let mask = if mask == 0 { u32::MAX } else { mask };
    let nat = Nat { egress, old: old.into(), new: new.into(), mask, control };
    let index = own_index(words, |_| "Nat: Illegal \"index\"".into())?;
    Ok(Action { index, ..Act::Nat(nat).into() })
}
