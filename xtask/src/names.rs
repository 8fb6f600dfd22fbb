//! Public names: a type, trait or alias that is public has a name of its own in the workspace, so that a
//! reader who meets the name knows what it is.

use std::collections::BTreeMap;
use std::path::Path;

use crate::walls::code_only;

/// Names that every module may use for its own: readers expect several of them.
const SHARED: [&str; 5] = ["Error", "Options", "Params", "Result", "State"];

/// The most names that `SHARED` may hold.
const MOST_SHARED: usize = 20;

/// What defines a name.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

const _: () = assert!(SHARED.len() <= MOST_SHARED);

/// The public names of the workspace, with the places that define them.
#[derive(Debug, Default)]
pub(crate) struct PublicNames {
    places: BTreeMap<String, Vec<String>>,
}

impl PublicNames {
    /// Adds the definitions of a source file; tests, benchmarks and examples are no part of an interface.
    pub(crate) fn add(&mut self, name: &Path, text: &str) {
        if !name.starts_with("crates") || !name.components().any(|part| part.as_os_str() == "src") {
            return;
        }
        // An associated type is indented as an item of an inline module is, but it is never `pub`.
        for (number, line) in code_only(text).lines().enumerate() {
            if let Some(found) = defined(line) {
                let place = format!("{}:{}", name.display(), number + 1);
                self.places.entry(found.to_owned()).or_default().push(place);
            }
        }
    }

    /// Names that are defined more than once, with all places.
    pub(crate) fn breaches(&self) -> Vec<String> {
        let repeated =
            self.places.iter().filter(|(name, places)| places.len() > 1 && !SHARED.contains(&name.as_str()));
        repeated
            .map(|(name, places)| {
                format!("{}: each defines {name}: a public name means one thing", places.join(", "))
            })
            .collect()
    }
}

/// The public name that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let kind = words.find(|word| *word != "unsafe")?;
    let name = words.next().filter(|_| KINDS.contains(&kind))?;
    let end = name.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(name.len());
    Some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[(&str, &str)]) -> PublicNames {
        let mut names = PublicNames::default();
        for (name, text) in files {
            names.add(Path::new(name), text);
        }
        names
    }

    #[test]
    fn names_that_are_defined_twice_are_refused() {
        let files = [
            ("crates/a/src/lib.rs", "pub struct Verdict(u8);\npub struct Options;\n// pub enum Rate {}\n"),
            ("crates/b/src/lib.rs", "pub enum Verdict {}\npub struct Options;\npub(crate) struct Rate;\n"),
            (
                "crates/c/src/x.rs",
                "mod inner {\n    pub trait Rate<T>: Copy {}\n}\npub unsafe trait Raw {}\n",
            ),
            ("crates/c/tests/x.rs", "pub struct Raw;\n"),
        ];
        assert_eq!(
            names(&files).breaches(),
            ["crates/a/src/lib.rs:1, crates/b/src/lib.rs:1: each defines Verdict: \
                a public name means one thing"]
        );
    }
}
