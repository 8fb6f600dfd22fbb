//! route: its words, and how it is listed.

use super::row::{Given, ListedFilter, Read, Row, class, illegal, number, old_style};
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::action;
use crate::tc::build::later;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::spec::ROUTE;
use tidegate_policy::{FilterParams, Indev, RouteParams};

/// `route`.
pub(super) const ROW: Row = Row { name: "route", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let (place, named) = (words.last(), number(handle)?);
    if words.peek().is_none() {
        return Ok(Read { handle: named, ..Read::default() });
    }
    let (mut params, mut actions) = (RouteParams::default(), Vec::new());
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "to") => params.to = Some(realm("to", words)?),
            _ if begins(word, "from") => params.from = Some(realm("from", words)?),
            "fromif" => {
                let name = words.need()?;
                if !env.has(name) {
                    return Err(illegal("fromif", "", name, words.last()));
                }
                params.fromif = Some(Indev::named(name));
            }
            _ if begins(word, "order") => {
                let text = words.need()?;
                let order = u32_in(text, 0).ok_or_else(|| illegal("order", "", text, words.last()))?;
                params.order = (order & 0x7f) as u8;
            }
            _ if begins(word, "classid") || word == "flowid" => params.classid = Some(class(words)?),
            _ if begins(word, "action") => action::replace(&mut actions, action::parse(words, env)?),
            _ if begins(word, "police") => actions = action::old_police(words, env)?,
            "help" => return Err(Refusal { stderr: ROUTE.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&ROUTE.help())
                    .at(words.last())
                    .remedy("route takes from or fromif, to, classid (or flowid) and a class, and action."));
            }
        }
    }
    if [params.from, params.to].into_iter().flatten().all(|realm| realm == 0) {
        return Err(later("filter", "route without a realm", place).remedy(
            "Not built: which packets are routed is not followed; name a realm, or use another filter.",
        ));
    }
    let handle = if named == 0 { params.handle().unwrap_or(0) } else { named };
    Ok(Read { handle, params: Some(FilterParams::Route(params)), actions })
}

/// A realm by its number.
fn realm(name: &str, words: &mut Words<'_>) -> Result<u8, Refusal> {
    let text = words.need()?;
    let number = if text == "cosmos" { Some(0) } else { u32_in(text, 0) };
    number.and_then(|number| u8::try_from(number).ok()).ok_or_else(|| illegal(name, "", text, words.last()))
}

fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Route(params), handle) = (filter.params, filter.handle) else { return None };
    let mut entry = Entry::new();
    let mut put = |key: &'static str, text: String, more: &str| {
        entry.say(&format!("{key} {text}{more}"));
        entry.member(key, Json::text(text));
    };
    put("fh", format!("{handle:#010x}"), " ");
    if params.order != 0 {
        put("order", params.order.to_string(), " ");
    }
    if let Some(class) = params.classid.filter(|class| !class.is_none()) {
        put("flowid", class.to_string(), " ");
    }
    let name = |realm: u8| if realm == 0 { "cosmos".to_owned() } else { realm.to_string() };
    if let Some(to) = params.to {
        put("to", name(to), " ");
    }
    if let Some(indev) = &params.fromif {
        put("fromif", indev.name.clone(), "");
    }
    if let Some(from) = params.from {
        put("from", name(from), " ");
    }
    if old_style(filter.actions) {
        entry.say("");
    }
    action::show(filter.actions, filter.flags, &mut entry);
    Some(entry)
}
