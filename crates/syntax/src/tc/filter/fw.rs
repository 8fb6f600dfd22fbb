//! fw: its words, and how it is listed.

use super::row::{Given, ListedFilter, Read, Row, came_in, class, illegal, old_style};
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::action;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::spec::FW;
use tidegate_policy::{FilterParams, FwParams, Indev};

/// `fw`.
pub(super) const ROW: Row = Row { name: "fw", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let mut params = FwParams::default();
    let mut number = 0;
    if let Some((text, place)) = handle {
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) => (value, Some(mask)),
            None => (text, None),
        };
        number = u32_in(value, 0).ok_or_else(|| illegal("handle", "", text, place))?;
        if let Some(mask) = mask {
            params.mask = Some(u32_in(mask, 0).ok_or_else(|| illegal("handle", " mask", text, place))?);
        }
    }
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let mut actions = Vec::new();
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "classid") || begins(word, "flowid") => params.classid = Some(class(words)?),
            _ if begins(word, "action") => action::replace(&mut actions, action::parse(words, env)?),
            _ if begins(word, "police") => actions = action::old_police(words, env)?,
            "indev" => params.indev = Some(Indev::named(words.need()?)),
            "help" => return Err(Refusal { stderr: FW.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&FW.help())
                    .at(words.last())
                    .remedy("fw takes classid (or flowid) and a class: handle 10 fw flowid 1:10."));
            }
        }
    }
    Ok(Read { handle: number, params: Some(FilterParams::Fw(params)), actions })
}

/// The kernel dumps no options of a filter that names no class and has no actions.
fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Fw(params), handle) = (filter.params, filter.handle) else { return None };
    let class = params.classid.filter(|class| !class.is_none());
    if class.is_none() && filter.actions.is_empty() && came_in(params.indev.as_ref()).is_none() {
        return None;
    }
    let mut entry = Entry::new();
    entry.say(&format!("handle {handle:#x}"));
    entry.member("handle", Json::text(format!("{handle:#x}")));
    if let Some(mask) = params.mask.filter(|mask| *mask != u32::MAX) {
        entry.say(&format!("/{mask:#x}"));
        entry.member("mask", Json::text(format!("{mask:#x}")));
    }
    entry.say(" ");
    if let Some(class) = class {
        entry.word("classid", &class.to_string());
    }
    if let Some(name) = came_in(params.indev.as_ref()) {
        entry.say(&format!("input dev {name} "));
        entry.member("input_dev", Json::text(name));
    }
    if !filter.actions.is_empty() && !old_style(filter.actions) {
        entry.say("\n");
    }
    action::show(filter.actions, filter.flags, &mut entry);
    Some(entry)
}
