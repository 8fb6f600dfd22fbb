//! Manifests of Kubernetes: their documents, and values as its API server takes them.

use crate::foreign::ForeignPolicy;
use crate::nearest;
use crate::nft::Span;
use crate::short::Problem;
use crate::yaml::{self, YamlEntry, YamlNode, YamlValue};

/// After so many mistakes no others are looked for.
const MOST_PROBLEMS: usize = 200;
/// As many of what is left out are shown where nothing else is there.
const SHOWN_SKIPPED: usize = 3;

/// The objects of a file, those of lists of kind `List` one by one.
///
/// # Errors
/// What is no YAML.
pub(crate) fn objects(text: &str) -> Result<Vec<YamlNode>, Vec<Problem>> {
    let broken = |problem| Findings { problems: vec![problem], ..Findings::default() }.sorted(text);
    let documents = yaml::documents(text).map_err(broken)?;
    let is_list = |node: &YamlNode| node.get("kind").and_then(YamlNode::text) == Some("List");
    let mut objects = Vec::new();
    for document in documents {
        match document.get("items").filter(|_| is_list(&document)) {
            Some(items) => objects.extend(items.items().iter().cloned()),
            None => objects.push(document),
        }
    }
    objects.retain(|object| object.value != YamlValue::Null);
    Ok(objects)
}

/// What an object is called, for sentences.
pub(crate) fn name_of(object: &YamlNode) -> &str {
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    name.and_then(YamlNode::text).unwrap_or("without a name")
}

/// What is wrong with a file's values, and what its reader should know.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) notes: Vec<Problem>,
    /// What of the file is left out as a whole: notes, or what is wrong where nothing else is there.
    skipped: Vec<Problem>,
}

impl Findings {
    pub(crate) fn wrong(&mut self, span: Span, what: impl Into<String>, remedy: impl Into<String>) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(Problem::new(span, what, remedy));
        }
    }

    pub(crate) fn note(&mut self, span: Span, what: impl Into<String>, remedy: impl Into<String>) {
        if self.notes.len() < MOST_PROBLEMS {
            self.notes.push(Problem::new(span, what, remedy));
        }
    }

    pub(crate) fn skip(&mut self, span: Span, what: impl Into<String>, remedy: impl Into<String>) {
        if self.skipped.len() < MOST_PROBLEMS {
            self.skipped.push(Problem::new(span, what, remedy));
        }
    }

    /// What a file comes to, where nothing is wrong with it. `nothing`: what is wrong where it comes to
    /// nothing.
    pub(crate) fn judge(
        mut self,
        text: &str,
        mut policy: ForeignPolicy,
        nothing: (&str, &str),
    ) -> Result<ForeignPolicy, Vec<Problem>> {
        if policy.commands.is_empty() && self.problems.is_empty() {
            self.problems = std::mem::take(&mut self.skipped);
            self.problems.truncate(SHOWN_SKIPPED);
            if self.problems.is_empty() {
                self.wrong(Span { line: 1, from: 1, to: 1 }, nothing.0, nothing.1);
            }
        }
        if !self.problems.is_empty() {
            return Err(self.sorted(text));
        }
        policy.notes = self.notes;
        policy.notes.extend(self.skipped);
        policy.notes.sort_by_key(|note| note.span.line);
        Ok(policy)
    }

    /// Checks that a value is a table with these keys alone. `what`: what the table is, for a sentence.
    pub(crate) fn keys(&mut self, entry: &YamlEntry, known: &[&str]) {
        let what = &entry.key;
        if !matches!(entry.node.value, YamlValue::Map(_)) {
            let is = format!("`{what}` is {}, and takes a table of keys", entry.node.kind());
            self.wrong(entry.span, is, format!("its keys are {}", known.join(", ")));
        }
        let unknown = |entry: &&YamlEntry| !known.contains(&entry.key.as_str());
        for stranger in entry.node.entries().iter().filter(unknown) {
            let remedy = match nearest(&stranger.key, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("its keys are {}", known.join(", ")),
            };
            let is = format!("`{what}` has no key `{}`, so kubectl refuses the file", stranger.key);
            self.wrong(stranger.span, is, remedy);
        }
    }

    /// The text of a key, which may be missing. A number without quotes is none: the API server refuses it.
    pub(crate) fn text<'n>(&mut self, table: &'n YamlNode, key: &str) -> Option<(&'n str, Span)> {
        let node = table.get(key)?;
        match &node.value {
            YamlValue::Text(text) => Some((text, node.span)),
            YamlValue::Number(text) | YamlValue::Truth(text) => {
                let what = format!("`{key}` is {} here, and Kubernetes takes a text for it", node.kind());
                self.wrong(node.span, what, format!("write it in quotes: {key}: \"{text}\""));
                None
            }
            _ => {
                self.wrong(node.span, format!("`{key}` is {}, and takes a text", node.kind()), "correct it");
                None
            }
        }
    }

    /// Checks that a key is there.
    pub(crate) fn must_have(&mut self, entry: &YamlEntry, key: &str) -> bool {
        let is_there = entry.node.get(key).is_some();
        if !is_there {
            let what = format!("`{}` without `{key}`, so Kubernetes refuses the file", entry.key);
            self.wrong(entry.span, what, format!("write {key}:"));
        }
        is_there
    }

    /// The text of a key that must be there.
    pub(crate) fn needed<'n>(&mut self, entry: &'n YamlEntry, key: &str) -> Option<(&'n str, Span)> {
        if self.must_have(entry, key) { self.text(&entry.node, key) } else { None }
    }

    /// A whole number without quotes, up to a greatest one.
    pub(crate) fn whole(&mut self, table: &YamlNode, key: &str, most: u64) -> Option<(u64, Span)> {
        let node = table.get(key)?;
        let number = match &node.value {
            YamlValue::Number(digits) => digits.parse().ok().filter(|number| *number <= most),
            _ => None,
        };
        if number.is_none() {
            let what = format!("`{key}` takes a whole number from 0 to {most}, without quotes");
            self.wrong(node.span, what, format!("write it so: {key}: 1000"));
        }
        Some((number?, node.span))
    }

    /// A word out of some, where it is given.
    pub(crate) fn choice<'c>(
        &mut self,
        table: &YamlNode,
        key: &str,
        choices: &[&'c str],
    ) -> Option<(&'c str, Span)> {
        let (text, span) = self.text(table, key)?;
        if let Some(choice) = choices.iter().find(|choice| **choice == text) {
            return Some((choice, span));
        }
        let remedy = match nearest(text, choices.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("write one of {}", choices.join(", ")),
        };
        self.wrong(span, format!("`{key}` cannot be {text}"), remedy);
        None
    }

    /// The problems in the order of the file; of those in a line with `{{ … }}` the cause.
    pub(crate) fn sorted(mut self, text: &str) -> Vec<Problem> {
        let lines: Vec<&str> = text.lines().collect();
        let is_template = |problem: &Problem| {
            let near = [problem.span.line.saturating_sub(1), problem.span.line.saturating_sub(2)];
            near.iter().any(|at| lines.get(*at).is_some_and(|line| line.contains("{{")))
        };
        for problem in self.problems.iter_mut().filter(|problem| is_template(problem)) {
            "here a template (Helm's, for example) is to be filled in".clone_into(&mut problem.what);
            "write the result to a file: helm template CHART > FILE".clone_into(&mut problem.remedy);
        }
        self.problems.sort_by_key(|problem| problem.span.line);
        self.problems
    }
}
