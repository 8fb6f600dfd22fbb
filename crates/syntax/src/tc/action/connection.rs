//! `connmark …`, `ctinfo …`.

use super::{Failed, control_after, own_index};
use crate::number::{u16_in, u32_in};
use crate::tc::words::Words;
use tidegate_policy::{Act, Action, Connmark, Control, Ctinfo};

pub(super) fn connmark(words: &mut Words<'_>) -> Result<Action, Failed> {
    let zone = zone("connmark", words)?;
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "connmark: Illegal \"index\"".into())?;
    Ok(Action { index, ..Act::Connmark(Connmark { zone, control }).into() })
}

pub(super) fn ctinfo(words: &mut Words<'_>) -> Result<Action, Failed> {
    let dscp = dscp(words)?;
    let mut mark = None;
    if words.begins("cpmark") {
        words.skip();
        mark = Some(number_here(words).unwrap_or(u32::MAX));
    }
    let zone = zone("ctinfo", words)?;
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "ctinfo: Illegal \"index\"".into())?;
    // A mask without bits says nothing to the kernel.
    let (dscp, mark) = (dscp.filter(|(mask, _)| *mask != 0), mark.filter(|mask| *mask != 0));
    Ok(Action { index, ..Act::Ctinfo(Ctinfo { zone, dscp, mark, control }).into() })
}

/// `dscp MASK [STATEMASK]`.
fn dscp(words: &mut Words<'_>) -> Result<Option<(u32, u32)>, Failed> {
    const FORM: &str = "dscp takes six bits of the mark that lie side by side, such as 0xfc000000, and bits outside them of which one \
        must be set.";
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

/// The number here, if one stands here.
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
