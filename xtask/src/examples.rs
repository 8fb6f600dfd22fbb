//! What a library crate shows to those who do not know it: a README with an example that tests run, and two
//! examples in all.

use crate::walls::{members, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// How many examples a library crate has at least, in its README and its docs.
const LEAST: usize = 2;

/// The program: its README is that of a command.
const PROGRAM: &str = "tidegate";

/// What the library crates of the workspace that may be published do not show.
pub(crate) fn breaches(metadata: &Value) -> Vec<String> {
    let published = |package: &&Value| !package["publish"].as_array().is_some_and(Vec::is_empty);
    let libraries =
        members(metadata).into_iter().filter(published).filter(|package| text(package, "name") != PROGRAM);
    libraries.flat_map(crate_breaches).collect()
}

fn crate_breaches(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let dir = Path::new(text(package, "manifest_path")).parent().unwrap_or(Path::new(""));
    let readme = fs::read_to_string(dir.join("README.md")).unwrap_or_default();
    let library = fs::read_to_string(dir.join("src/lib.rs")).unwrap_or_default();
    let mut sources = Vec::new();
    read(&dir.join("src"), &mut sources);
    missing(name, &readme, &library, &sources)
}

/// What is missing in a crate of which these are the README, `src/lib.rs` and all sources.
fn missing(name: &str, readme: &str, library: &str, sources: &[String]) -> Vec<String> {
    let mut breaches = Vec::new();
    let in_readme = examples(readme.lines());
    let in_docs: usize = sources.iter().map(|source| examples(source.lines().filter_map(doc))).sum();
    if in_readme == 0 {
        breaches.push(format!("{name}: its README has no example"));
    } else if !library.contains("include_str!(\"../README.md\")") {
        breaches
            .push(format!("{name}: no test runs the examples of its README (`#[doc = include_str!(…)]`)"));
    }
    if in_readme + in_docs < LEAST {
        breaches.push(format!("{name}: {} examples, at least {LEAST}", in_readme + in_docs));
    }
    breaches
}

/// The text of a line of documentation.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
}

/// The blocks of code that rustdoc takes for Rust and compiles.
fn examples<'t>(lines: impl Iterator<Item = &'t str>) -> usize {
    let (mut count, mut open) = (0, false);
    for info in lines.filter_map(|line| line.strip_prefix("```")) {
        count += usize::from(
            !open && ["", "rust", "no_run", "should_panic", "rust,no_run"].contains(&info.trim()),
        );
        open = !open;
    }
    count
}

fn read(dir: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.extend(fs::read_to_string(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# a\n\n```\nassert!(true);\n```\n\n```text\na ─▶ b\n```\n";
    const LIBRARY: &str = "#[cfg(doctest)]\n#[doc = include_str!(\"../README.md\")]\nstruct Readme;\n";

    fn of(readme: &str, library: &str, source: &str) -> Vec<String> {
        missing("a", readme, library, &[source.to_owned()])
    }

    #[test]
    fn two_examples_and_a_tested_readme_are_required() {
        let source = "/// Adds.\n///\n/// ```no_run\n/// a();\n/// ```\nfn a() {}\n";
        assert!(of(README, LIBRARY, source).is_empty());
        assert_eq!(of(README, LIBRARY, ""), ["a: 1 examples, at least 2"]);
        assert_eq!(of("# a\n", LIBRARY, &source.repeat(2)), ["a: its README has no example"]);
        assert_eq!(of(README, "", source).len(), 1);
    }

    #[test]
    fn pictures_and_other_languages_are_no_examples() {
        assert_eq!(examples("```text\na\n```\n```console\n$ a\n```\n```toml\n```".lines()), 0);
        // What closes a block opens none.
        assert_eq!(examples("```\na\n```\n```text\n```\n```rust\n```".lines()), 2);
    }
}
