//! A file of expectations.

use super::words::{self, Classes, Expected};
use crate::settings::TrialSettings;
use std::path::PathBuf;
use tidegate_scenario::tables::{self, Diagnostic, TableValue, list, text as text_of};
use toml::de::DeTable;

/// A file of expectations.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// The settings of the trial: the link, the traffic.
    pub settings: TrialSettings,
    /// What is expected, in the file's order.
    pub cases: Vec<Case>,
}

/// One expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The expectation as written.
    pub text: String,
    /// Its line in the file, from 1.
    pub line: usize,
    /// What they mean.
    pub expected: Expected,
}

/// Keys that are options of `tidegate try` by the same name.
pub const OPTIONS: [&str; 14] = [
    "up",
    "down",
    "preset",
    "rtt",
    "buffer",
    "down-buffer",
    "duration",
    "dev",
    "lan",
    "over",
    "cable",
    "ring",
    "bql",
    "seed",
];
/// The other keys.
const OTHERS: [&str; 5] = ["policy", "args", "probes", "ipv6", "expect"];

/// Parses the text of a file of expectations. The caller reads the keys of a trial: `options` gets the table;
/// and `classes` gives the names of its policy's classes.
///
/// # Errors
/// The place of what is wrong, why, and what to write instead.
pub fn parse<O>(
    text: &str,
    options: impl FnOnce(&DeTable<'_>) -> Result<O, Diagnostic>,
    classes: impl FnOnce(&O) -> Classes,
) -> Result<(O, Vec<Case>), Diagnostic> {
    let parsed = tables::parse(text)?;
    let table = parsed.get_ref();
    for key in table.keys() {
        let name: &str = key.get_ref();
        if !OPTIONS.contains(&name) && !OTHERS.contains(&name) {
            let known: Vec<&str> = OTHERS.iter().chain(&OPTIONS).copied().collect();
            return Err(Diagnostic::new(
                key.span(),
                "unknown key",
                format!("there are {}", known.join(", ")),
            ));
        }
    }
    let trial = options(table)?;
    let expect = required(table, "expect", "`expect = [\"ping: p95 < 50 ms while 2 uploads\"]`")?;
    let classes = classes(&trial);
    let mut cases = Vec::new();
    for item in list(expect)? {
        let written = text_of(item)?;
        let expected = words::parse(written, &classes).map_err(|wrong| {
            // The words begin behind the quotes.
            let quotes = (item.span().len() - written.len().min(item.span().len())) / 2;
            let at = item.span().start + quotes;
            Diagnostic::new(at + wrong.at.start..at + wrong.at.end, wrong.reason, wrong.remedy)
        })?;
        let line = text[..item.span().start].matches('\n').count() + 1;
        cases.push(Case { text: written.to_owned(), line, expected });
    }
    Ok((trial, cases))
}

/// The value of a key that must be there.
///
/// # Errors
/// When it is not.
fn required<'t>(table: &'t DeTable<'t>, key: &str, remedy: &str) -> Result<TableValue<'t>, Diagnostic> {
    table.get(key).ok_or_else(|| Diagnostic::new(0..0, format!("`{key}` is missing"), remedy))
}
