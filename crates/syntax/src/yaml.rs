//! YAML as values with their places, as the readers of other programs' files need it.
//!
//! The events are saphyr-parser's. Aliases are copies, and what they add up to is bounded, as are depth and
//! number of the values: a file of some hundred bytes can name millions of them ("billion laughs").

use crate::nft::Span;
use crate::short::Problem;
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::{BTreeMap, BTreeSet};

/// The most values of a file, those that aliases copy included.
const MOST_VALUES: usize = 100_000;
/// The most values within one another.
const MOST_DEPTH: usize = 64;

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlNode {
    pub(crate) span: Span,
    pub(crate) value: YamlValue,
}

/// A value of YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum YamlValue {
    /// Nothing: empty, `~` or `null`.
    Null,
    /// true or false, in one of YAML 1.1's words for them, which Kubernetes takes.
    Truth(String),
    /// Digits without quotes, which are a number.
    Number(String),
    /// All other words, and what stands in quotes.
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    pub(crate) span: Span,
    pub(crate) node: YamlNode,
}

impl YamlNode {
    /// The entries, where it is a map.
    pub(crate) fn entries(&self) -> &[YamlEntry] {
        match &self.value {
            YamlValue::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items, where it is a list.
    pub(crate) fn items(&self) -> &[YamlNode] {
        match &self.value {
            YamlValue::List(items) => items,
            _ => &[],
        }
    }

    /// The entry of a key.
    pub(crate) fn entry(&self, key: &str) -> Option<&YamlEntry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a key that is there, and is not null.
    pub(crate) fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entry(key).map(|entry| &entry.node).filter(|node| node.value != YamlValue::Null)
    }

    /// The text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for a sentence.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            YamlValue::Null => "nothing",
            YamlValue::Truth(_) => "true or false",
            YamlValue::Number(_) => "a number",
            YamlValue::Text(_) => "a text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a table of keys",
        }
    }
}

/// The documents of a file.
///
/// # Errors
/// What is no YAML, or more than is read.
pub(crate) fn documents(text: &str) -> Result<Vec<YamlNode>, Problem> {
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::default();
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => builder.take(event, place(span.start, span.end))?,
            Err(error) => {
                let at = place(*error.marker(), *error.marker());
                let what = format!("this is not YAML: {}", error.info());
                return Err(Problem::new(at, what, "correct it there, or in the line above"));
            }
        }
    }
    Ok(builder.documents)
}

fn place(begin: saphyr_parser::Marker, end: saphyr_parser::Marker) -> Span {
    let from = begin.col() + 1;
    let to = if end.line() == begin.line() { end.col().max(from) } else { from };
    Span { line: begin.line().max(1), from, to }
}

/// A list or map that is not complete.
struct Open {
    span: Span,
    anchor: usize,
    /// Values in it, itself included, when it began.
    began: usize,
    /// The most values within one another below it.
    below: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<YamlNode>),
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    entries: Vec<YamlEntry>,
    keys: BTreeSet<String>,
    /// Keys of other maps (`<<: *base`), which give way to the map's own.
    merged: Vec<YamlEntry>,
    /// A key that waits for its value.
    waiting: Option<(String, Span)>,
}

impl OpenMap {
    /// Takes a key, or the value of the key before it.
    fn take(&mut self, node: YamlNode) -> Result<(), Problem> {
        match self.waiting.take() {
            Some((key, span)) if key == "<<" => self.merge(span, node)?,
            Some((key, span)) => self.entries.push(YamlEntry { key, span, node }),
            None => {
                let (key, span) = key_of(node)?;
                if !self.keys.insert(key.clone()) {
                    let what = format!("`{key}` is here twice");
                    return Err(Problem::new(
                        span,
                        what,
                        "keep one of the two; a key has one value in its table",
                    ));
                }
                self.waiting = Some((key, span));
            }
        }
        Ok(())
    }

    /// `<<: *base`: the keys of another map, or of several.
    fn merge(&mut self, span: Span, node: YamlNode) -> Result<(), Problem> {
        let maps = match node.value {
            YamlValue::Map(_) => vec![node],
            YamlValue::List(items) => items,
            _ => Vec::new(),
        };
        if maps.is_empty() || maps.iter().any(|map| !matches!(map.value, YamlValue::Map(_))) {
            let what = "`<<` takes a table of keys, or a list of them";
            return Err(Problem::new(span, what, "write an alias (*name) of a table behind it"));
        }
        self.merged.extend(maps.into_iter().flat_map(|map| match map.value {
            YamlValue::Map(entries) => entries,
            _ => Vec::new(),
        }));
        Ok(())
    }

    /// The map, as it is complete.
    fn entries(mut self) -> Vec<YamlEntry> {
        let new = self.merged.into_iter().filter(|entry| self.keys.insert(entry.key.clone()));
        self.entries.extend(new);
        self.entries
    }
}

/// What an anchor stands for: the value, how many values it is, and how many of them within one another.
type Anchored = (YamlNode, usize, usize);

#[derive(Default)]
struct Builder {
    documents: Vec<YamlNode>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Anchored>,
    values: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span, 1)?;
                let is_text = tag.is_some_and(|tag| tag.suffix == "str") || style != ScalarStyle::Plain;
                let value = if is_text { YamlValue::Text(text.into_owned()) } else { resolved(&text) };
                self.close(YamlNode { span, value }, anchor, 1, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin(span, anchor, Inside::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(span, anchor, Inside::Map(OpenMap::default())),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let value = match open.inside {
                    Inside::List(items) => YamlValue::List(items),
                    Inside::Map(map) => YamlValue::Map(map.entries()),
                };
                let size = self.values - open.began;
                self.close(YamlNode { span: open.span, value }, open.anchor, size, open.below + 1)
            }
            Event::Alias(anchor) => {
                let Some((node, size, depth)) = self.anchors.get(&anchor).cloned() else {
                    let what = "an alias stands within what it is an alias of";
                    return Err(Problem::new(span, what, "write the value instead of the alias"));
                };
                self.count(span, size)?;
                self.must_not_be_deep(span, self.open.len() + depth)?;
                self.close(YamlNode { span, ..node }, 0, size, depth)
            }
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, span: Span, anchor: usize, inside: Inside) -> Result<(), Problem> {
        let began = self.values;
        self.count(span, 1)?;
        self.must_not_be_deep(span, self.open.len() + 1)?;
        self.open.push(Open { span, anchor, began, below: 0, inside });
        Ok(())
    }

    fn count(&mut self, span: Span, more: usize) -> Result<(), Problem> {
        self.values += more;
        if self.values <= MOST_VALUES {
            return Ok(());
        }
        let what = format!("the file has more than {MOST_VALUES} values, those of aliases included");
        Err(Problem::new(span, what, "divide the file"))
    }

    fn must_not_be_deep(&self, span: Span, depth: usize) -> Result<(), Problem> {
        if depth <= MOST_DEPTH {
            return Ok(());
        }
        let what = format!("more than {MOST_DEPTH} lists and tables within one another");
        Err(Problem::new(span, what, "no settings that are read here need so many"))
    }

    /// Puts a complete value where it belongs.
    fn close(&mut self, node: YamlNode, anchor: usize, size: usize, depth: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), size, depth));
        }
        let Some(top) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        top.below = top.below.max(depth);
        match &mut top.inside {
            Inside::List(items) => items.push(node),
            Inside::Map(map) => map.take(node)?,
        }
        Ok(())
    }
}

/// A key, with its place.
fn key_of(node: YamlNode) -> Result<(String, Span), Problem> {
    match node.value {
        YamlValue::Text(text) | YamlValue::Number(text) | YamlValue::Truth(text) => Ok((text, node.span)),
        YamlValue::Null => Ok(("null".to_owned(), node.span)),
        YamlValue::List(_) | YamlValue::Map(_) => {
            let what = "a list or table is no key that is read here";
            Err(Problem::new(node.span, what, "write a word before the colon"))
        }
    }
}

/// A word without quotes: what YAML takes it for.
fn resolved(text: &str) -> YamlValue {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "" | "~" | "null" => YamlValue::Null,
        "true" | "false" | "yes" | "no" | "on" | "off" => YamlValue::Truth(text.to_owned()),
        _ if is_number(&lower) => YamlValue::Number(text.to_owned()),
        _ => YamlValue::Text(text.to_owned()),
    }
}

/// Is a word in small letters a number: whole, in other bases, with a fraction or a power of ten?
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let of_base = |prefix: &str, base: u32| {
        let rest = digits.strip_prefix(prefix).unwrap_or_default();
        !rest.is_empty() && rest.chars().all(|letter| letter.is_digit(base) || letter == '_')
    };
    if of_base("0x", 16) || of_base("0o", 8) || of_base("0b", 2) || [".inf", ".nan"].contains(&digits) {
        return true;
    }
    let (number, power) = digits.split_once('e').unwrap_or((digits, "0"));
    let power = power.strip_prefix(['+', '-']).unwrap_or(power);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.chars().all(|letter| letter.is_ascii_digit() || letter == '_');
    whole.starts_with(|first: char| first.is_ascii_digit()) | (whole.is_empty() && !part.is_empty())
        && all_digits(whole)
        && all_digits(part)
        && !power.is_empty()
        && all_digits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> YamlNode {
        documents(text).unwrap_or_else(|problem| panic!("{text}: {problem:?}")).swap_remove(0)
    }

    fn wrong(text: &str) -> (usize, String) {
        let problem = documents(text).expect_err(text);
        (problem.span.line, problem.what)
    }

    #[test]
    fn values_have_kinds_and_places() {
        let kinds = [
            ("50", "a number"),
            ("-0.5", "a number"),
            ("1e3", "a number"),
            ("0x1f", "a number"),
            (".5", "a number"),
            ("'50'", "a text"),
            ("!!str 50", "a text"),
            ("50ms", "a text"),
            ("1.2.3", "a text"),
            ("e5", "a text"),
            ("one", "a text"),
            ("on", "true or false"),
            ("~", "nothing"),
            ("[1]", "a list"),
            ("{a: 1}", "a table of keys"),
        ];
        for (text, kind) in kinds {
            assert_eq!(one(&format!("key: {text}\n")).entries()[0].node.kind(), kind, "{text}");
        }
        let node = one("a: 1\nbé:\n  - 'x y'\n  - z\n");
        let list = node.get("bé").expect("a list");
        let places: Vec<Span> = list.items().iter().map(|item| item.span).collect();
        assert_eq!(places, [Span { line: 3, from: 5, to: 9 }, Span { line: 4, from: 5, to: 5 }]);
        assert_eq!(node.entries()[1].span, Span { line: 2, from: 1, to: 2 });
        assert_eq!(documents("--- a\n--- b\n...\n").map(|all| all.len()), Ok(2));
        assert_eq!(documents("# nothing\n").map(|all| all.len()), Ok(0));
    }

    #[test]
    fn aliases_are_copies_and_merged_keys_give_way() {
        let node = one("base: &b {x: 1, y: 2}\nmine:\n  y: 3\n  <<: *b\nyours: {<<: *b, y: 4}\n");
        let values = |key: &str| {
            let map = node.get(key).expect("a map").entries();
            map.iter().map(|entry| (entry.key.as_str(), &entry.node.value)).collect::<Vec<_>>()
        };
        let number = |digits: &str| YamlValue::Number(digits.to_owned());
        assert_eq!(values("mine"), [("y", &number("3")), ("x", &number("1"))]);
        assert_eq!(values("yours"), [("y", &number("4")), ("x", &number("1"))]);
    }

    #[test]
    fn what_has_no_bound_is_refused() {
        assert_eq!(wrong("a: 1\na: 2\n"), (2, "`a` is here twice".to_owned()));
        assert_eq!(wrong("a: [1\nb: 2\n").0, 2);
        assert!(wrong("? [1]\n: 2\n").1.contains("no key"));
        assert!(wrong("a: &a [*a]\n").1.contains("within what it is an alias of"));
        assert!(wrong("<<: 1\n").1.contains("`<<` takes"));
        assert!(wrong(&"[".repeat(100)).1.contains("within one another"));
        // Ten of ten of ten …
        let mut laughs = "a0: &a0 [1]\n".to_owned();
        for level in 1..40 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            laughs += &format!("a{level}: &a{level} [{items}]\n");
        }
        assert!(wrong(&laughs).1.contains("more than 100000 values"));
        // One within one within one: few values, but deep.
        let chain: String = (1..80).map(|level| format!("a{level}: &a{level} [*a{}]\n", level - 1)).collect();
        assert!(wrong(&format!("a0: &a0 [1]\n{chain}")).1.contains("within one another"));
    }
}
