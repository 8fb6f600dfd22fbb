//! What `cargo mutants --list` says, and samples of it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A place in a file: line and column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourcePosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// A part of a file, its end left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: SourcePosition,
    pub(super) to: SourcePosition,
}

/// A change.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// Its place in the list, from 0: the value of the switch.
    pub(super) number: u32,
    /// The file from the root of the workspace.
    pub(super) file: String,
    /// The function that it is in, whole; none for constants.
    pub(super) function: Option<Span>,
    /// What is replaced.
    pub(super) span: Span,
    /// By what.
    pub(super) replacement: String,
    /// `crates/x/src/y.rs:1:2: replace a with b`.
    pub(super) name: String,
    /// The name without line and column, and how many such come before it: the same when lines move.
    pub(super) key: String,
}

/// All changes of a crate, in the order of cargo-mutants.
pub(super) fn list(root: &Path, name: &str) -> Result<Vec<Mutant>, String> {
    let package = if name == "cli" { "tidegate".to_owned() } else { format!("tidegate-{name}") };
    let output = Command::new("cargo")
        .args(["mutants", "--list", "--json", "-p", &package])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo mutants: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let listed: Vec<Value> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo mutants' list: {error}"))?;
    read(&listed).ok_or_else(|| "cargo mutants' list has another form than version 27.1.0's".to_owned())
}

fn read(listed: &[Value]) -> Option<Vec<Mutant>> {
    let mut same: BTreeMap<String, u32> = BTreeMap::new();
    let mut mutants = Vec::new();
    for (number, one) in listed.iter().enumerate() {
        let file = one["file"].as_str()?.to_owned();
        let span = span(&one["span"])?;
        let name = one["name"].as_str()?.to_owned();
        let place = format!("{file}:{}:{}: ", span.from.line, span.from.column);
        let words = format!("{file}: {}", name.strip_prefix(&place).unwrap_or(&name));
        let count = same.entry(words.clone()).or_default();
        let key = format!("{words} #{count}");
        *count += 1;
        mutants.push(Mutant {
            number: u32::try_from(number).ok()?,
            function: self::span(&one["function"]["span"]),
            span,
            replacement: one["replacement"].as_str()?.to_owned(),
            file,
            name,
            key,
        });
    }
    Some(mutants)
}

fn span(value: &Value) -> Option<Span> {
    let place = |value: &Value| {
        let number = |key: &str| usize::try_from(value[key].as_u64()?).ok();
        Some(SourcePosition { line: number("line")?, column: number("column")? })
    };
    Some(Span { from: place(&value["start"])?, to: place(&value["end"])? })
}

/// `count` of the changes, in their order; the same seed draws the same ones.
pub(super) fn sample(all: &[Mutant], count: usize, seed: u64) -> Vec<Mutant> {
    // SplitMix64 (Steele, Lea and Flood 2014) gives each change a number; the smallest are drawn.
    let rank = |number: u32| {
        let mut z = seed.wrapping_add(u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut drawn: Vec<&Mutant> = all.iter().collect();
    drawn.sort_by_key(|mutant| rank(mutant.number));
    drawn.truncate(count);
    drawn.sort_by_key(|mutant| mutant.number);
    drawn.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_change_has_the_same_key_when_lines_move() {
        let one = |line: u32| {
            let span = json!({"start": {"line": line, "column": 3}, "end": {"line": line, "column": 4}});
            json!({
                "file": "a.rs", "span": span, "replacement": "-", "name": format!("a.rs:{line}:3: replace + \
                with - in f"),
                "function": {"span": {"start": {"line": 1, "column": 1}, "end": {"line": 9, "column": 2}}},
            })
        };
        let keys = |lines: [u32; 2]| {
            let mutants = read(&lines.map(one)).unwrap();
            mutants.into_iter().map(|mutant| mutant.key).collect::<Vec<_>>()
        };
        assert_eq!(keys([2, 3]), ["a.rs: replace + with - in f #0", "a.rs: replace + with - in f #1"]);
        assert_eq!(keys([2, 3]), keys([4, 8]));
    }

    #[test]
    fn a_sample_is_drawn_by_its_seed() {
        let place = SourcePosition { line: 1, column: 1 };
        let span = Span { from: place, to: place };
        let mutant = |number| Mutant {
            number,
            file: String::new(),
            function: None,
            span,
            replacement: String::new(),
            name: String::new(),
            key: String::new(),
        };
        let all: Vec<Mutant> = (0..100).map(mutant).collect();
        let numbers = |seed| sample(&all, 10, seed).iter().map(|mutant| mutant.number).collect::<Vec<_>>();
        assert_eq!(numbers(1).len(), 10);
        assert!(numbers(1).is_sorted());
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }
}
