//! `pedit [ex] munge …`: what is written by the names of fields or by offsets, as words of 32 bits.

mod fields;
mod pack;

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::Env;
use crate::json::Json;
use crate::number::{i32_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::prefix::{parse_prefix4, parse_prefix6};
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use fields::{Field, FieldBytes, Form, Value};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Pedit, PeditAt, PeditHeader, PeditKey};

/// `pedit`.
pub(super) const ROW: Row = Row {
    name: "pedit",
    form: "pedit [ex] munge FIELD set|add|clear|invert|preserve … [munge …] [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n \t "),
};

/// The most words of one action.
const MOST: usize = 128;
const FORM: &str =
    "Octets are rewritten so: pedit ex munge ip ttl set 64, or pedit munge offset 8 u8 set 64.";

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let extended = words.need()? == "ex";
    if extended {
        words.peek().ok_or_else(|| crate::Refusal::incomplete().at(words.place()))?;
    } else {
        words.back();
    }
    let mut keys = Vec::new();
    while let Some(word) = words.peek() {
        // tc passes over its name wherever a munge may stand (tc-pedit(8) has it twice).
        let named = begins(word, "pedit");
        if word == "ex" {
            return Err(bad_place());
        }
        if !named && !begins(word, "munge") {
            break;
        }
        words.skip();
        if named {
            words.peek().ok_or_else(|| crate::Refusal::incomplete().at(words.place()))?;
            continue;
        }
        munge(words, extended, &mut keys)?;
        if keys.len() > MOST {
            return Err(Failed::say("", format!("One action rewrites at most {MOST} words.")));
        }
    }
    let control = control_after(words)?.unwrap_or(Control::Pass);
    let index = own_index(words, |_| "Pedit: Illegal \"index\"".into())?;
    Ok(Action { index, ..Act::Pedit(Pedit { keys, control }).into() })
}

fn bad_place() -> Failed {
    Failed::say("'ex' must be before first 'munge'", FORM)
}

fn bad(word: Option<&str>) -> Failed {
    Failed::say(format!("Bad pedit construct ({})", word.unwrap_or("(null)")), FORM)
}

/// Adds the error line that tc prints before it names the construct.
fn after(line: &str, failed: Failed) -> Failed {
    match failed {
        Failed::Partly(rest, remedy) if !line.is_empty() => Failed::Partly(format!("{line}\n{rest}"), remedy),
        other => other,
    }
}

fn munge(words: &mut Words<'_>, extended: bool, keys: &mut Vec<PeditKey>) -> Result<(), Failed> {
    let header = words.need()?;
    if begins(header, "offset") {
        return raw(words, extended, keys);
    }
    let name = words.need()?;
    let construct = || after("bad pedit parsing", bad(Some(header)));
    if !fields::HEADERS.contains(&header) {
        return Err(after(&format!("Unknown action  hence option \"{name}\" is unparsable"), construct()));
    }
    let field = fields::find(header, name, extended).ok_or_else(construct)?;
    let wrong = |line: String| after(&line, construct());
    let value = command(words, &field, extended).map_err(|it| it.into_failed(wrong))?;
    pack::pack(&field, &value, keys).map_err(wrong)
}

/// `offset N u8|u16|u32 [at N MASK SHIFT] …`.
fn raw(words: &mut Words<'_>, extended: bool, keys: &mut Vec<PeditKey>) -> Result<(), Failed> {
    let text = words.need()?;
    let construct = || bad(Some(text));
    let offset = i32_in(text, 0).ok_or_else(construct)?;
    let width = words.take().ok_or_else(construct)?;
    let forms = [("u32", Form::Word), ("u16", Form::Half), ("u8", Form::Byte)];
    let (_, form) = forms.into_iter().find(|(name, _)| begins(width, name)).ok_or_else(construct)?;
    let mut at = None;
    if begins(words.peek().ok_or_else(|| crate::Refusal::incomplete().at(words.place()))?, "at") {
        words.skip();
        at = Some(moved_by(words, construct)?);
        words.peek().ok_or_else(|| crate::Refusal::incomplete().at(words.place()))?;
    }
    let field = Field { header: PeditHeader::Network, offset, form, retain: form.all(), decrements: false };
    let verb = words.peek();
    let wrong = |line: String| after(&line, bad(verb));
    let value = command(words, &field, extended).map_err(|it| it.into_failed(wrong))?;
    pack::pack(&field, &value, keys).map_err(|line| after(&line, bad(words.peek())))?;
    if let Some(key) = keys.last_mut() {
        key.at = at;
    }
    Ok(())
}

fn moved_by(words: &mut Words<'_>, construct: impl Fn() -> Failed) -> Result<PeditAt, Failed> {
    let offset = i32_in(words.need()?, 0).ok_or_else(&construct)?;
    let mask = u32_in(words.need()?, 16).ok_or_else(&construct)?;
    let shift = u32_in(words.need()?, 0).ok_or_else(&construct)?;
    Ok(PeditAt { offset, mask, shift })
}

/// Why a command cannot be read.
enum Unread {
    Short(crate::Refusal),
    Printed(String),
}

impl From<crate::Refusal> for Unread {
    fn from(refusal: crate::Refusal) -> Unread {
        Unread::Short(refusal)
    }
}

impl Unread {
    fn into_failed(self, wrong: impl FnOnce(String) -> Failed) -> Failed {
        match self {
            Unread::Short(refusal) => refusal.into(),
            Unread::Printed(line) => wrong(line),
        }
    }
}

/// `set N`, `add N`, `clear`, `invert`, `preserve`, `decrement`, and `retain BITS` behind it.
fn command(words: &mut Words<'_>, field: &Field, extended: bool) -> Result<Value, Unread> {
    const VERBS: [&str; 6] = ["preserve", "set", "add", "clear", "invert", "decrement"];
    let unread = || Unread::Printed(String::new());
    let unread_of = |line: &str| Unread::Printed(line.into());
    let verb =
        words.peek().and_then(|word| VERBS.into_iter().find(|verb| begins(word, verb))).ok_or_else(unread)?;
    if verb == "decrement" && !field.decrements {
        return Err(unread_of("decrement command is not supported for this field"));
    }
    if matches!(verb, "add" | "decrement") && !extended {
        return Err(unread_of("Non extended mode. only 'set' command is supported"));
    }
    words.skip();
    let all = field.form.all();
    let mut value = Value { add: false, bytes: field.form.first(0), keep: false, retain: field.retain };
    match verb {
        "set" | "add" => {
            value.bytes = field.form.read(words.need()?).map_err(Unread::Printed)?;
            value.add = verb == "add";
        }
        "decrement" => (value.add, value.bytes) = (true, FieldBytes::Number(0xff)),
        "invert" => (value.bytes, value.keep) = (field.form.first(all), true),
        "preserve" => value.retain = 0,
        _ => {}
    }
    if words.begins("retain") {
        words.skip();
        value.retain = u32_in(words.need()?, 0).ok_or_else(unread)?;
    }
    if field.form.is_long() && value.retain != u32::MAX {
        return Err(unread_of("retain is not supported for fields longer the 32 bits"));
    }
    Ok(value)
}

impl Form {
    /// A value of this form; the error is tc's message for one that is none.
    fn read(self, text: &str) -> Result<FieldBytes, String> {
        let bytes = match self {
            Form::Address4 => parse_prefix4(text).map(|(address, _)| FieldBytes::Number(address)),
            Form::Address6 => parse_prefix6(text).map(|(address, _)| FieldBytes::Address6(address)),
            Form::Ethernet => return link_address(text).map(FieldBytes::Address),
            _ => u32_in(text, 0).map(FieldBytes::Number),
        };
        bytes.ok_or_else(String::new)
    }

    /// A value whose first byte, or whole number, is this. (tc inverts the first byte of long fields only,
    /// and forgets to keep them.)
    fn first(self, number: u32) -> FieldBytes {
        let first = number as u8;
        match self {
            Form::Ethernet => FieldBytes::Address([first, 0, 0, 0, 0, 0]),
            Form::Address6 => {
                FieldBytes::Address6(core::array::from_fn(|at| if at == 0 { first } else { 0 }))
            }
            _ => FieldBytes::Number(number),
        }
    }
}

/// A MAC address; tc names the part that is no byte, and prints nothing where the number of parts is wrong.
fn link_address(text: &str) -> Result<[u8; 6], String> {
    let byte_of = |part: &str| u8::from_str_radix(part, 16).ok().filter(|_| !part.starts_with('+'));
    // With dots it is an IPv4 address to tc, which has four.
    let wrong = text.split(':').take(6).find(|part| byte_of(part).is_none()).filter(|_| !text.contains('.'));
    match wrong {
        Some(part) => Err(format!("\"{part}\" is invalid lladdr.")),
        None => super::skbmod::mac_bytes(text, true).ok_or_else(String::new),
    }
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Pedit(pedit) = &dump.action.act else { return };
    entry.say(&format!(" pedit action {} keys {}", control_name(pedit.control), pedit.keys.len()));
    entry.member("control_action", type_of(pedit.control));
    entry.member("nkeys", Json::number(pedit.keys.len()));
}

/// pedit's keys, behind what all actions show.
pub(super) fn show_keys(pedit: &Pedit, entry: &mut Entry) {
    let mut list = Vec::new();
    for (number, key) in pedit.keys.iter().enumerate() {
        let PeditKey { header, add, value, mask, offset, .. } = key;
        let place = match header {
            PeditHeader::Network => offset.to_string(),
            named => format!("{}+{offset}", named.name()),
        };
        let verb = if *add { "add" } else { "val" };
        entry.say(&format!("\n\t key #{number}  at {place}: {verb} {value:08x} mask {mask:08x}"));
        list.push(Json::Object(vec![
            ("htype", Json::text(header.name())),
            ("offset", Json::number(offset)),
            ("cmd", Json::text(if *add { "add" } else { "set" })),
            ("val", Json::text(format!("{value:x}"))),
            ("mask", Json::text(format!("{mask:x}"))),
        ]));
    }
    entry.member("keys", Json::List(list));
}

#[cfg(test)]
mod tests {
    use crate::Env;
    use crate::tc::parse;

    /// As tc 6.1 reads it, which was asked.
    #[test]
    fn its_own_name_is_passed_over_where_a_munge_may_stand() {
        let read = |action: &str| {
            let line = format!("filter add dev eth0 parent 1: u32 match ip dport 23 0xffff action {action}");
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            parse(&words, &Env::default()).map(|read| read.command).map_err(|refused| refused.stderr)
        };
        let once = read("pedit munge ip dport set 22");
        assert!(once.is_ok(), "{once:?}");
        assert_eq!(read("pedit pedit munge ip dport set 22"), once);
        let both = read("pedit munge ip dport set 22 munge ip sport set 3");
        assert_eq!(read("pedit munge ip dport set 22 p munge ip sport set 3"), both);
        let late = read("pedit pedit ex munge ip dport set 22").expect_err("it is refused");
        assert!(late.starts_with("'ex' must be before first 'munge'"), "{late}");
        assert!(read("pedit pedit").is_err());
    }
}
