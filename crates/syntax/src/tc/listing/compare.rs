//! A listing, and what is listed of the machine that was made of it: whatever the first says must come back.

use super::left_out;
use super::object::{ListedObject, shown};
use super::options::Listed;
use crate::number::u32_in;
use crate::tc::command_line::Object;
use crate::tc::spelling::ListedValue;
use crate::units::{parse_nanos, parse_rate, parse_size, parse_time};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::Rate;

/// Something that a listing says and that did not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingDifference {
    /// Which of several listings has it, from 0.
    pub file: usize,
    /// Its line, from 1.
    pub line: usize,
    /// What it is, what was given and what came back: a sentence.
    pub what: String,
    /// Whether the listing is refused; otherwise the sentence is a caveat.
    pub is_refused: bool,
}

/// What of the objects that were given is not in the listings of the machine that was made: `again` are
/// several listings of it, with `-d` and without, and the one that is closest to what was given counts.
pub fn compare(given: &[ListedObject], again: &[Vec<ListedObject>]) -> Vec<ListingDifference> {
    let again: Vec<_> = again.iter().map(|objects| by_place(objects)).collect();
    let mut out = Vec::new();
    let mut detailed = Detailed::default();
    for (place, object) in by_place(given) {
        detailed.look(
            object,
            &again.iter().filter_map(|objects| objects.get(&place).copied()).collect::<Vec<_>>(),
        );
        out.extend(unlisted(object).map(|what| caveat(object, what.to_owned())));
        let differences = again.iter().map(|objects| match objects.get(&place) {
            Some(made) => differences_of(object, made),
            None => vec![difference(object, "does not come back".to_owned())],
        });
        let refused = |found: &Vec<ListingDifference>| found.iter().filter(|one| one.is_refused).count();
        out.extend(differences.min_by_key(|found| (refused(found), found.len())).unwrap_or_default());
    }
    out.extend(detailed.caveat());
    out.sort_by_key(|difference| (difference.file, difference.line));
    out
}

/// What only a listing with `-d` says, and the listing that was given does not.
#[derive(Default)]
struct Detailed<'o> {
    /// The first object that lacks something.
    first: Option<&'o ListedObject>,
    names: BTreeSet<String>,
}

impl<'o> Detailed<'o> {
    /// `made` is the object in the listings of the machine: the first is with `-d`.
    fn look(&mut self, given: &'o ListedObject, made: &[&ListedObject]) {
        let [detailed, plain, ..] = made else { return };
        if given.what == Object::Filter {
            return;
        }
        let (said, plain) = (names(given), names(plain));
        let hidden: Vec<String> = names(detailed).into_iter().filter(|name| !plain.contains(name)).collect();
        // A listing with `-d` has all of them, or those that its version of tc has.
        if hidden.is_empty() || hidden.iter().any(|name| said.contains(name)) {
            return;
        }
        self.first = self.first.or(Some(given));
        self.names.extend(hidden);
    }

    fn caveat(self) -> Option<ListingDifference> {
        let names = self.names.into_iter().collect::<Vec<_>>().join(", ");
        self.first.map(|object| {
            let what = format!(
                "without -d tc does not list {names} of some kinds, nor tables of sizes (stab), so the usual \
                 values are taken; list with `tc -d`"
            );
            caveat(object, what)
        })
    }
}

/// The names of what an object says.
fn names(object: &ListedObject) -> BTreeSet<String> {
    let words = groups(&object.words).into_iter().map(|said| said.name.to_owned());
    let members = object.members.iter().flatten().filter(|(key, _)| !HEAD.contains(&key.as_str()));
    let inner = members.clone().flat_map(|(_, value)| value.members());
    match object.members {
        Some(_) => {
            let all = members.chain(inner).map(|(key, _)| key.clone());
            all.filter(|key| !left_out::MEMBERS.contains(&key.as_str()) && key != "options").collect()
        }
        None => words.collect(),
    }
}

/// What tc never lists of an object.
fn unlisted(object: &ListedObject) -> Option<&'static str> {
    let (name, values, sentence) = Listed::of(object)?.spelling.unlisted?;
    groups(&object.words)
        .iter()
        .any(|said| said.name == name && said.values.len() >= values)
        .then_some(sentence)
}

/// What tells an object from others: of filters their number in the list of their parent.
type Place<'o> = (bool, &'o str, &'o str, Vec<&'o str>, usize);

fn by_place(objects: &[ListedObject]) -> BTreeMap<Place<'_>, &ListedObject> {
    let mut out = BTreeMap::new();
    let mut counted: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for object in objects.iter().filter(|object| is_compared(object)) {
        let (mut head, mut number) = (Vec::new(), 0);
        let mut handle = object.handle.as_str();
        if let Some(of_filter) = &object.head {
            head = vec![object.parent.as_str(), &of_filter.chain, &of_filter.pref, &object.kind];
            let mut list = head.clone();
            list.push(object.dev.as_str());
            number = *counted.entry(list).and_modify(|count| *count += 1).or_insert(0);
            handle = "";
        }
        out.insert((object.what == Object::Class, object.dev.as_str(), handle, head, number), object);
    }
    out
}

/// Headings of preferences and u32's own tables say nothing that the filters in them do not.
fn is_compared(object: &ListedObject) -> bool {
    match object.what {
        Object::Qdisc => !object.is_default(),
        Object::Class => super::commands::is_made(object),
        Object::Filter => !object.words.is_empty() && !super::filters::is_own_table(object),
    }
}

fn difference(object: &ListedObject, what: String) -> ListingDifference {
    let what = object.says(what);
    ListingDifference { file: object.file, line: object.line, what, is_refused: true }
}

fn caveat(object: &ListedObject, what: String) -> ListingDifference {
    ListingDifference { is_refused: false, ..difference(object, what) }
}

/// What an object says that the one that was made does not.
fn differences_of(given: &ListedObject, made: &ListedObject) -> Vec<ListingDifference> {
    let mut out = Vec::new();
    for (name, given_word, made_word) in
        [("kind", &given.kind, &made.kind), ("parent", &given.parent, &made.parent)]
    {
        if given_word != made_word {
            out.push(difference(
                given,
                apart(&format!("{name} {given_word}"), Some(&format!("{name} {made_word}"))),
            ));
        }
    }
    if let (Some(head), Some(made_head)) = (&given.head, &made.head)
        && head.protocol != made_head.protocol
    {
        out.push(difference(given, apart(&head.protocol, Some(&made_head.protocol))));
    }
    match (&given.members, &made.members) {
        (Some(given_members), Some(made_members)) => {
            out.extend(member_differences(given, given_members, made_members));
        }
        _ => {
            out.extend(word_differences(given, &given.words, &made.words));
            out.extend(word_differences(given, &given.stab, &made.stab));
        }
    }
    out
}

/// What was given, and what came back instead.
fn apart(given: &str, back: Option<&str>) -> String {
    match back {
        Some(back) => format!("`{}` comes back as `{}`", shown(given), shown(back)),
        None if given.starts_with("leaf ") => format!(
            "`{}` does not come back: that qdisc is not listed; add what `tc qdisc show` prints",
            shown(given)
        ),
        None => format!("`{}` does not come back", shown(given)),
    }
}

/// A name in a listing with the values behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said<'w> {
    name: &'w str,
    values: Vec<&'w str>,
}

impl Said<'_> {
    fn text(&self) -> String {
        std::iter::once(self.name).chain(self.values.iter().copied()).collect::<Vec<_>>().join(" ")
    }
}

/// Words in groups: a name begins with a letter, and what follows up to the next one is its value.
fn groups(words: &[String]) -> Vec<Said<'_>> {
    let mut out: Vec<Said<'_>> = Vec::new();
    for word in words {
        // u32's `*flowid` is a `flowid` in other versions of tc.
        let word = word.strip_prefix('*').unwrap_or(word);
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic());
        match out.last_mut().filter(|_| !is_name) {
            Some(said) => said.values.push(word),
            None => out.push(Said { name: word, values: Vec::new() }),
        }
    }
    out
}

/// What words of a listing for people say and others do not. First what is in the same order, as tc's order
/// hardly changes; then what is there once on each side.
fn word_differences(given: &ListedObject, words: &[String], made: &[String]) -> Vec<ListingDifference> {
    let (said, back) = (groups(words), groups(made));
    let rate = fastest(&said);
    let same = |one: &Said<'_>, other: &Said<'_>| is_same(one, other, rate) || is_same_hex(given, one, other);
    let (mut left, mut free) = in_order(&said, &back, &same);
    left.retain(|one| {
        let found = free.iter().position(|other| same(one, other));
        found.map(|at| free.remove(at)).is_none()
    });
    let mut out = Vec::new();
    for one in left {
        let instead = free.iter().position(|other| other.name == one.name).map(|at| free.remove(at));
        let what = match instead {
            Some(other) => within_a_timer_tick(given, one, other),
            None => newer(given, one),
        };
        out.push(match what {
            Some(what) => caveat(given, what),
            None => difference(given, apart(&one.text(), instead.map(|other| other.text()).as_deref())),
        });
    }
    // What is switched on without being listed; an older kernel may not know it.
    out.extend(free.iter().filter_map(|one| unasked(given, one)));
    out
}

/// Those of both sides that have no counterpart in the same order.
fn in_order<'s, 'w>(
    said: &'s [Said<'w>],
    back: &'s [Said<'w>],
    same: &dyn Fn(&Said<'_>, &Said<'_>) -> bool,
) -> (Vec<&'s Said<'w>>, Vec<&'s Said<'w>>) {
    let (mut left, mut free) = (Vec::new(), Vec::new());
    let mut at = 0;
    for one in said {
        match back[at..].iter().position(|other| same(one, other)) {
            Some(skipped) => {
                free.extend(&back[at..at + skipped]);
                at += skipped + 1;
            }
            None => left.push(one),
        }
    }
    free.extend(&back[at..]);
    (left, free)
}

/// What is said of a word that comes back and was not given. `None`: it is no switch.
fn unasked(object: &ListedObject, said: &Said<'_>) -> Option<ListingDifference> {
    let flag = Listed::of(object)?.flag(said.name).filter(|_| said.values.is_empty())?;
    let what = format!("`{}` comes back and is not in the listing", said.name);
    Some(match flag.default {
        "this" | "on" => caveat(object, format!("{what}: it is what Linux 6.1 does where nothing is said")),
        _ => difference(object, what),
    })
}

/// A caveat about what newer kernels list of their own.
fn newer(object: &ListedObject, said: &Said<'_>) -> Option<String> {
    let usual = Listed::of(object)?.spelling.newer.iter().find(|(name, _)| *name == said.name)?.1;
    let is_usual = said.values.join(" ") == usual;
    is_usual.then(|| {
        format!(
            "`{}` is what a newer kernel does; tidegate's is that of Linux 6.1, without it",
            shown(&said.text())
        )
    })
}

/// Microseconds between two ticks of the kernel's timer, of 250 in a second.
const TIMER_TICK_US: u32 = 4000;

/// A caveat about a time that other kernels round otherwise.
fn within_a_timer_tick(object: &ListedObject, one: &Said<'_>, other: &Said<'_>) -> Option<String> {
    let ([given], [made]) = (one.values.as_slice(), other.values.as_slice()) else { return None };
    let is_near = parse_time(given)?.abs_diff(parse_time(made)?) < TIMER_TICK_US;
    let is_rounded = is_near && Listed::of(object)?.spelling.in_ticks.contains(&one.name);
    is_rounded.then(|| {
        let apart = apart(&one.text(), Some(&other.text()));
        format!("{apart}, as the timer of tidegate's kernel ticks every 4 ms")
    })
}

/// The fastest rate among the words: buckets are kept as time at it.
fn fastest(said: &[Said<'_>]) -> Rate {
    let rates = said.iter().filter(|one| matches!(one.name, "rate" | "ceil" | "peakrate"));
    let rates = rates.filter_map(|one| parse_rate(one.values.first()?));
    rates.max_by_key(|rate| rate.0).unwrap_or_default()
}

/// Numbers that older versions of tc list without `0x`.
fn is_same_hex(object: &ListedObject, one: &Said<'_>, other: &Said<'_>) -> bool {
    let ([given], [made]) = (one.values.as_slice(), other.values.as_slice()) else { return false };
    let number = |text: &str| u32_in(text, 16);
    one.name == other.name
        && Listed::of(object).is_some_and(|listed| listed.is_hex(one.name))
        && number(given).is_some_and(|given| number(made) == Some(given))
}

/// Bytes that the kernel keeps as the time that they take, and tc 6.1 sends and lists in whole microseconds;
/// newer ones have nanoseconds.
const BUCKETS: [&str; 4] = ["burst", "cburst", "mtu", "minburst"];

fn is_same(one: &Said<'_>, other: &Said<'_>, rate: Rate) -> bool {
    let near = |(a, b): (&&str, &&str)| {
        is_same_value(a, b) || BUCKETS.contains(&one.name) && within_a_microsecond(a, b, rate)
    };
    one.name == other.name
        && one.values.len() == other.values.len()
        && one.values.iter().zip(&other.values).all(near)
}

fn within_a_microsecond(one: &str, other: &str, rate: Rate) -> bool {
    let bytes = |text: &str| parse_size(text.split('/').next().unwrap_or(text));
    let (Some(one), Some(other)) = (bytes(one), bytes(other)) else { return false };
    f64::from(one.abs_diff(other)) <= 1.0 + rate.0 as f64 / 1e6
}

/// Do two words mean the same, in another unit or notation of tc's?
fn is_same_value(one: &str, other: &str) -> bool {
    fn by<T: PartialEq>(one: &str, other: &str, read: impl Fn(&str) -> Option<T>) -> bool {
        read(one).is_some_and(|value| read(other) == Some(value))
    }
    if let (Ok(one), Ok(other)) = (one.parse::<f64>(), other.parse::<f64>()) {
        return one.to_bits() == other.to_bits();
    }
    one == other
        || by(one, other, |text| u32_in(text, 0))
        || by(one, other, |text| parse_rate(text).filter(|_| text.contains("bit") || text.ends_with("bps")))
        || by(one, other, |text| parse_size(text).filter(|_| !text.contains("bit")))
        || by(one, other, parse_time)
        || by(one, other, parse_nanos)
}

/// What members of JSON say and others do not.
fn member_differences(
    object: &ListedObject,
    given: &[(String, ListedValue)],
    made: &[(String, ListedValue)],
) -> Vec<ListingDifference> {
    let mut out = Vec::new();
    match object.what {
        // Classes have their options among the rest.
        Object::Class => each_member(object, given, made, &mut out),
        _ => {
            for key in ["options", "stab", "ingress_block", "egress_block"] {
                let of = |members: &'_ [(String, ListedValue)]| {
                    members.iter().filter(|(name, _)| name == key).cloned().collect::<Vec<_>>()
                };
                each_member(object, &of(given), &of(made), &mut out);
            }
        }
    }
    out
}

/// Members that say which object it is, and are compared elsewhere.
const HEAD: [&str; 6] = ["class", "kind", "handle", "dev", "parent", "root"];

fn each_member(
    object: &ListedObject,
    given: &[(String, ListedValue)],
    made: &[(String, ListedValue)],
    out: &mut Vec<ListingDifference>,
) {
    let is_left_out = |key: &str| match object.what {
        Object::Filter => left_out::FILTER_MEMBERS.contains(&key) || key == "handle" && object.kind != "fw",
        Object::Class => {
            let all = [&HEAD[..], &left_out::MEMBERS, &left_out::CLASS_MEMBERS];
            all.iter().any(|keys| keys.contains(&key))
        }
        Object::Qdisc => left_out::MEMBERS.contains(&key),
    };
    let mut used = vec![false; made.len()];
    for (key, value) in given.iter().filter(|(key, _)| !is_left_out(key)) {
        let found = made.iter().zip(&used).position(|((name, _), used)| name == key && !used);
        let Some(at) = found else {
            // What is off need not be listed.
            if !is_off(value) {
                out.push(missing(object, key, value));
            }
            continue;
        };
        used[at] = true;
        value_differences(object, key, (value, &made[at].1), out);
    }
    let back = made
        .iter()
        .zip(&used)
        .filter(|((key, value), used)| !**used && *value == ListedValue::Bool(true) && !is_left_out(key));
    for ((key, _), _) in back {
        out.push(difference(object, format!("`{}` comes back and is not in the listing", shown(key))));
    }
}

/// A member that is not listed of the machine that was made.
fn missing(object: &ListedObject, key: &str, value: &ListedValue) -> ListingDifference {
    let text = text_of(value);
    let words: Vec<&str> = text.trim_matches(['[', ']']).split(',').collect();
    match newer(object, &Said { name: key, values: words }) {
        Some(what) => caveat(object, what),
        None => difference(object, apart(&format!("{key}: {text}"), None)),
    }
}

fn value_differences(
    object: &ListedObject,
    key: &str,
    (given, made): (&ListedValue, &ListedValue),
    out: &mut Vec<ListingDifference>,
) {
    match (given, made) {
        (ListedValue::Object(given), ListedValue::Object(made)) => each_member(object, given, made, out),
        (ListedValue::List(given), ListedValue::List(made)) if given.len() == made.len() => {
            given.iter().zip(made).for_each(|pair| value_differences(object, key, pair, out));
        }
        (given, made) if is_same_member(key, given, made) => {}
        (given, made) => {
            let (given, made) = (text_of(given), text_of(made));
            let said = |value| Said { name: key, values: vec![value] };
            let text = |value| format!("{key}: {value}");
            out.push(match within_a_timer_tick(object, &said(&given), &said(&made)) {
                Some(what) => caveat(object, what),
                None => difference(object, apart(&text(&given), Some(&text(&made)))),
            });
        }
    }
}

/// Are two numbers the same to the six digits that tc prints of a fraction?
fn is_near(one: f64, other: f64) -> bool {
    let most = one.abs().max(other.abs());
    (one - other).abs() <= if one.fract() == 0.0 && other.fract() == 0.0 { 0.0 } else { most * 2e-6 }
}

fn is_off(value: &ListedValue) -> bool {
    matches!(value, ListedValue::Bool(false) | ListedValue::Null)
}

fn is_same_member(key: &str, given: &ListedValue, made: &ListedValue) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    match (given, made) {
        (ListedValue::Number(one), ListedValue::Number(other)) => {
            one == other
                || number(one).zip(number(other)).is_some_and(|(one, other)| is_near(one, other))
                || BUCKETS.contains(&key) && within_a_microsecond(one, other, Rate(0))
        }
        (ListedValue::Text(one), ListedValue::Text(other)) => is_same_value(one, other),
        (one, other) => one == other,
    }
}

/// A value for a message.
fn text_of(value: &ListedValue) -> String {
    match value {
        ListedValue::Null => "null".to_owned(),
        ListedValue::Bool(on) => on.to_string(),
        ListedValue::Number(digits) => digits.clone(),
        ListedValue::Text(text) => text.clone(),
        ListedValue::List(items) => {
            format!("[{}]", items.iter().take(16).map(text_of).collect::<Vec<_>>().join(","))
        }
        ListedValue::Object(_) => "{…}".to_owned(),
    }
}
