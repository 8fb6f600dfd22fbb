//! `simple …`, `sample …`: actions that notify programs.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, SampleAction, Simple};

/// `simple`.
pub(super) const SIMPLE: Row = Row {
    name: "simple",
    form: "simple sdata TEXT [CONTROL] [index N]",
    parse: simple,
    show: show_simple,
    lead: Some("\n\t "),
};

/// `sample`.
pub(super) const SAMPLE: Row = Row {
    name: "sample",
    form: "sample rate N group N [trunc OCTETS] [CONTROL] [index N]",
    parse: sample,
    show: show_sample,
    lead: Some("\n\t "),
};

/// The longest text of simple.
const LONGEST: usize = 31;

/// Reads the words after `simple`.
fn simple(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    const FORM: &str = "simple takes a text of up to 31 characters: simple sdata TEXT.";
    let mut simple = Simple { text: None, control: Control::Pass };
    match words.peek() {
        None => return Err(Failed::from(Refusal::incomplete().at(words.place()))),
        Some(word) if is_text(word) || begins(word, "index") => {}
        Some(_) => return Err(Failed::say("", FORM)),
    }
    while words.peek().is_some_and(is_text) {
        words.skip();
        let text = words.need()?;
        if text.len() > LONGEST {
            return Err(Failed::say(format!("simple: Illegal string len {} <{text}>", text.len()), FORM));
        }
        simple.text = Some(text.to_owned());
    }
    simple.control = control_after(words)?.unwrap_or_default();
    let mut index = 0;
    if words.begins("index") {
        words.skip();
        let text = words.need()?;
        index = u32_in(text, 10).ok_or_else(|| {
            Failed::say(format!("simple: Illegal \"index\" ({text})"), format!("\"{text}\" is not a number."))
        })?;
    }
    Ok(Action { index, ..Act::Simple(simple).into() })
}

/// Is it `sdata`, or enough of it? (`s` alone is not.)
fn is_text(word: &str) -> bool {
    word.len() > 1 && begins(word, "sdata")
}

/// Reads the words after `sample`.
fn sample(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    const FORM: &str =
        "sample takes how many packets there are to one that is shown, and to whom: sample rate 100 group 1.";
    let refuse = |line: String, place: usize| Failed::from(Refusal::new(255, line).at(place).remedy(FORM));
    if words.peek().is_none() {
        return Err(refuse("sample bad argument count 1".into(), words.last()));
    }
    let mut sample = SampleAction::default();
    while let Some(word) = words.peek() {
        let (slot, name) = match ["rate", "group", "trunc"].into_iter().find(|name| begins(word, name)) {
            Some("rate") => (&mut sample.rate, "rate"),
            Some("group") => (&mut sample.group, "group num"),
            Some("trunc") => (&mut sample.trunc_size, "truncation size"),
            _ => break,
        };
        words.skip();
        let text = words.need()?;
        *slot = Some(u32_in(text, 10).ok_or_else(|| refuse(format!("Illegal {name} {text}"), words.last()))?);
    }
    sample.control = control_after(words)?.unwrap_or(Control::Pipe);
    let named = words.begins("index");
    let index = own_index(words, |_| "sample: Illegal \"index\"".into())?;
    for (there, name) in [(sample.group.is_some(), "group"), (sample.rate.is_some(), "rate")] {
        if !there && !named {
            return Err(refuse(format!("param \"{name}\" not set"), words.last()));
        }
    }
    Ok(Action { index, ..Act::Sample(sample).into() })
}

fn show_simple(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Simple(simple) = &dump.action.act else { return };
    let text = simple.text.as_deref().unwrap_or_default();
    entry.say(&format!("Simple <{text}>"));
    entry.member("sdata", Json::text(text));
}

fn show_sample(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Sample(sample) = &dump.action.act else { return };
    let (rate, group) = (sample.rate.unwrap_or_default(), sample.group.unwrap_or_default());
    entry.number("rate", rate, &format!("sample rate 1/{rate}"));
    entry.number("group", group, &format!(" group {group}"));
    if let Some(bytes) = sample.trunc_size {
        entry.number("trunc_size", bytes, &format!(" trunc_size {bytes}"));
    }
    entry.say(&format!(" {}", control_name(sample.control)));
    entry.member("control_action", type_of(sample.control));
}
