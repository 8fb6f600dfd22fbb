//! What `tc -j … show` writes, object by object with its line.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use tidegate_syntax::tc::{self, ListedObject, ListedValue, ListingHeading, NotListed};

/// What a file of tc's JSON lists; the file is number `file` of several. `place` are the device and the
/// parent of entries that name none, where no heading does.
///
/// # Errors
/// What cannot be read.
pub(super) fn objects(
    text: &str,
    (dev, parent): (Option<&str>, Option<&str>),
    file: usize,
) -> Result<Vec<ListedObject>, NotListed> {
    let mut out = Vec::new();
    for (line, heading, part) in parts(text) {
        if heading.changes && !out.is_empty() {
            let why = tc::ListingHeading::CHANGES.to_owned();
            return Err(NotListed { file, line, why });
        }
        let place = (heading.dev.as_deref().or(dev), heading.parent.as_deref().or(parent));
        out.extend(objects_of_part(part, place, (file, line))?);
    }
    Ok(out)
}

/// Whether a text without its headings begins as JSON.
pub(super) fn begins_as_json(text: &str) -> bool {
    let mut parts = parts(text).map(|(_, _, part)| part.trim_start());
    parts.find(|part| !part.is_empty()).is_some_and(|part| part.starts_with(['[', '{']))
}

/// The documents of a text: each heading is an empty line.
pub(super) fn without_headings(text: &str) -> String {
    let parts: Vec<&str> = parts(text).map(|(_, _, part)| part).collect();
    parts.join("\n")
}

/// A text between its headings (no line of JSON begins as one), each part with the number of the line that it
/// follows, and its heading.
fn parts(text: &str) -> impl Iterator<Item = (usize, ListingHeading, &str)> {
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    let heading = |line: &str| line.starts_with('#').then(ListingHeading::default);
    let mut headings = lines.enumerate().filter_map(move |(number, (end, line))| {
        let found = tc::listing_heading(line).or_else(|| heading(line))?;
        Some((number + 1, found, end - line.len(), end))
    });
    let mut current = Some((0, ListingHeading::default(), 0));
    std::iter::from_fn(move || {
        let (line, heading, begin) = current.take()?;
        let next = headings.next();
        let end = next.as_ref().map_or(text.len(), |(_, _, begin, _)| *begin);
        current = next.map(|(line, heading, _, end)| (line, heading, end));
        Some((line, heading, &text[begin..end]))
    })
}

/// What a part of a file lists, which follows its line `before`.
fn objects_of_part(
    text: &str,
    place: (Option<&str>, Option<&str>),
    (file, before): (usize, usize),
) -> Result<Vec<ListedObject>, NotListed> {
    let mut out = Vec::new();
    let mut lines = LineCount { text, at: 0, line: before + 1 };
    for document in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let document = document.map_err(|error| {
            // Its own line is counted from the heading.
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            NotListed { file, line: before + error.line(), why: format!("is not JSON: {why}") }
        })?;
        for object in listed(document) {
            let line = lines.line_of(object);
            let wrong = |why: String| NotListed { file, line, why };
            let members = match serde_json::from_str::<Parsed>(object.get()) {
                Ok(Parsed(ListedValue::Object(members))) => members,
                Ok(_) => return Err(wrong("is no object, as lists of tc have them".to_owned())),
                Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
            };
            // tc puts an empty object where it lists nothing.
            if !members.is_empty() {
                out.push(tc::object_of_members(members, place, (file, line))?);
            }
        }
    }
    Ok(out)
}

/// The lists in the document of `tidegate run --print json`; an object of tc's has a kind.
#[derive(Deserialize)]
struct RunDocument<'t> {
    #[serde(borrow)]
    kind: Option<&'t RawValue>,
    #[serde(borrow, default)]
    qdiscs: Vec<&'t RawValue>,
    #[serde(borrow, default)]
    classes: Vec<&'t RawValue>,
    #[serde(borrow, default)]
    filters: Vec<&'t RawValue>,
}

/// The objects of a list of tc's, or of the document of `tidegate run --print json`.
fn listed(document: &RawValue) -> Vec<&RawValue> {
    if document.get().starts_with('[') {
        return serde_json::from_str(document.get()).unwrap_or_default();
    }
    match serde_json::from_str(document.get()) {
        Ok(RunDocument { kind: None, qdiscs, classes, filters }) => [qdiscs, classes, filters].concat(),
        _ => vec![document],
    }
}

/// The lines of a text, counted once where parts follow each other.
struct LineCount<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl LineCount<'_> {
    /// The line of the text that a part of it begins in, from 1.
    fn line_of(&mut self, part: &RawValue) -> usize {
        let from = (part.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let from = from.max(self.at);
        let between = self.text.as_bytes().get(self.at..from).unwrap_or_default();
        self.line += between.iter().filter(|byte| **byte == b'\n').count();
        self.at = from;
        self.line
    }
}

/// A value with all members of its objects, also those of one name.
struct Parsed(ListedValue);

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Parsed, D::Error> {
        source.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let mut members = Vec::new();
        while let Some((key, Parsed(value))) = map.next_entry::<String, Parsed>()? {
            members.push((key, value));
        }
        Ok(Parsed(ListedValue::Object(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parsed, A::Error> {
        let mut items = Vec::new();
        while let Some(Parsed(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Parsed(ListedValue::List(items)))
    }

    fn visit_bool<E>(self, on: bool) -> Result<Parsed, E> {
        Ok(Parsed(ListedValue::Bool(on)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Parsed, E> {
        Ok(Parsed(ListedValue::Number(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Parsed, E> {
        Ok(Parsed(ListedValue::Number(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Parsed, E> {
        Ok(Parsed(ListedValue::Number(number.to_string())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Parsed, E> {
        Ok(Parsed(ListedValue::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Parsed, E> {
        Ok(Parsed(ListedValue::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_their_lines_and_all_members_of_one_name() {
        let text = "[{\"kind\":\"pfifo\",\"handle\":\"1:\",\"dev\":\"eth0\",\"root\":true},\n\n  {\"protocol\":\"ip\",\
                    \"pref\":1,\"kind\":\"u32\",\"dev\":\"eth0\",\"parent\":\"1:\",\"options\":{\"fh\":\"800::800\",\
                    \"match\":{\"value\":\"50\",\"mask\":\"ffff\",\"offmask\":\"nexthdr+\",\"off\":0},\
                    \"match\":{\"value\":\"60000\",\"mask\":\"ff0000\",\"offmask\":\"\",\"off\":8}}}]\n[]\n";
        let objects = objects(text, (None, None), 0).expect("is read");
        assert_eq!(objects.iter().map(|object| object.line).collect::<Vec<_>>(), [1, 3]);
        let matches = objects[1].words.iter().filter(|word| *word == "match").count();
        assert_eq!(matches, 2, "{:?}", objects[1].words);
    }

    #[test]
    fn headings_name_devices() {
        let text = "root@gw:~# tc -j class show dev eth0\n[{\"class\":\"htb\",\"handle\":\"1:1\",\"root\":true}]\n\
                    # a comment\n# dev eth1 parent 1:\n[{\"protocol\":\"ip\",\"pref\":1,\"kind\":\"fw\"}]\n";
        let objects = objects(text, (Some("wan"), None), 0).expect("is read");
        let found: Vec<_> =
            objects.iter().map(|one| (one.line, one.dev.as_str(), one.parent.as_str())).collect();
        assert_eq!(found, [(2, "eth0", "root"), (5, "eth1", "1:")]);
        assert!(begins_as_json(text) && !begins_as_json("# dev eth0\nqdisc"));
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, line, why) in [
            ("[{\"kind\":\"pfifo\",\n\"handle\":\"1:\",\"dev\":\"eth0\"", 2, "EOF"),
            ("[\n1]", 2, "is no object"),
            ("[\n{\"kind\":\"pf ifo\",\"handle\":\"1:\",\"dev\":\"eth0\"}]", 2, "`kind` is \"pf ifo\""),
            ("[\n{\"kind\":\"pfifo\",\"handle\":\"1:\",\"dev\":\"a\\nb\"}]", 2, "blanks or line breaks"),
            ("[{\"kind\":\"pfifo\",\"handle\":\"1:\"}]", 1, "--dev"),
            ("# dev eth0\n[\n1]", 3, "is no object"),
            ("# dev eth0\n\n[\n", 4, "EOF"),
            (
                "[{\"kind\":\"pfifo\",\"handle\":\"1:\",\"dev\":\"a\"}]\n$ tc qdisc del dev a root",
                2,
                "changes",
            ),
        ] {
            let wrong = objects(text, (None, None), 0).expect_err("is refused");
            assert!(wrong.line == line && wrong.why.contains(why), "{text}: {wrong:?}");
        }
        let long = format!("[{{\"kind\":\"{} b\",\"handle\":\"1:\"}}]", "x".repeat(100_000));
        assert!(objects(&long, (None, None), 0).expect_err("is refused").why.len() < 300);
        assert!(objects(&"[".repeat(100_000), (None, None), 0).is_err());
    }
}
