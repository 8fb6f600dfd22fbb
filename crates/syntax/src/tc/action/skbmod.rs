//! `skbmod set dmac … smac … etype …`, `skbmod swap mac`, `skbmod ecn`.

use super::{Failed, control_after, own_index};
use crate::Refusal;
use crate::number::u16_in;
use crate::tc::words::{Words, begins};
use tidegate_policy::{Act, Action, Control, Skbmod};

pub(super) fn parse(words: &mut Words<'_>) -> Result<Action, Failed> {
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

/// Six octets with colons; what follows them is not looked at.
fn address(words: &mut Words<'_>, name: &str) -> Result<[u8; 6], Failed> {
    let text = words.need()?;
    octets(text, false).ok_or_else(|| {
        Failed::say(
            format!("Invalid {name} address {text}"),
            "An address is six octets with colons, such as 02:00:00:00:00:01.",
        )
    })
}

/// Six octets with colons; `whole`: nothing may follow them.
pub(super) fn octets(text: &str, whole: bool) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        let part = parts.next()?;
        *octet = u8::from_str_radix(part, 16).ok().filter(|_| (1..=2).contains(&part.len()))?;
    }
    (!whole || parts.next().is_none()).then_some(octets)
}
