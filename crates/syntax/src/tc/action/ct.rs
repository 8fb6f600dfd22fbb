//! `ct …`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::number::{u16_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use std::net::IpAddr;
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Ct, CtNat};

/// `ct`.
pub(super) const ROW: Row = Row {
    name: "ct",
    form: "ct clear | ct [nat] | ct commit [force] [mark N[/MASK]] [nat src|dst addr ADDRESS[-ADDRESS] \
    [port PORT[-PORT]]] [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

const FORM: &str = "ct clear; ct [nat]; ct commit [force] [mark N[/MASK]] [nat src|dst addr \
ADDRESS[-ADDRESS] [port PORT[-PORT]]]";

/// In the order in which tc looks for what a word begins.
const NAMES: [&str; 8] = ["zone", "nat", "clear", "commit", "force", "index", "mark", "label"];

/// Reads the words after `ct`.
fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let (mut ct, mut index) = (Ct::default(), 0);
    while let Some(word) = words.peek() {
        match NAMES.into_iter().find(|name| begins(word, name)).unwrap_or_default() {
            name @ ("zone" | "mark" | "label") => {
                words.skip();
                value(name, &mut ct, words)?;
            }
            "nat" => {
                words.skip();
                nat(&mut ct, words)?;
                continue;
            }
            "index" => index = own_index(words, |_| "ct: Illegal \"index\"".into())?,
            "clear" => {
                words.skip();
                ct.clear = true;
            }
            "commit" => {
                words.skip();
                ct.commit = true;
            }
            "force" => {
                words.skip();
                ct.force = true;
            }
            _ => break,
        }
    }
    check(&ct)?;
    // Only a committed connection can have a mark or labels.
    ct.force &= ct.commit;
    ct.control = control_after(words)?.unwrap_or(Control::Pipe);
    Ok(Action { index, ..Act::Ct(ct).into() })
}

fn value(name: &str, ct: &mut Ct, words: &mut Words<'_>) -> Result<(), Failed> {
    let text = words.need()?;
    let fail =
        || Failed::say(format!("ct: Illegal \"{name}\""), format!("\"{text}\" is not a value for {name}."));
    match name {
        "zone" => ct.zone = Some(u16_in(text, 10).ok_or_else(fail)?),
        "label" => ct.label = Some(label(text, words.last())?),
        "mark" => {
            let (value, mask) =
                text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
            let mask = mask.map_or(Some(u32::MAX), |mask| u32_in(mask, 0));
            ct.mark = Some((u32_in(value, 0).ok_or_else(fail)?, mask.ok_or_else(fail)?));
        }
        _ => unreachable!("ct has no such value"),
    }
    Ok(())
}

/// `HEX[/HEX]`: bytes from the first on; what is not written is 0, and without a mask all count.
fn label(text: &str, place: usize) -> Result<(u128, u128), Failed> {
    const MOST: usize = 32;
    let read = |digits: &str| {
        let wrong = |why: String| {
            Failed::from(Refusal::wrong(digits, &why).at(place).remedy(
                "A label is up to 16 bytes in hexadecimal without 0x, such as 123123, with /MASK behind it \
                if need be.",
            ))
        };
        if digits.len() > MOST {
            return Err(wrong(format!("{} Max allowed size {MOST}", digits.len())));
        }
        let whole = !digits.is_empty()
            && digits.len().is_multiple_of(2)
            && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u128::from_str_radix(&format!("{digits:0<MOST$}"), 16).ok().filter(|_| whole);
        number.ok_or_else(|| wrong("ct: labels must be a hex string\n".into()))
    };
    let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
    Ok((read(value)?, mask.map_or(Ok(u128::MAX), read)?))
}

/// What follows `nat`: tc wants to see a word after each that may end it.
fn nat(ct: &mut Ct, words: &mut Words<'_>) -> Result<(), Failed> {
    let end = || Failed::from(Refusal::incomplete().remedy(FORM));
    let source = match words.peek().ok_or_else(end)? {
        "src" => true,
        "dst" => false,
        _ => {
            ct.nat = Some(CtNat::Known);
            return Ok(());
        }
    };
    words.skip();
    if words.need()? != "addr" {
        return Err(Refusal::new(255, "Usage: ct …").at(words.last()).remedy(FORM).into());
    }
    let text = words.need()?;
    let addresses = addresses(text, words.last())?;
    let mut ports = None;
    if words.peek().ok_or_else(end)? == "port" {
        words.skip();
        let text = words.need()?;
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let read = u16_in(low, 10).zip(u16_in(high, 10));
        ports = Some(read.ok_or_else(|| Failed::say("ct: Illegal nat port range", FORM))?);
    }
    ct.nat = Some(CtNat::New { source, addresses, ports });
    Ok(())
}

fn addresses(text: &str, place: usize) -> Result<(IpAddr, IpAddr), Failed> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let read = |text: &str| {
        text.parse().map_err(|_| {
            let sentence = format!("Error: any valid address is expected rather than \"{text}\".");
            let refused = Refusal::new(1, sentence).at_once().at(place);
            Failed::from(refused.remedy("Write an address, or two with a dash between."))
        })
    };
    Ok((read(low)?, read(high)?))
}

fn check(ct: &Ct) -> Result<(), Failed> {
    let alone = Ct { clear: true, ..Ct::default() };
    if ct.clear && *ct != alone {
        return Err(Failed::say("ct: clear can only be used alone", FORM));
    }
    match ct.nat {
        Some(CtNat::Known) if ct.commit => Err(Failed::say("ct: commit and nat must set src or dst", FORM)),
        Some(CtNat::New { .. }) if !ct.commit => {
            Err(Failed::say("ct: src or dst is only valid if commit is set", FORM))
        }
        _ => Ok(()),
    }
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Ct(ct) = &dump.action.act else { return };
    entry.say("ct");
    let words = [("clear", ct.clear), ("commit", ct.commit), ("force", ct.force)];
    let words: Vec<&str> = words.into_iter().filter(|(_, given)| *given).map(|(word, _)| word).collect();
    if !words.is_empty() {
        entry.say(&format!(" {}", words.join(" ")));
        entry.member("action", Json::text(words.join(" ")));
    }
    if let Some((mark, mask)) = ct.mark {
        entry.number("mark", mark, &format!(" mark {mark}"));
        if mask != u32::MAX {
            entry.say(&format!("/{mask:#x}"));
            entry.member("mark_mask", Json::text(format!("{mask:x}")));
        }
    }
    if let Some(zone) = ct.zone {
        entry.number("zone", zone, &format!(" zone {zone}"));
    }
    if let Some((label, mask)) = ct.label {
        let mask = if mask == u128::MAX { String::new() } else { format!("/{mask:032x}") };
        entry.say(&format!(" label {label:032x}{mask}"));
        entry.member("label", Json::text(format!("{label:032x}{mask}")));
    }
    if let Some(nat) = ct.nat {
        let how = translated(nat);
        let blank = if how.is_empty() { "" } else { " " };
        entry.say(&format!(" nat{blank}{how}"));
        entry.member("nat", Json::text(how));
    }
    entry.say(&format!(" {}", control_name(ct.control)));
    entry.member("control_action", type_of(ct.control));
}

/// `src addr 10.0.0.1-10.0.0.9 port 1-9`.
fn translated(nat: CtNat) -> String {
    let CtNat::New { source, addresses: (low, high), ports } = nat else { return String::new() };
    let mut text = format!("{} addr {low}", if source { "src" } else { "dst" });
    if low != high {
        text.push_str(&format!("-{high}"));
    }
    if let Some((low, high)) = ports {
        text.push_str(&format!(" port {low}"));
        if low != high {
            text.push_str(&format!("-{high}"));
        }
    }
    text
}
