//! The options of a qdisc or class in a listing, and as a command takes them: by the kind's table of options.
//! What a kind lists otherwise is in its file ([`Spelling`]).

use super::left_out;
use super::object::ListedObject;
use crate::tc::command_line::Object;
use crate::tc::kind::syntax;
use crate::tc::spelling::{ListedValue, Spelling, amount, is_listed_as, place_of};
use crate::units::{bytes_of, parse_rate, parse_size, parse_time, ticks_of};
use tidegate_policy::Kind;
use tidegate_policy::spec::{KindSpec, OptionSpec, ValueKind};

/// Buckets that the kernel keeps as time, and their rates.
const BUCKETS: [(&str, &str); 3] = [("burst", "rate"), ("cburst", "ceil"), ("mtu", "peakrate")];
/// By how many bytes a bucket may be rounded down, and looked for.
const MAX_ROUNDING: u32 = 4096;
/// Options that a listing shows twice, and that change nothing at 0.
const NOTHING_AT_ZERO: [&str; 2] = ["mpu", "overhead"];

/// Whose options are listed.
#[derive(Clone, Copy)]
pub(in crate::tc) struct Listed {
    pub(in crate::tc) table: &'static [OptionSpec],
    pub(in crate::tc) spelling: &'static Spelling,
}

impl Listed {
    /// `None`: nothing is known about the kind.
    pub(super) fn of(object: &ListedObject) -> Option<Listed> {
        let kind = Kind::from_name(&object.kind)?;
        let spec = KindSpec::find(kind.name())?;
        let table = if object.what == Object::Class { spec.class } else { spec.qdisc };
        Some(Listed { table: table.unwrap_or(&[]), spelling: syntax(kind).spelling() })
    }

    /// The option that a word of the listing names.
    fn option(self, word: &str) -> Option<&'static OptionSpec> {
        let named = self.spelling.names.iter().find(|(listed, _)| *listed == word);
        let name = named.map_or(word, |(_, option)| option);
        self.table.iter().find(|option| option.key == name || option.aliases.contains(&name))
    }

    /// The option that a word is, if it has no value.
    pub(super) fn flag(self, word: &str) -> Option<&'static OptionSpec> {
        self.option(word).filter(|option| option.value == ValueKind::Flag)
    }

    /// Is a word's value hexadecimal, with `0x` or without?
    pub(super) fn is_hex(self, word: &str) -> bool {
        self.option(word).is_some_and(|option| matches!(option.value, ValueKind::Hex | ValueKind::Hex16))
    }

    /// The options in a row of words of a listing.
    fn args(self, words: &[String]) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            let Some(option) = self.option(word) else { continue };
            let values = self.values(option, &words[at..]);
            at += values.len();
            // `bandwidth unlimited`: the value is an option itself.
            if option.value != ValueKind::Flag && values.is_empty() || seen.contains(&option.key) {
                continue;
            }
            seen.push(option.key);
            self.push(option, values, &mut out);
        }
        out
    }

    /// The words behind an option that belong to it.
    fn values<'w>(self, option: &OptionSpec, rest: &'w [String]) -> &'w [String] {
        let is_other = |word: &String| self.option(word).is_some();
        let most = match option.value {
            ValueKind::Flag => 0,
            ValueKind::Priomap | ValueKind::Words(_) | ValueKind::Curve => rest.len(),
            _ => 1,
        };
        let end = rest.iter().take(most).position(|word| is_other(word) && !is_part(self, option, word));
        &rest[..end.unwrap_or(most.min(rest.len()))]
    }

    fn push(self, option: &OptionSpec, values: &[String], out: &mut Vec<String>) {
        let key = option.key.to_owned();
        match option.value {
            ValueKind::Ignored => {}
            ValueKind::Words(_) => {
                out.push(key);
                out.extend(self.in_parts(option, values));
            }
            ValueKind::Flag | ValueKind::Priomap | ValueKind::Curve => {
                out.push(key);
                out.extend(values.iter().cloned());
            }
            takes => {
                let value = values.first().map_or("", String::as_str);
                let value = self.value(option, takes, value);
                let is_default = NOTHING_AT_ZERO.contains(&option.key) && value == "0"
                    || takes == ValueKind::LinkLayer && value != "atm";
                if !is_default {
                    out.extend([key, value]);
                }
            }
        }
    }

    /// A value as a command takes it: `10240p` is 10240, `128/1024` the first, `1599b/8` is 1599b, `10sec` is
    /// 10.
    fn value(self, option: &OptionSpec, takes: ValueKind, text: &str) -> String {
        let first = text.split('/').next().unwrap_or(text);
        if let Some((_, one)) = self.spelling.times.iter().find(|(key, _)| *key == option.key) {
            return parse_time(first).map_or_else(|| first.to_owned(), |us| (us / one).to_string());
        }
        if let Some((_, part)) = self.spelling.kept_in_ns.iter().find(|(key, _)| *key == option.key) {
            return parse_time(first).map_or_else(|| first.to_owned(), |us| unrounded(us, *part, first));
        }
        match takes {
            ValueKind::Hex | ValueKind::Hex16 => first.trim_start_matches("0x").to_owned(),
            ValueKind::Decimal
            | ValueKind::Number
            | ValueKind::Decimal16
            | ValueKind::Signed
            | ValueKind::SignedAny => number(first),
            ValueKind::Size if first.ends_with('p') => number(first),
            ValueKind::Selector | ValueKind::TimeOrPackets => text.to_owned(),
            _ => first.to_owned(),
        }
    }

    /// Values without the names before them; what is between two that are listed is 0.
    fn in_parts(self, option: &OptionSpec, values: &[String]) -> Vec<String> {
        let mut out = Vec::new();
        // Where the values of the names that were listed last begin.
        let mut begun = 0;
        let mut words = values.iter();
        while let Some(word) = words.next() {
            let found = self.spelling.parts.iter().find_map(|(of, names)| {
                let at = names.iter().position(|name| name == word)?;
                (*of == option.key).then_some((*names, at))
            });
            match (found, words.clone().next()) {
                (Some((_, at)), Some(value)) => {
                    words.next();
                    out.resize(out.len().max(begun + at), "0".to_owned());
                    out.push(value.clone());
                }
                _ => {
                    out.push(word.clone());
                    begun = out.len();
                }
            }
        }
        out
    }
}

/// Is a word a name of a part of an option?
fn is_part(listed: Listed, option: &OptionSpec, word: &str) -> bool {
    listed.spelling.parts.iter().any(|(of, names)| *of == option.key && names.contains(&word))
}

/// The time that is listed as this one, where the kernel keeps it in parts of `part` nanoseconds.
fn unrounded(shown: u32, part: u64, text: &str) -> String {
    let listed = |us: &u32| is_listed_as((u64::from(*us) * 1000 / part * part / 1000) as u32, shown, text);
    match (shown..=shown.saturating_add(2)).find(listed) {
        Some(us) if us != shown => format!("{us}us"),
        _ => text.to_owned(),
    }
}

/// A number without its unit: `10240p`, `20pps`; an amount with one is counted in bytes.
fn number(text: &str) -> String {
    let plain = ["pps", "p", "%", "B"].into_iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    let is_plain = plain.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '-' | '+' | 'x'))
        && !plain.ends_with(['b', 'B'])
        || plain.starts_with("0x");
    match parse_size(plain) {
        Some(bytes) if !is_plain => bytes.to_string(),
        _ => plain.to_owned(),
    }
}

/// The options of a qdisc or class as a command takes them.
pub(super) fn args(object: &ListedObject) -> Vec<String> {
    let Some(listed) = Listed::of(object) else { return object.words.clone() };
    let mut out = listed.args(&object.words);
    let is_listed = |word: &str| object.words.iter().any(|listed| listed == word);
    if !out.is_empty() {
        let off = listed.spelling.unless.iter().filter(|(on, _)| !is_listed(on));
        out.extend(off.map(|(_, off)| (*off).to_owned()));
    }
    args_of_buckets(&mut out);
    if let Some(kind) = Kind::from_name(&object.kind) {
        syntax(kind).settle(&mut out);
    }
    out
}

/// Finds the bytes of buckets that are listed rounded.
pub(super) fn args_of_buckets(args: &mut [String]) {
    for (burst, rate) in BUCKETS {
        fill_bucket(args, rate, burst);
    }
}

/// tc keeps a bucket as time and shows it in bytes rounded down: finds the bytes that are shown as these.
fn fill_bucket(args: &mut [String], rate: &str, burst: &str) {
    let (Some(rate), Some(at)) = (place_of(args, rate), place_of(args, burst)) else { return };
    let (Some(rate), Some(shown)) = (parse_rate(&args[rate]), parse_size(&args[at])) else { return };
    let same = |bytes: &u32| bytes_of(rate, ticks_of(rate, *bytes)) == shown;
    if rate.0 > 0
        && let Some(bytes) = (shown..shown.saturating_add(MAX_ROUNDING)).find(same)
    {
        args[at] = format!("{bytes}b");
    }
}

/// Members that say which class it is, where its options are among them.
const HEAD: [&str; 8] = ["kind", "class", "handle", "dev", "parent", "root", "leaf", "options"];

/// What a listing for people says of the options of a qdisc or class.
pub(super) fn words_of(object: &ListedObject, members: &[(String, ListedValue)]) -> Vec<String> {
    let mut words = Vec::new();
    for key in ["ingress_block", "egress_block"] {
        if let Some(number) = ListedValue::get(members, key).and_then(ListedValue::word) {
            words.extend([key.to_owned(), number.to_owned()]);
        }
    }
    let options = ListedValue::get(members, "options").map(ListedValue::members);
    // Qdiscs have their options in an object, older classes among the rest.
    let listed = options.unwrap_or(if object.what == Object::Class { members } else { &[] });
    let is_head = |key: &str| {
        options.is_none() && [&HEAD[..], &left_out::CLASS_MEMBERS].iter().any(|keys| keys.contains(&key))
    };
    let known = |key: &str| !is_head(key) && !left_out::MEMBERS.contains(&key);
    for (key, value) in listed.iter().filter(|(key, _)| known(key)) {
        words.extend(member(object, (key, value), listed));
    }
    words
}

/// What a listing for people says of a table of sizes.
pub(super) fn stab_of(members: &[(String, ListedValue)]) -> Vec<String> {
    let mut words = Vec::new();
    for (key, value) in ListedValue::get(members, "stab").map_or(&[][..], ListedValue::members) {
        words.push(key.clone());
        words.extend(value.word().map(str::to_owned));
    }
    words
}

/// The words that a member stands for.
fn member(
    object: &ListedObject,
    (key, value): (&str, &ListedValue),
    all: &[(String, ListedValue)],
) -> Vec<String> {
    let kind = Kind::from_name(&object.kind);
    if let Some(words) = kind.and_then(|kind| syntax(kind).member(key, value, all)) {
        return words;
    }
    let option = Listed::of(object).and_then(|listed| listed.option(key));
    let takes = option.map_or(ValueKind::Number, |option| option.value);
    match value {
        ListedValue::Null | ListedValue::Bool(true) => vec![key.to_owned()],
        ListedValue::Bool(false) => Vec::new(),
        ListedValue::Number(digits) => vec![key.to_owned(), amount(takes, digits)],
        ListedValue::Text(word) => vec![key.to_owned(), word.clone()],
        ListedValue::List(items) => {
            let mut words = vec![key.to_owned()];
            words.extend(items.iter().filter_map(ListedValue::word).map(str::to_owned));
            words
        }
        ListedValue::Object(parts) => {
            let mut words = vec![key.to_owned()];
            for (name, part) in parts {
                let takes = if name == "d" { ValueKind::Time } else { ValueKind::Rate };
                let Some(word) = part.word() else { continue };
                let value = if takes_curve(option) { amount(takes, word) } else { word.to_owned() };
                words.extend([name.clone(), value]);
            }
            words
        }
    }
}

fn takes_curve(option: Option<&OptionSpec>) -> bool {
    option.is_some_and(|option| option.value == ValueKind::Curve)
}
