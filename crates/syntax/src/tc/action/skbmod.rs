//! `skbmod set dmac … smac … etype …`, `skbmod swap mac`, `skbmod ecn`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::number::u16_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Skbmod};

/// `skbmod`.
pub(super) const ROW: Row = Row {
    name: "skbmod",
    form: "skbmod set dmac|smac ADDRESS | set etype N | swap mac | ecn [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let mut skbmod = Skbmod::default();
    if words.peek().is_none() {
        words.need()?;
    }
    while let Some(word) = words.peek() {
        if !take(&mut skbmod, word, words)? {
            break;
        }
    }
    if skbmod == Skbmod::default() && !words.begins("index") {
        let refusal = Refusal::new(255, "skbmod requires at least one option").at(words.place());
        return Err(refusal
            .remedy("skbmod takes set dmac ADDRESS, smac ADDRESS, etype NUMBER; swap mac; or ecn.")
            .into());
    }
    skbmod.control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "skbmod: Illegal \"index\"".into())?;
    Ok(Action { index, ..Act::Skbmod(skbmod).into() })
}

/// Takes an option; false: it is none.
fn take(skbmod: &mut Skbmod, word: &str, words: &mut Words<'_>) -> Result<bool, Failed> {
    let name = ["set", "swap", "dmac", "smac", "etype", "ecn"].into_iter().find(|name| begins(word, name));
    let Some(name) = name else { return Ok(false) };
    words.skip();
    match name {
        "ecn" => skbmod.ecn = true,
        "set" => {
            words.peek().ok_or_else(|| Refusal::incomplete().at(words.place()))?;
        }
        "swap" => {
            let what = words.peek().ok_or_else(|| Refusal::incomplete().at(words.place()))?;
            if begins(what, "mac") {
                words.skip();
                skbmod.swap = true;
            }
        }
        "dmac" => {
            skbmod.destination = Some(address(words, "dst mac")?);
            tell(words, "dst");
        }
        "smac" => {
            skbmod.source = Some(address(words, "smac")?);
            tell(words, "src");
        }
        _ => {
            let text = words.need()?;
            let wrong = || Refusal::wrong(text, "ethertype is invalid").at(words.last());
            let ethertype =
                u16_in(text, 0).ok_or_else(|| wrong().remedy("An EtherType is a number such as 0x0800."))?;
            skbmod.ethertype = Some(ethertype);
            words.say(&format!("skbmod etype {ethertype:#x}"));
        }
    }
    Ok(true)
}

/// tc prints the address it has just read.
fn tell(words: &mut Words<'_>, which: &str) {
    words.back();
    let text = words.take().unwrap_or_default();
    words.say(&format!("{which} MAC address <{text}>"));
}

/// Six bytes with colons; what follows them is not looked at.
fn address(words: &mut Words<'_>, name: &str) -> Result<[u8; 6], Failed> {
    let text = words.need()?;
    mac_bytes(text, false).ok_or_else(|| {
        Failed::say(
            format!("Invalid {name} address {text}"),
            "An address is six bytes with colons, such as 02:00:00:00:00:01.",
        )
    })
}

/// Six bytes with colons; `whole`: nothing may follow them.
pub(super) fn mac_bytes(text: &str, whole: bool) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next()?;
        *byte = u8::from_str_radix(part, 16).ok().filter(|_| (1..=2).contains(&part.len()))?;
    }
    (!whole || parts.next().is_none()).then_some(bytes)
}

/// In JSON tc mixes text into this one, which no program can read; the members here are ours.
fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Skbmod(skbmod) = &dump.action.act else { return };
    let mac = |bytes: [u8; 6]| bytes.map(|byte| format!("{byte:02x}")).join(":");
    entry.say(&format!("skbmod {} ", control_name(skbmod.control)));
    entry.member("control_action", type_of(skbmod.control));
    if skbmod.ecn {
        entry.say("ecn ");
        entry.member("ecn", Json::Bool(true));
        return;
    }
    if skbmod.swap {
        entry.say("swap mac ");
        entry.member("swap_mac", Json::Bool(true));
        return;
    }
    if let Some(ethertype) = skbmod.ethertype {
        entry.say(&format!("set etype 0x{ethertype:X} \n\t "));
        entry.number("etype", ethertype, "");
    }
    for (key, address) in [("dmac", skbmod.destination), ("smac", skbmod.source)] {
        if let Some(address) = address {
            entry.say(&format!("set {key} {} ", mac(address)));
            entry.member(key, Json::text(mac(address)));
        }
    }
}
