//! `tidegate compare RESULT.json…`: the same cases of several results beside each other, or the policies of
//! one.
//!
//! ```text
//! files ─▶ analysis::experiment::from_json ─▶ Comparing (rows, and what is not alike) ─▶ text | JSON | page
//! ```
//! The arithmetic is `tidegate_analysis`'s; here files become sides and forms are chosen.

mod options;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidegate_analysis::experiment::{Comparing, Side, comparison_json, from_flent, from_json};
use tidegate_report::experiment::{comparison_page, comparison_text};

/// What a packed file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Plays `tidegate compare`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(()) => CliExit::Yes.into(),
        Err(error) => {
            eprintln!("tidegate compare: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<()> {
    let labels = labels(&options.results);
    let sides = options.results.iter().zip(labels).map(|(path, label)| side(path, label));
    let mut sides: Vec<Side> = sides.collect::<anyhow::Result<_>>()?;
    // Now that the inputs are known, none is replaced.
    crate::output::may_write(outputs::paths(&options.output).chain(options.html.as_deref()))?;
    if let [only] = sides.as_slice() {
        sides = policies(only)?;
    }
    if let Some(base) = &options.base {
        put_first(&mut sides, base)?;
    }
    let comparing = Comparing::new(&sides);
    if comparing.rows.is_empty() {
        bail!("these results have no figure in common. {}", comparing.apart.join(" "));
    }
    let json = || comparison_json(&comparing);
    crate::output::report(&if options.json { json() } else { comparison_text(&comparing) });
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, if *form == Form::Html { comparison_page(&comparing) } else { json() })?;
    }
    options.html.iter().try_for_each(|path| crate::output::file(path, comparison_page(&comparing)))
}

fn side(path: &Path, label: String) -> anyhow::Result<Side> {
    let named = || path.display().to_string();
    let bytes = crate::input::result(path)?;
    // Files of flent's are packed, results of tidegate's are text.
    let experiment = if bytes.starts_with(&GZIP) {
        from_flent(&bytes).with_context(named)?
    } else {
        from_json(std::str::from_utf8(&bytes).with_context(named)?).with_context(named)?
    };
    Ok(Side { label, experiment })
}

/// The policies of the only result.
fn policies(result: &Side) -> anyhow::Result<Vec<Side>> {
    let sides = Side::policies(&result.experiment);
    if sides.len() < 2 {
        let has = if sides.is_empty() { "no runs" } else { "one policy only" };
        bail!("{} has {has}, so there is nothing to compare: name a second result, too", result.label);
    }
    Ok(sides)
}

/// Puts the side called `base` before the others.
fn put_first(sides: &mut Vec<Side>, base: &str) -> anyhow::Result<()> {
    let Some(at) = sides.iter().position(|side| side.label == base) else {
        let known: Vec<String> =
            sides.iter().map(|side| format!("`{}`", tidegate_text::line(&side.label))).collect();
        bail!(
            "--base: nothing compared here is named `{}`; the names are {}",
            tidegate_text::line(base),
            known.join(", ")
        );
    };
    let first = sides.remove(at);
    sides.insert(0, first);
    Ok(())
}

/// The names of results: their files' names, as much of the path as distinguishes them, and a number where
/// nothing does.
fn labels(files: &[PathBuf]) -> Vec<String> {
    let parts = |path: &PathBuf| -> Vec<String> {
        let path = path.with_extension("");
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let all: Vec<Vec<String>> = files.iter().map(parts).collect();
    let deepest = all.iter().map(Vec::len).max().unwrap_or(1);
    let ends = |depth: usize| -> Vec<String> {
        all.iter().map(|parts| parts[parts.len().saturating_sub(depth)..].join("/")).collect()
    };
    let different = |names: &Vec<String>| (1..names.len()).all(|n| !names[..n].contains(&names[n]));
    (1..=deepest).map(ends).find(different).unwrap_or_else(|| {
        ends(1).into_iter().zip(1..).map(|(name, n): (String, usize)| format!("{name} {n}")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tell_results_apart() {
        let cases: [(&[&str], &[&str]); 4] = [
            (&["a.json", "b.json"], &["a", "b"]),
            (&["old/a.json", "new/a.json"], &["old/a", "new/a"]),
            (&["a.json", "a.json"], &["a 1", "a 2"]),
            (&["/x/old/a.json", "a.json", "b.json"], &["old/a", "a", "b"]),
        ];
        for (files, expected) in cases {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            assert_eq!(labels(&files), expected, "{files:?}");
        }
    }
}
