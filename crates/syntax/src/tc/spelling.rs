//! How kinds list their options otherwise than commands take them, and the values that listings in JSON have.

use crate::units::print_time;
use tidegate_policy::spec::ValueKind;

/// What a kind's listing writes otherwise than its commands do.
pub(in crate::tc) struct Spelling {
    /// Words of the listing, and the option that each is.
    pub(in crate::tc) names: &'static [(&'static str, &'static str)],
    /// Numbers that are listed as a time, and the microseconds of one.
    pub(in crate::tc) times: &'static [(&'static str, u32)],
    /// Times that the kernel keeps in parts of so many nanoseconds, and lists in whole microseconds.
    pub(in crate::tc) kept_in_ns: &'static [(&'static str, u64)],
    /// Times that the kernel counts in ticks of its timer, of which tidegate's has 250 in a second.
    pub(in crate::tc) in_ticks: &'static [&'static str],
    /// What is listed where it is on, and the option that turns it off.
    pub(in crate::tc) unless: &'static [(&'static str, &'static str)],
    /// Names before the values of an option of several words, in the order in which it takes them.
    pub(in crate::tc) parts: &'static [(&'static str, &'static [&'static str])],
    /// Words that newer kernels list of what they do otherwise than tidegate, whose kernel is Linux 6.1,
    /// where it was not given: the name, and the usual values.
    pub(in crate::tc) newer: &'static [(&'static str, &'static str)],
    /// An option whose number of values shows that another may be there, which tc never lists: the option,
    /// the number, and a sentence.
    pub(in crate::tc) unlisted: Option<(&'static str, usize, &'static str)>,
}

impl Spelling {
    /// As in commands.
    pub(in crate::tc) const SAME: Spelling = Spelling {
        names: &[],
        times: &[],
        kept_in_ns: &[],
        in_ticks: &[],
        unless: &[],
        parts: &[],
        newer: &[],
        unlisted: None,
    };
}

/// A value of JSON. Objects keep the order of their members and those of one name, as tc writes matches of
/// u32.
#[derive(Clone, Debug, PartialEq)]
pub enum ListedValue {
    /// null
    Null,
    /// true or false.
    Bool(bool),
    /// A number, in digits.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<ListedValue>),
    /// An object.
    Object(Vec<(String, ListedValue)>),
}

impl ListedValue {
    /// The first member of a name.
    pub(in crate::tc) fn get<'m>(members: &'m [(String, ListedValue)], key: &str) -> Option<&'m ListedValue> {
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// A string, or a number's digits.
    pub(in crate::tc) fn word(&self) -> Option<&str> {
        match self {
            ListedValue::Text(word) | ListedValue::Number(word) => Some(word),
            _ => None,
        }
    }

    /// The members of an object; of anything else none.
    pub(in crate::tc) fn members(&self) -> &[(String, ListedValue)] {
        match self {
            ListedValue::Object(members) => members,
            _ => &[],
        }
    }
}

/// The place of an option's value.
pub(in crate::tc) fn place_of(args: &[String], word: &str) -> Option<usize> {
    args.iter().position(|arg| arg == word).map(|at| at + 1).filter(|at| *at < args.len())
}

/// Is a time listed as `text`, which means `shown`? JSON has all microseconds, text three digits.
pub(in crate::tc) fn is_listed_as(us: u32, shown: u32, text: &str) -> bool {
    us == shown || !text.ends_with("us") && print_time(us) == print_time(shown)
}

/// A number of JSON, where rates are in bytes per second and times in microseconds, with its unit.
pub(in crate::tc) fn amount(takes: ValueKind, digits: &str) -> String {
    match (takes, digits.parse::<u64>()) {
        (ValueKind::Rate | ValueKind::Rate32, Ok(bytes)) => format!("{}bit", u128::from(bytes) * 8),
        (ValueKind::Time | ValueKind::TimeOrPackets, Ok(us)) => format!("{us}us"),
        (ValueKind::Nanos, Ok(ns)) => format!("{ns}ns"),
        // A size without a unit is in bytes, and pfifo's limit in packets.
        _ => digits.to_owned(),
    }
}
