//! `connmark …`, `ctinfo …`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::Env;
use crate::json::Json;
use crate::number::{u16_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Connmark, Control, Ctinfo, CtinfoCounts};

/// `connmark`.
pub(super) const CONNMARK: Row = Row {
    name: "connmark",
    form: "connmark [zone N] [CONTROL] [index N]",
    parse: connmark,
    show: show_connmark,
    lead: Some("\n\t "),
};

/// `ctinfo`.
pub(super) const CTINFO: Row = Row {
    name: "ctinfo",
    form: "ctinfo [dscp MASK [STATEMASK]] [cpmark [MASK]] [zone N] [CONTROL] [index N]",
    parse: ctinfo,
    show: show_ctinfo,
    lead: Some("\n\t "),
};

fn connmark(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let zone = zone("connmark", words)?;
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "connmark: Illegal \"index\"".into())?;
    Ok(Action { index, ..Act::Connmark(Connmark { zone, control }).into() })
}

fn ctinfo(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let dscp = dscp(words)?;
    let mut mark = None;
    if words.begins("cpmark") {
        words.skip();
        mark = Some(number_here(words).unwrap_or(u32::MAX));
    }
    let zone = zone("ctinfo", words)?;
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "ctinfo: Illegal \"index\"".into())?;
    // A mask without bits is ignored by the kernel.
    let (dscp, mark) = (dscp.filter(|(mask, _)| *mask != 0), mark.filter(|mask| *mask != 0));
    Ok(Action { index, ..Act::Ctinfo(Ctinfo { zone, dscp, mark, control }).into() })
}

/// `dscp MASK [STATEMASK]`.
fn dscp(words: &mut Words<'_>) -> Result<Option<(u32, u32)>, Failed> {
    const FORM: &str = "dscp takes six bits of the mark that lie side by side, such as 0xfc000000, and bits \
    outside them of which one must be set.";
    if !words.begins("dscp") {
        return Ok(None);
    }
    words.skip();
    let text = words.need()?;
    let mask = u32_in(text, 0).ok_or_else(|| Failed::say("ctinfo: Illegal dscp \"mask\"", FORM))?;
    if mask != 0 && mask >> mask.trailing_zeros() != 0x3f {
        return Err(Failed::say("ctinfo: dscp mask must be 6 contiguous bits long", FORM));
    }
    let state = number_here(words).unwrap_or(0);
    if mask & state != 0 {
        return Err(Failed::say("ctinfo: dscp mask & statemask must NOT overlap", FORM));
    }
    Ok(Some((mask, state)))
}

/// The next word, if it is a number.
fn number_here(words: &mut Words<'_>) -> Option<u32> {
    let number = u32_in(words.peek()?, 0)?;
    words.skip();
    Some(number)
}

/// `zone N`.
fn zone(kind: &str, words: &mut Words<'_>) -> Result<u16, Failed> {
    if !words.begins("zone") {
        return Ok(0);
    }
    words.skip();
    let text = words.need()?;
    u16_in(text, 10).ok_or_else(|| {
        Failed::say(format!("{kind}: Illegal \"zone\""), format!("\"{text}\" is not a zone: 0 to 65535."))
    })
}

fn show_connmark(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Connmark(mark) = &dump.action.act else { return };
    entry.number("zone", mark.zone, &format!("connmark zone {}", mark.zone));
    entry.say(&format!(" {}", control_name(mark.control)));
    entry.member("control_action", type_of(mark.control));
}

fn show_ctinfo(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Ctinfo(info) = &dump.action.act else { return };
    entry.number("zone", info.zone, &format!("ctinfo zone {}", info.zone));
    entry.say(&format!(" {}", control_name(info.control)));
    entry.member("control_action", type_of(info.control));
}

/// The masks of ctinfo, behind its number.
pub(super) fn show_masks(info: &Ctinfo, entry: &mut Entry) {
    // 0 is printed without the prefix, as C's `%#x` does.
    let short = |value: u32| if value == 0 { "0".to_owned() } else { format!("{value:#x}") };
    let long = |value: u32| if value == 0 { "0".repeat(10) } else { format!("{value:#010x}") };
    if let Some((mask, state)) = info.dscp {
        entry.say(&format!(" dscp {} {}", long(mask), long(state)));
        entry.member("dscpmask", Json::text(short(mask)));
        entry.member("dscpstatemask", Json::text(short(state)));
    }
    if let Some(mask) = info.mark {
        entry.say(&format!(" cpmark {}", long(mask)));
        entry.member("cpmark", Json::text(short(mask)));
    }
}

/// What ctinfo did, with statistics.
pub(super) fn show_counts(done: &CtinfoCounts, entry: &mut Entry) {
    entry.number("dscpset", done.dscp_set, &format!(" DSCP set {}", done.dscp_set));
    entry.number("dscperror", done.dscp_failed, &format!(" error {}", done.dscp_failed));
    entry.number("cpmarkset", done.mark_set, &format!(" CPMARK set {}", done.mark_set));
}
