//! A listing for people, line by line, as objects with their words.

use super::heading::{ListingHeading, after, listing_heading};
use super::left_out;
use super::object::{FilterHead, ListedObject, NO_PARENT, NotListed};
use crate::tc::command_line::Object;
use std::collections::BTreeSet;
use tidegate_policy::Kind;
use tidegate_policy::spec::STAB;

/// How lines of dualpi2's counters begin, which tc does not indent.
const COUNTED: [&str; 5] = ["prob", "pkts_in_c", "ecn_mark", "credit", "memory_used"];

/// Does a text look like a listing? Its first line that is no command of a transcript is about an object of
/// tc's.
pub fn is_listing(text: &str) -> bool {
    let is_before =
        |line: &&str| line.trim().is_empty() || line.starts_with('#') || listing_heading(line).is_some();
    let Some(first) = text.lines().find(|line| !is_before(line)) else { return false };
    let words: Vec<&str> = first.split_whitespace().collect();
    match words[0] {
        "qdisc" | "class" => words.get(2).is_some_and(|word| word.contains(':')),
        "filter" => words.contains(&"pref"),
        _ => false,
    }
}

/// How many bytes of blanks all lines about objects begin with, as where a listing was copied from a page; a
/// heading may have been written before them.
fn margin(text: &str) -> usize {
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let is_object =
        |line: &&str| ["qdisc ", "class ", "filter "].iter().any(|word| line.trim_start().starts_with(word));
    text.lines().filter(is_object).map(blanks).min().unwrap_or(0)
}

/// What a text lists.
pub(super) fn read(text: &str, file: usize) -> Result<Vec<ListedObject>, NotListed> {
    let mut reader = Reader { file, ..Reader::default() };
    let margin = margin(text);
    for (at, line) in text.lines().enumerate() {
        reader.line = at + 1;
        let margin = margin.min(line.len() - line.trim_start_matches([' ', '\t']).len());
        reader.take(line.get(margin..).unwrap_or_default())?;
    }
    Ok(reader.objects)
}

#[derive(Default)]
struct Reader {
    file: usize,
    line: usize,
    /// The device and parent that a prompt named.
    dev: Option<String>,
    parent: Option<String>,
    objects: Vec<ListedObject>,
    /// The devices of the qdiscs so far, but for those that have defaults only.
    devices: BTreeSet<String>,
    /// What further lines are, below the object that was listed last.
    below: Below,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Below {
    /// Nothing is listed yet, or nothing that is read.
    #[default]
    Nothing,
    /// They belong to the object.
    Object,
    /// They are counters, up to the next object.
    Counters,
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), NotListed> {
        if let Some(ListingHeading { dev, parent, changes, .. }) = listing_heading(line) {
            // Comments may hold commands; between two listings one has changed what is listed.
            if changes && !self.objects.is_empty() {
                return Err(self.wrong(ListingHeading::CHANGES));
            }
            self.below = Below::Nothing;
            (self.dev, self.parent) = (dev, parent);
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_indented = line.starts_with([' ', '\t']);
        match words.first() {
            None => Ok(()),
            Some(&"qdisc") if !is_indented => self.qdisc(&words),
            Some(&"class") if !is_indented => self.class(&words),
            Some(&"filter") if !is_indented => self.filter(&words),
            Some(first) if first.starts_with('#') => Ok(()),
            Some(first) if self.below == Below::Counters && COUNTED.contains(first) => Ok(()),
            Some(first) if is_indented || self.below != Below::Nothing && self.is_more(first) => {
                self.more(&words);
                Ok(())
            }
            _ => Err(self.wrong("is not a line of a listing of tc")),
        }
    }

    fn wrong(&self, why: &str) -> NotListed {
        NotListed { file: self.file, line: self.line, why: why.to_owned() }
    }

    fn device(&self, words: &[&str]) -> Result<String, NotListed> {
        let only = || if self.devices.len() == 1 { self.devices.first().cloned() } else { None };
        let named = after(words, "dev").map(str::to_owned);
        named.or_else(|| self.dev.clone()).or_else(only).ok_or_else(|| {
            self.wrong(
                "does not say of which device; put a line `# dev eth0` before the listing of each device",
            )
        })
    }

    fn push(&mut self, object: ListedObject) {
        self.below = Below::Object;
        self.objects.push(object);
    }

    /// `qdisc KIND HANDLE: [dev DEV] root|parent ID|ingress [refcnt N] options…`
    fn qdisc(&mut self, words: &[&str]) -> Result<(), NotListed> {
        let [_, kind, handle, rest @ ..] = words else { return Err(self.wrong("is cut short")) };
        let dev = self.device(words)?;
        let (parent, rest) = placed(rest);
        let object = ListedObject {
            file: self.file,
            line: self.line,
            what: Object::Qdisc,
            kind: (*kind).to_owned(),
            dev,
            // With -r there is the number in brackets, too.
            handle: handle.split('[').next().unwrap_or_default().to_owned(),
            parent,
            head: None,
            words: without_counters(&rest),
            stab: Vec::new(),
            members: None,
        };
        if !object.is_default() {
            self.devices.insert(object.dev.clone());
        }
        self.push(object);
        Ok(())
    }

    /// `class KIND ID root|parent ID [leaf HANDLE:] options…`
    fn class(&mut self, words: &[&str]) -> Result<(), NotListed> {
        let [_, kind, id, rest @ ..] = words else { return Err(self.wrong("is cut short")) };
        let dev = self.device(words)?;
        let (parent, rest) = placed(rest);
        self.push(ListedObject {
            file: self.file,
            line: self.line,
            what: Object::Class,
            kind: (*kind).to_owned(),
            dev,
            handle: (*id).to_owned(),
            parent,
            head: None,
            words: without_counters(&rest),
            stab: Vec::new(),
            members: None,
        });
        Ok(())
    }

    /// `filter [parent ID] protocol P pref N KIND chain C [options…]`
    fn filter(&mut self, words: &[&str]) -> Result<(), NotListed> {
        let kind_at = words.iter().position(|word| *word == "pref").map_or(words.len(), |at| at + 2);
        let (head, rest) = words.split_at(kind_at.min(words.len()));
        let (Some(protocol), Some(pref)) = (after(head, "protocol"), after(head, "pref")) else {
            return Err(self.wrong("is a filter without protocol and pref"));
        };
        let [kind, rest @ ..] = rest else { return Err(self.wrong("is cut short")) };
        let (chain, rest) = match rest {
            ["chain", chain, rest @ ..] => (*chain, rest),
            rest => ("0", rest),
        };
        let hook = head.iter().find(|word| matches!(**word, "ingress" | "egress" | "root")).copied();
        let block = after(head, "block").map(|number| format!("block {number}"));
        let parent = block.or_else(|| after(head, "parent").or(hook).map(str::to_owned));
        let parent = parent.or_else(|| self.parent.clone()).ok_or_else(|| self.wrong(NO_PARENT))?;
        let dev = if parent.starts_with("block ") { String::new() } else { self.device(head)? };
        self.push(ListedObject {
            file: self.file,
            line: self.line,
            what: Object::Filter,
            kind: (*kind).to_owned(),
            dev,
            handle: after(rest, "fh").or_else(|| after(rest, "handle")).unwrap_or_default().to_owned(),
            parent,
            head: Some(FilterHead {
                protocol: protocol.to_owned(),
                pref: pref.to_owned(),
                chain: chain.to_owned(),
            }),
            words: configured(rest),
            stab: Vec::new(),
            members: None,
        });
        Ok(())
    }

    /// Does a line that is not indented go on with what was listed last? Parts of a filter do, counters of a
    /// transcript that lost its blanks, and lines of kinds that nothing is known about.
    fn is_more(&self, first: &str) -> bool {
        let is_known = |object: &ListedObject| Kind::from_name(&object.kind).is_some();
        match self.objects.last() {
            Some(object) if object.what == Object::Filter => {
                matches!(first, "action" | "police" | "match" | "mark" | "Sent" | "backlog")
            }
            Some(object) => matches!(first, "Sent" | "backlog") || !is_known(object),
            None => false,
        }
    }

    /// A further line of the object that was listed last: tc prints counters behind everything else of a
    /// qdisc or a class, and between the parts of a filter.
    fn more(&mut self, words: &[&str]) {
        let Some(object) = self.objects.last_mut().filter(|_| self.below == Below::Object) else { return };
        if object.what == Object::Filter {
            let is_counted = matches!(words, ["Sent" | "backlog", ..] | ["Action", "statistics:", ..]);
            if !is_counted {
                object.words.extend(configured(words));
            }
        } else if matches!(words, ["Sent" | "(dropped", ..]) {
            self.below = Below::Counters;
        } else if object.what == Object::Qdisc && STAB.iter().any(|option| option.key == words[0]) {
            object.stab.extend(words.iter().map(|word| (*word).to_owned()));
        } else {
            object.words.extend(without_counters(words));
        }
    }
}

/// Where it hangs, and the words but for that and the device.
fn placed<'w>(words: &[&'w str]) -> (String, Vec<&'w str>) {
    let (mut parent, mut rest) = (None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "dev" => drop(words.next()),
            "parent" if parent.is_none() => parent = words.next().map(|id| (*id).to_owned()),
            "root" | "ingress" if parent.is_none() => parent = Some((*word).to_owned()),
            other => rest.push(other),
        }
    }
    (parent.unwrap_or_else(|| "root".to_owned()), rest)
}

/// The words of a qdisc or a class but for what is no configuration.
fn without_counters(words: &[&str]) -> Vec<String> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        at += 1;
        if left_out::PAIRS.contains(word) {
            at += 1;
        } else if !left_out::ALONE.contains(word) {
            out.push((*word).to_owned());
        }
    }
    out
}

/// The same of a filter: its number of hits is in parentheses.
fn configured(words: &[&str]) -> Vec<String> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        at += 1;
        match *word {
            "(rule" | "(success" => {
                let end = words[at..].iter().position(|word| word.ends_with(')'));
                at += end.map_or(0, |end| end + 1);
            }
            // The number of an action; that several filters share one changes what a policer counts.
            "bind" if words.get(at).is_some_and(|count| !matches!(*count, "0" | "1")) => {
                out.extend(["bind".to_owned(), words[at].to_owned()]);
                at += 1;
            }
            "action" if words.get(at) == Some(&"order") => {
                out.extend(
                    ["action", "order", words.get(at + 1).copied().unwrap_or_default()].map(str::to_owned),
                );
                at += 2;
            }
            pair if left_out::FILTER_PAIRS.contains(&pair) => at += 1,
            time if left_out::FILTER_TIMES.contains(&time) => at += 2,
            count @ ("DSCP" | "CPMARK") => {
                let found = left_out::FILTER_COUNTS.iter().find(|(first, _)| *first == count);
                at += found.map_or(0, |(_, length)| length - 1);
            }
            alone if left_out::FILTER_ALONE.contains(&alone) => {}
            other => out.push(other.to_owned()),
        }
    }
    out
}
