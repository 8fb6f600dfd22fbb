//! `mpls push label …`, `mpls pop protocol …`, `mpls modify …`, `mpls dec_ttl`.

use super::row::{Failed, Row, control_after, control_name, type_of};
use crate::json::Json;
use crate::number::{u8_in, u32_in};
use crate::tc::build::later;
use crate::tc::command_line::ShowFlags;
use crate::tc::protocols::{parse_protocol, protocol};
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Mpls, MplsFields, MplsHow};

/// `mpls`.
pub(super) const ROW: Row = Row {
    name: "mpls",
    form: "mpls pop protocol P | push [protocol mpls_uc|mpls_mc] label N [tc N] [bos 0|1] [ttl N] | modify … \
    | dec_ttl [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

const FORM: &str = "Labels are handled so: mpls push label 20 [tc N] [ttl N], mpls pop protocol ip, mpls modify \
label 30, mpls dec_ttl.";
/// In tc's order: an abbreviation goes to the first that fits.
const KEYS: [&str; 10] =
    ["pop", "push", "modify", "mac_push", "dec_ttl", "label", "tc", "ttl", "bos", "protocol"];
/// The time to live of a label that is pushed without one.
const TTL: u8 = 255;

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let (mut verb, mut fields, mut kind) = (None, MplsFields::default(), None);
    if words.peek().is_none() {
        words.need()?;
    }
    while let Some(word) = words.peek() {
        // `p` alone would be a verb's beginning, but the decision is looked for last.
        let Some(name) = KEYS.into_iter().find(|name| begins(word, name)) else { break };
        words.skip();
        match name {
            "pop" | "push" | "mac_push" | "modify" | "dec_ttl" => {
                set_verb(&mut verb, name, word, words.last())?
            }
            "protocol" => kind = Some(ethertype(verb, words)?),
            _ => field(&mut fields, name, verb, words)?,
        }
    }
    let Some(verb) = verb else { return Err(Refusal::incomplete().at(words.place()).remedy(FORM).into()) };
    let how = how(verb, kind, fields, words.place())?;
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let mut index = 0;
    if words.begins("index") {
        words.skip();
        index = value(words, "illegal index", |text| u32_in(text, 10))?;
    }
    Ok(Action { index, ..Act::Mpls(Mpls { how, control }).into() })
}

fn set_verb(
    verb: &mut Option<&'static str>,
    name: &'static str,
    word: &str,
    place: usize,
) -> Result<(), Failed> {
    if let Some(before) = verb {
        let line = format!("Error: got \"{word}\" but action already set to \"{before}\"");
        return Err(Failed::say(format!("{line}\nUsage: {}", ROW.form), FORM));
    }
    if name == "mac_push" {
        let refusal = later("action", "mpls mac_push", place);
        return Err(refusal.remedy("Not built: labels lie behind the link header here; use push.").into());
    }
    *verb = Some(name);
    Ok(())
}

/// The EtherType after `protocol`.
fn ethertype(verb: Option<&str>, words: &mut Words<'_>) -> Result<u16, Failed> {
    if !matches!(verb, Some("push" | "pop")) {
        return Err(only("protocol", "only valid for push, mac_push and pop", words));
    }
    value(words, "protocol is invalid", parse_protocol)
}

/// The value of one of a label's fields.
fn field(
    fields: &mut MplsFields,
    name: &str,
    verb: Option<&str>,
    words: &mut Words<'_>,
) -> Result<(), Failed> {
    if !matches!(verb, Some("push" | "modify")) {
        return Err(only(name, "only valid for push, mac_push and modify", words));
    }
    match name {
        "label" => {
            let read = |text: &str| u32_in(text, 0).filter(|label| *label <= 0xf_ffff);
            fields.label = Some(value(words, "label must be <=0xFFFFF", read)?);
        }
        "tc" => {
            let read = |text: &str| u8_in(text, 0).filter(|class| *class < 8);
            fields.class = Some(value(words, "tc field is 3 bits max", read)?);
        }
        "ttl" => {
            let read = |text: &str| u8_in(text, 0).filter(|ttl| *ttl > 0);
            fields.ttl = Some(value(words, "ttl must be >0 and <=255", read)?);
        }
        _ => {
            let read = |text: &str| u8_in(text, 0).filter(|bottom| *bottom < 2);
            fields.bottom = Some(value(words, "bos must be 0 or 1", read)? == 1);
        }
    }
    Ok(())
}

/// A key that the verb does not take.
fn only(key: &str, why: &str, words: &Words<'_>) -> Failed {
    Refusal::wrong(key, why).at(words.last()).remedy(FORM).into()
}

fn value<T>(words: &mut Words<'_>, why: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Failed> {
    let text = words.need()?;
    Ok(read(text).ok_or_else(|| Refusal::wrong(text, why).at(words.last()).remedy(FORM))?)
}

fn how(verb: &str, kind: Option<u16>, fields: MplsFields, place: usize) -> Result<MplsHow, Failed> {
    let required = |key: &str| {
        let refusal = Refusal::new(255, format!("Error: argument \"{key}\" is required"));
        Failed::from(refusal.at(place).remedy(FORM))
    };
    match verb {
        "pop" => Ok(MplsHow::Pop(kind.ok_or_else(|| required("protocol"))?)),
        "push" => {
            fields.label.ok_or_else(|| required("label"))?;
            let kind = kind.unwrap_or(MplsFields::UNICAST);
            if !matches!(kind, MplsFields::UNICAST | MplsFields::MULTICAST) {
                let line = format!("invalid push protocol \"{kind:#06x}\" - use mpls_(uc|mc)");
                return Err(Failed::say(line, "Packets with labels are of the protocol mpls_uc or mpls_mc."));
            }
            Ok(MplsHow::Push(kind, MplsFields { ttl: fields.ttl.or(Some(TTL)), ..fields }))
        }
        "modify" => Ok(MplsHow::Modify(fields)),
        _ => Ok(MplsHow::DecTtl),
    }
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Mpls(mpls) = &dump.action.act else { return };
    let (verb, kind, fields) = match mpls.how {
        MplsHow::Pop(kind) => ("pop", Some(kind), MplsFields::default()),
        MplsHow::Push(kind, fields) => ("push", Some(kind), fields),
        MplsHow::Modify(fields) => ("modify", None, fields),
        MplsHow::DecTtl => ("dec_ttl", None, MplsFields::default()),
    };
    entry.say(&format!("mpls  {verb}"));
    entry.member("mpls_action", Json::text(verb));
    if let Some(kind) = kind {
        entry.say(&format!(" protocol {}", protocol(kind)));
        entry.member("protocol", Json::text(protocol(kind)));
    }
    let numbers = [
        ("label", fields.label),
        ("tc", fields.class.map(u32::from)),
        ("bos", fields.bottom.map(u32::from)),
        ("ttl", fields.ttl.map(u32::from)),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            entry.number(key, number, &format!(" {key} {number}"));
        }
    }
    entry.say(&format!(" {}", control_name(mpls.control)));
    entry.member("control_action", type_of(mpls.control));
}
