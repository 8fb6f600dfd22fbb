//! flow: its words, and how it is listed.

use super::row::{Given, ListedFilter, Read, Row, illegal, number, old_style};
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::action;
use crate::tc::ematch;
use crate::tc::prefix::{dotted, parse_prefix6};
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::units::parse_classid;
use crate::{Env, Refusal};
use tidegate_policy::spec::FLOW;
use tidegate_policy::{FilterParams, FlowKeySet, FlowMode, FlowParams};

/// `flow`.
pub(super) const ROW: Row = Row { name: "flow", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let number = number(handle)?;
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let mut actions = Vec::new();
    // tc always sends a mode; without `hash` it is `map`.
    let mut params = FlowParams { mode: Some(FlowMode::Map), ..FlowParams::default() };
    while let Some(word) = words.take() {
        let place = words.last();
        let option = FLOW.options.iter().find(|option| option.is(word)).map(|option| option.key);
        let mut value = |name: &str| {
            let text = words.need()?;
            u32_in(text, 0).ok_or_else(|| illegal(name, "", text, words.last()))
        };
        match option {
            Some("and" | "or" | "xor") => params.given.bits = true,
            Some("rshift") => params.given.rshift = true,
            Some("addend") => params.given.addend = true,
            Some("divisor") => params.given.divisor = true,
            Some("perturb") => params.given.perturb = true,
            _ => {}
        }
        match option {
            Some("hash") => params.mode = Some(FlowMode::Hash),
            Some("map") => params.mode = Some(FlowMode::Map),
            Some("keys") => params.keys = keys(env, words)?,
            Some("and") => {
                let mask = value("mask")?;
                params.mask &= mask;
                params.xor &= mask;
            }
            Some("or") => {
                let bits = value("or")?;
                params.mask &= !bits;
                params.xor |= bits;
            }
            Some("xor") => params.xor ^= value("xor")?,
            Some("rshift") => params.rshift = value("rshift")?,
            Some("addend") => params.addend = addend(words)?,
            Some("divisor") => params.divisor = value("divisor")?,
            Some("perturb") => params.perturb = value("perturb")?,
            Some("baseclass") => {
                let text = words.need()?;
                let class = parse_classid(text).filter(|class| class.minor() != 0);
                params.baseclass = Some(class.ok_or_else(|| illegal("baseclass", "", text, words.last()))?);
            }
            _ if begins(word, "action") => action::replace(&mut actions, action::parse(words, env)?),
            _ if begins(word, "police") => actions = action::old_police(words, env)?,
            _ if begins(word, "match") => {
                if words.peek().is_none() {
                    words.need()?;
                }
                params.terms = ematch::parse(words)?;
                // tc looks at the expression's last word again unless something follows.
                if words.peek().is_none() {
                    words.back();
                    let again = words.take().unwrap_or_default();
                    return Err(Refusal::new(1, format!("What is \"{again}\"?"))
                        .then(&FLOW.help())
                        .at(words.last())
                        .remedy(
                            "tc 6.1 reads `match` only before other words of flow: write it before `map` or \
                            `hash`.",
                        ));
                }
            }
            _ if word == "help" => {
                return Err(Refusal { stderr: FLOW.help(), code: 1, ..Refusal::default() });
            }
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&FLOW.help())
                    .at(place)
                    .remedy(
                        "flow takes `hash keys K,…` or `map key K` with and, or, xor, rshift, addend; \
                    divisor, baseclass, perturb.",
                    ));
            }
        }
    }
    if params.mode == Some(FlowMode::Map) && params.keys.0.count_ones() > 1 {
        return Err(Refusal::new(1, "Invalid mode \"map\" for multiple keys")
            .remedy("Only one key can be computed with; to spread by several, write `flow hash keys …`."));
    }
    Ok(Read { handle: number, params: Some(FilterParams::Flow(params)), actions })
}

fn keys(env: &Env, words: &mut Words<'_>) -> Result<FlowKeySet, Refusal> {
    let list = words.need()?;
    let mut set = FlowKeySet(0);
    for name in list.split(',') {
        // The first that the word begins is meant (asked of tc 6.1), unless it is a whole name.
        let of = |fits: fn(&str, &str) -> bool| FlowKeySet::NAMES.iter().position(|key| fits(key, name));
        let known = of(|key, name| key == name)
            .or_else(|| of(|key, name| key.starts_with(name)).filter(|_| !name.is_empty()));
        // tc has no name for the flow label.
        let usable = |bit: &usize| *bit < 18 || env.tunnel_keys && *bit >= FlowKeySet::TUNNEL;
        let bit = known.filter(usable).ok_or_else(|| {
            let remedy = match known {
                Some(FlowKeySet::TUNNEL..) => {
                    "The keys of a tunnel's inside are of patched kernels; with --dissect legacy the \
                    machine is such a one. Others look into tunnels on their own: write src, dst, proto …"
                        .into()
                }
                _ => format!("The keys are {}.", FlowKeySet::NAMES[..18].join(", ")),
            };
            Refusal::new(1, format!("Unknown flow key \"{name}\"")).at(words.last()).remedy(remedy)
        })?;
        set.0 |= 1 << bit;
    }
    Ok(set)
}

/// A number or an IPv4 address, with a minus sign to take it away; for IPv6 addresses their last word counts.
fn addend(words: &mut Words<'_>) -> Result<u32, Refusal> {
    let text = words.need()?;
    let (body, negative) = match text.strip_prefix('-') {
        Some(body) => (body, true),
        None => (text, false),
    };
    let number = u32_in(body, 0)
        .or_else(|| dotted(body))
        .or_else(|| parse_prefix6(body).map(|(bytes, _)| bytes).map(last_word));
    let number = number.ok_or_else(|| {
        Refusal::new(1, format!("Error: any valid address is expected rather than \"{body}\"."))
            .at(words.last())
            .remedy("addend takes a number or an address, with - before it to subtract: addend -192.168.0.0.")
    })?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

fn last_word(bytes: [u8; 16]) -> u32 {
    u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]])
}

fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Flow(params), handle) = (filter.params, filter.handle) else { return None };
    let mut entry = Entry::new();
    entry.word("handle", &format!("{handle:#x}"));
    let mode = if params.mode == Some(FlowMode::Map) { "map" } else { "hash" };
    entry.say(&format!("{mode} "));
    entry.member("mode", Json::text(mode));
    let keys: Vec<&str> =
        (0..).zip(FlowKeySet::NAMES).filter(|(bit, _)| params.keys.has(*bit)).map(|(_, name)| name).collect();
    entry.say(&format!("keys {} ", keys.join(",")));
    entry.member("keys", Json::List(keys.into_iter().map(Json::text).collect()));
    if params.mask != u32::MAX {
        entry.word("and", &format!("{:#010x}", params.mask));
    }
    // Bits that the mask takes away and that are turned over are set; the others are turned over.
    for (word, bits) in [("xor", params.mask & params.xor), ("or", !params.mask & params.xor)] {
        if bits != 0 {
            entry.word(word, &format!("{bits:#010x}"));
        }
    }
    if params.rshift != 0 {
        entry.number("rshift", params.rshift, &format!("rshift {} ", params.rshift));
    }
    if params.addend != 0 {
        entry.word("addend", &format!("{:#x}", params.addend));
    }
    if params.divisor != 0 {
        entry.number("divisor", params.divisor, &format!("divisor {} ", params.divisor));
    }
    if let Some(class) = params.baseclass {
        entry.word("baseclass", &class.to_string());
    }
    if params.perturb != 0 {
        entry.number("perturb", params.perturb, &format!("perturb {}sec ", params.perturb));
    }
    if !params.terms.is_empty() {
        let text = ematch::show(&params.terms, 2);
        entry.say(&format!("\n{text}"));
        entry.member("ematch", Json::text(text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    if !filter.actions.is_empty() && !old_style(filter.actions) {
        entry.say("\n");
    }
    action::show(filter.actions, filter.flags, &mut entry);
    Some(entry)
}
