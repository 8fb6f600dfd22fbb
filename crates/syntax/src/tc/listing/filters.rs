//! The options of a filter in a listing, and as a command takes them.

use super::actions;
use super::left_out;
use super::object::ListedObject;
use crate::tc::command_line::Object;
use crate::tc::spelling::ListedValue;
use std::collections::{BTreeMap, BTreeSet};

/// A filter's command under way.
#[derive(Default)]
struct Command {
    /// The handle, which comes before the kind.
    handle: Option<String>,
    args: Vec<String>,
}

impl Command {
    fn put(&mut self, words: &[&str]) {
        self.args.extend(words.iter().map(|word| (*word).to_owned()));
    }
}

/// The words of the command behind preference, protocol and chain. `None`: the line is a heading, and comes
/// to nothing.
///
/// # Errors
/// The kind, or an action of it, is not read.
pub(super) fn args(object: &ListedObject) -> Result<Option<Vec<String>>, String> {
    let words: Vec<&str> = object.words.iter().map(String::as_str).collect();
    if words.is_empty() {
        return Ok(None);
    }
    let acts = words.windows(2).position(|pair| pair == ["action", "order"]);
    let old = words.iter().position(|word| *word == "police");
    let end = acts.or(old).unwrap_or(words.len());
    let (own, acts) = words.split_at(end);
    let mut command = match object.kind.as_str() {
        "u32" if own.windows(2).any(|pair| pair == ["ht", "divisor"]) => return Ok(table(own)),
        "u32" => u32_options(own),
        "fw" | "flow" | "matchall" | "flower" | "route" | "basic" | "cgroup" => plain(&object.kind, own),
        _ => return Err("filters of this kind are not read from listings".to_owned()),
    };
    command.args.extend(actions::args(acts)?);
    let handle = command.handle.map(|handle| ["handle".to_owned(), handle]);
    let kind = std::iter::once(object.kind.clone());
    Ok(Some(handle.into_iter().flatten().chain(kind).chain(command.args).collect()))
}

/// The first number of the tables that the kernel makes for each preference.
const OWN_TABLES: u32 = 0x800;

/// Is it a table of u32's that somebody made?
fn is_made(table: &str) -> bool {
    u32::from_str_radix(table.trim_end_matches(':'), 16).is_ok_and(|number| number < OWN_TABLES)
}

/// Is it a line about a table that the kernel makes?
pub(super) fn is_own_table(object: &ListedObject) -> bool {
    let words: Vec<&str> = object.words.iter().map(String::as_str).collect();
    matches!(words.as_slice(), ["fh", table, "ht", "divisor", ..] if !is_made(table))
}

/// The number of the table in a word such as `801::800`, `801:` or `801`, if the kernel made it, and what is
/// behind it.
fn own_table(word: &str) -> Option<(u32, &str)> {
    let (number, rest) = word.split_at(word.find(':').unwrap_or(word.len()));
    let number = u32::from_str_radix(number, 16).ok()?;
    (number >= OWN_TABLES).then_some((number, rest))
}

/// The words of u32 that a table's number is behind.
const BEFORE_TABLES: [&str; 4] = ["fh", "ht", "key_ht", "link"];

/// The table of the kernel's that a line is about: of a preference the least is its root.
pub(super) fn root_table(object: &ListedObject) -> Option<u32> {
    let at = object.words.iter().position(|word| word == "fh")?;
    Some(own_table(object.words.get(at + 1)?)?.0)
}

fn own_tables(object: &ListedObject) -> impl Iterator<Item = u32> + '_ {
    let pairs = object.words.windows(2).filter(|pair| BEFORE_TABLES.contains(&pair[0].as_str()));
    let is_u32 = object.what == Object::Filter && object.kind == "u32";
    pairs.filter(move |_| is_u32).filter_map(|pair| Some(own_table(&pair[1])?.0))
}

/// Numbers the tables that the kernel made for preferences without gaps: their numbers say which was made
/// before which, and nothing about those that were deleted.
pub(super) fn number_tables(objects: &mut [ListedObject]) {
    let mut known: BTreeMap<(String, String), BTreeSet<u32>> = BTreeMap::new();
    for object in objects.iter() {
        known.entry((object.dev.clone(), object.parent.clone())).or_default().extend(own_tables(object));
    }
    for object in objects.iter_mut().filter(|object| object.kind == "u32") {
        let Some(tables) = known.get(&(object.dev.clone(), object.parent.clone())) else { continue };
        let new = |word: &str| -> Option<String> {
            let (number, rest) = own_table(word)?;
            let at = (OWN_TABLES..).zip(tables).find(|(_, table)| **table == number)?.0;
            Some(format!("{at:x}{rest}"))
        };
        for at in 1..object.words.len() {
            if BEFORE_TABLES.contains(&object.words[at - 1].as_str())
                && let Some(word) = new(&object.words[at])
            {
                object.words[at] = word;
            }
        }
        if let Some(handle) = new(&object.handle) {
            object.handle = handle;
        }
        object.members.iter_mut().for_each(|members| renumber(members, &new));
    }
}

/// The same in the members of JSON.
fn renumber(members: &mut [(String, ListedValue)], new: &impl Fn(&str) -> Option<String>) {
    for (key, value) in members {
        match value {
            ListedValue::Object(inner) => renumber(inner, new),
            ListedValue::Text(word) | ListedValue::Number(word) if BEFORE_TABLES.contains(&key.as_str()) => {
                if let Some(changed) = new(word) {
                    *word = changed;
                }
            }
            _ => {}
        }
    }
}

/// `fh 1: ht divisor 256`
fn table(words: &[&str]) -> Option<Vec<String>> {
    let ["fh", table, "ht", "divisor", divisor, ..] = words else { return None };
    let args = ["handle", table, "u32", "divisor", divisor];
    is_made(table).then(|| args.map(str::to_owned).to_vec())
}

/// `fh 800::800 key ht 800 bkt 0 *flowid 1:10 match 00100000/00fc0000 at 0 …`; a word that is not known is
/// left out.
fn u32_options(words: &[&str]) -> Command {
    let (mut front, mut command) = (Command::default(), Command::default());
    let (mut matches, mut rest) = (Vec::new(), words);
    let mut class = None;
    loop {
        rest = match rest {
            [] => break,
            ["key", "ht", table, "bkt", bucket, rest @ ..] => {
                if is_made(table) {
                    front.put(&["ht", &format!("{table}:{bucket}:")]);
                }
                rest
            }
            // Without a class tc names one all the same: `terminal flowid`.
            ["*flowid" | "flowid", id, rest @ ..] if id.contains(':') => {
                class = Some(*id);
                rest
            }
            ["match", pair, "at", at, rest @ ..] => {
                if let Some((value, mask)) = pair.split_once('/') {
                    let (value, mask) = (format!("0x{value}"), format!("0x{mask}"));
                    matches.extend(["match", "u32", &value, &mask, "at", at].map(str::to_owned));
                }
                rest
            }
            ["mark", value, mask, rest @ ..] => {
                matches.extend(["match", "mark", value, mask].map(str::to_owned));
                rest
            }
            ["link", table, rest @ ..] => {
                command.put(&["link", table]);
                rest
            }
            ["offset", rest @ ..] => offset(rest, &mut command),
            ["hash", "mask", mask, "at", at, rest @ ..] => {
                command.put(&["hashkey", "mask", &format!("0x{mask}"), "at", at]);
                rest
            }
            ["input", "dev", dev, rest @ ..] => {
                command.put(&["indev", dev]);
                rest
            }
            ["skip_hw", rest @ ..] => {
                command.put(&["skip_hw"]);
                rest
            }
            [_, rest @ ..] => rest,
        };
    }
    if matches.is_empty() {
        matches = ["match", "u32", "0", "0"].map(str::to_owned).to_vec();
    }
    // Behind `offset` tc takes `match mark` for a word of the offset's.
    front.args.extend(matches);
    front.args.append(&mut command.args);
    if let Some(class) = class {
        front.put(&["flowid", class]);
    }
    front
}

/// `offset 0f00>>6 at 0 plus 4 eat`
fn offset<'w, 'a>(mut rest: &'w [&'a str], command: &mut Command) -> &'w [&'a str] {
    command.put(&["offset"]);
    loop {
        rest = match rest {
            ["plus", bytes, rest @ ..] => {
                command.put(&["plus", bytes]);
                rest
            }
            ["eat", rest @ ..] => {
                command.put(&["eat"]);
                rest
            }
            [field, "at", at, rest @ ..] => match field.split_once(">>") {
                Some((mask, shift)) => {
                    command.put(&["at", at, "mask", mask, "shift", shift]);
                    rest
                }
                None => return rest,
            },
            rest => return rest,
        };
    }
}

/// The other kinds: the words of their commands, but for a few.
fn plain(kind: &str, words: &[&str]) -> Command {
    let mut command = Command::default();
    let mut rest = words;
    let mut class: &[&str] = &[];
    loop {
        rest = match rest {
            [] => break,
            ["handle", handle, rest @ ..] => {
                // Others number theirs.
                command.handle = matches!(kind, "fw" | "flow").then(|| (*handle).to_owned());
                rest
            }
            ["fh", _, rest @ ..] | ["eth_type", _, rest @ ..] => rest,
            ["input", "dev", dev, rest @ ..] => {
                command.put(&["indev", dev]);
                rest
            }
            ["perturb", seconds, rest @ ..] => {
                command.put(&["perturb", seconds.trim_end_matches("sec")]);
                rest
            }
            ["ip_tos" | "ip_ttl", value, ..] => {
                let (number, mask) = value.split_once('/').unwrap_or((value, "0xff"));
                let hex =
                    number.parse::<u8>().map_or_else(|_| number.to_owned(), |byte| format!("{byte:#x}"));
                command.put(&[rest[0], &format!("{hex}/{mask}")]);
                &rest[2..]
            }
            ["classid" | "flowid", _, ..] => {
                class = &rest[..2];
                &rest[2..]
            }
            [first, ..] if is_expression(first) && matches!(kind, "basic" | "cgroup" | "flow") => {
                expression(rest, &mut command)
            }
            [word, rest @ ..] => {
                command.put(&[word]);
                rest
            }
        };
    }
    command.put(class);
    command
}

/// Does an expression of conditions begin here?
fn is_expression(word: &str) -> bool {
    word == "NOT" || word == "(" || word.split_once('(').is_some_and(|(name, _)| !name.is_empty())
}

/// `cmp(u8 at 0 layer 0 eq 5) AND u32(00060000/00ff0000 at 8)`, up to where its parentheses end and no other
/// condition follows.
fn expression<'w, 'a>(mut rest: &'w [&'a str], command: &mut Command) -> &'w [&'a str] {
    command.put(&["match"]);
    let mut depth = 0_usize;
    while let [word, after @ ..] = rest {
        let is_joint = matches!(*word, "AND" | "OR" | "NOT");
        if depth == 0 && !is_joint && !is_expression(word) {
            break;
        }
        depth += word.matches('(').count();
        depth = depth.saturating_sub(word.matches(')').count());
        match word.strip_prefix("u32(").and_then(|pair| pair.split_once('/')) {
            Some((value, mask)) => {
                command.put(&["u32(u32", &format!("0x{value}"), &format!("0x{mask}")]);
            }
            None if is_joint => command.put(&[&word.to_lowercase()]),
            None => command.put(&[word]),
        }
        rest = after;
    }
    rest
}

/// What a listing for people says of a filter's options.
///
/// # Errors
/// JSON does not say all of them.
pub(super) fn words_of(kind: &str, members: &[(String, ListedValue)]) -> Result<Vec<String>, String> {
    let Some(options) = ListedValue::get(members, "options") else { return Ok(Vec::new()) };
    let mut words = Vec::new();
    for (key, value) in options.members() {
        match (key.as_str(), value) {
            ("actions", ListedValue::List(list)) => {
                for (number, action) in (1..).zip(list) {
                    words.extend(["action".to_owned(), "order".to_owned(), format!("{number}:")]);
                    words.extend(actions::words_of(action)?);
                }
            }
            ("ht_divisor", value) => {
                words.extend(["ht", "divisor"].map(str::to_owned));
                words.extend(value.word().map(str::to_owned));
            }
            ("key_ht", value) => {
                let bucket =
                    ListedValue::get(options.members(), "bkt").and_then(ListedValue::word).unwrap_or("0");
                words.extend(
                    ["key", "ht", value.word().unwrap_or_default(), "bkt", bucket].map(str::to_owned),
                );
            }
            ("match", ListedValue::List(list)) => {
                words.extend(list.iter().map(matched).collect::<Result<Vec<_>, _>>()?.concat())
            }
            ("match", one) => words.extend(matched(one)?),
            ("keys", ListedValue::Object(keys)) => {
                keys.iter().for_each(|(key, value)| words.extend(field(key, value, keys)))
            }
            ("keys", ListedValue::List(keys)) => {
                let keys: Vec<&str> = keys.iter().filter_map(ListedValue::word).collect();
                words.extend(["keys".to_owned(), keys.join(",")]);
            }
            ("ematch", ListedValue::Text(text)) => words.extend(text.split_whitespace().map(str::to_owned)),
            ("mode", ListedValue::Text(word)) => words.push(word.clone()),
            ("mask", ListedValue::Text(mask)) if kind == "fw" => {
                // It belongs to the handle before it.
                if let Some(handle) = words.last_mut() {
                    handle.push_str(&format!("/{mask}"));
                }
            }
            ("input_dev", value) => {
                words.extend(["input".to_owned(), "dev".to_owned()]);
                words.extend(value.word().map(str::to_owned));
            }
            ("hash_mask", value) => {
                let at = ListedValue::get(options.members(), "hash_off")
                    .and_then(ListedValue::word)
                    .unwrap_or("0");
                words.extend(["hash", "mask", value.word().unwrap_or_default(), "at", at].map(str::to_owned));
            }
            ("fwmark_value", value) => {
                let mask = ListedValue::get(options.members(), "fwmark_mask")
                    .and_then(ListedValue::word)
                    .unwrap_or("0");
                words.extend(["mark", value.word().unwrap_or_default(), mask].map(str::to_owned));
            }
            ("kind", ListedValue::Text(kind)) => return Err(actions::not_in_json(kind)),
            (key, _) if key != "fh" && left_out::FILTER_MEMBERS.contains(&key) => {}
            (_, ListedValue::Bool(true) | ListedValue::Null) => words.push(key.clone()),
            (_, value) => {
                if let Some(word) = value.word() {
                    words.extend([key.clone(), word.to_owned()]);
                }
            }
        }
    }
    Ok(words)
}

/// A comparison of u32's.
fn matched(key: &ListedValue) -> Result<Vec<String>, String> {
    let part = |name: &str| ListedValue::get(key.members(), name).and_then(ListedValue::word);
    let (Some(value), Some(mask)) = (part("value"), part("mask")) else {
        return Err(
            "this version of tc leaves matches of u32 out of its JSON; save what `tc filter show` prints \
                    instead"
                .to_owned(),
        );
    };
    let pair = format!("{value:0>8}/{mask:0>8}");
    let at = format!("{}{}", part("offmask").unwrap_or_default(), part("off").unwrap_or("0"));
    Ok(vec!["match".to_owned(), pair, "at".to_owned(), at])
}

/// A field of flower's.
fn field(key: &str, value: &ListedValue, all: &[(String, ListedValue)]) -> Vec<String> {
    let word = match value {
        _ if key.ends_with("_mask") => return Vec::new(),
        ListedValue::Object(ends) if ListedValue::get(ends, "start").is_some() => {
            let end =
                |name: &str| ListedValue::get(ends, name).and_then(ListedValue::word).unwrap_or_default();
            format!("{}-{}", end("start"), end("end"))
        }
        ListedValue::Object(flags) => {
            let flag = |(name, on): &(String, ListedValue)| match on {
                ListedValue::Bool(true) => name.clone(),
                _ => format!("no{name}"),
            };
            flags.iter().map(flag).collect::<Vec<_>>().join("/")
        }
        value => value.word().unwrap_or_default().to_owned(),
    };
    let mask = ListedValue::get(all, &format!("{key}_mask")).and_then(ListedValue::word);
    vec![key.to_owned(), mask.map_or(word.clone(), |mask| format!("{word}/0x{mask}"))]
}
