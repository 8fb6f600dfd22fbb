//! `--fix`: a copy of the files with the replacements made.

use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tidegate_insight::{Edit, Finding, Reading, Rule};

/// What was fixed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// How many findings.
    pub(super) findings: usize,
    /// How many more have a fix, in places that another fix has changed.
    pub(super) left: usize,
    /// The copies.
    pub(super) copies: Vec<PathBuf>,
}

/// Writes the copies.
///
/// # Errors
/// They cannot be written, or would replace what was read.
pub(super) fn write(reading: &Reading, findings: &[Finding], copy: &Path) -> anyhow::Result<Fixed> {
    let fixable = findings.iter().filter_map(|one| one.fix.as_ref()).filter(|fix| !fix.edits.is_empty()).count();
    let (edits, findings) = chosen(findings);
    let several = reading.sources.len() > 1;
    let mut copies = Vec::new();
    for (file, source) in reading.sources.iter().enumerate() {
        let original = Path::new(&source.name);
        let path = match (several, original.file_name()) {
            (true, Some(name)) => copy.join(name),
            _ => copy.to_owned(),
        };
        if std::fs::canonicalize(&path).ok().is_some_and(|there| std::fs::canonicalize(original).ok() == Some(there)) {
            bail!("--fix writes a copy, and {} is the file itself; name another", path.display());
        }
        if several {
            std::fs::create_dir_all(copy).with_context(|| format!("{} cannot be made", copy.display()))?;
        }
        let mut text = fixed(&source.lines, edits.get(&file).map_or(&[], Vec::as_slice));
        if let Ok(bytes) = std::fs::read(original) {
            if std::str::from_utf8(&bytes).is_err() {
                bail!(
                    "{} is not UTF-8, so a copy would not be the same elsewhere; nothing is written",
                    original.display()
                );
            }
            if !bytes.ends_with(b"\n") {
                text.pop();
            }
        }
        crate::output::file(&path, text)?;
        // A script stays one that can be run.
        if let Ok(found) = std::fs::metadata(original) {
            let _ = std::fs::set_permissions(&path, found.permissions());
        }
        copies.push(path);
    }
    Ok(Fixed { findings, left: fixable - findings, copies })
}

/// The replacements that do not touch one another, by file, and how many findings they are from.
fn chosen(findings: &[Finding]) -> (BTreeMap<usize, Vec<&Edit>>, usize) {
    let mut edits: BTreeMap<usize, Vec<&Edit>> = BTreeMap::new();
    let mut fixed = 0;
    // Units first, and nothing else in their lines: another fix may repeat the word as it was read before.
    let mut units: BTreeSet<(usize, usize)> = BTreeSet::new();
    let (first, others): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|one| one.rule == Rule::Units);
    for finding in first.into_iter().chain(others) {
        let Some(fix) = finding.fix.as_ref().filter(|fix| !fix.edits.is_empty()) else { continue };
        let unit = finding.rule == Rule::Units;
        let free = fix.edits.iter().all(|edit| {
            let taken = edits.get(&edit.place.file);
            (unit || !units.contains(&(edit.place.file, edit.place.line)))
                && !taken.is_some_and(|taken| taken.iter().any(|other| touch(other, edit)))
        });
        if free {
            fixed += 1;
            for edit in &fix.edits {
                if unit {
                    units.insert((edit.place.file, edit.place.line));
                }
                edits.entry(edit.place.file).or_default().push(edit);
            }
        }
    }
    (edits, fixed)
}

fn touch(a: &Edit, b: &Edit) -> bool {
    let whole = |edit: &Edit| edit.place.columns.0 == edit.place.columns.1;
    let (left, right) = (a.place.columns, b.place.columns);
    a.place.line == b.place.line && (whole(a) || whole(b) || left.0 < right.1 && right.0 < left.1)
}

/// The text with the replacements made.
fn fixed(lines: &[String], edits: &[&Edit]) -> String {
    let mut out = String::new();
    for (number, line) in (1..).zip(lines) {
        let mut here: Vec<&&Edit> = edits.iter().filter(|edit| edit.place.line == number).collect();
        // From the right, so that columns stay what they were.
        here.sort_by_key(|edit| std::cmp::Reverse(edit.place.columns));
        let mut letters: Vec<char> = line.chars().collect();
        let mut gone = false;
        for edit in here {
            let (from, to) = edit.place.columns;
            if from == to {
                letters = edit.text.chars().collect();
                gone = edit.text.is_empty();
            } else {
                letters.splice(from.min(letters.len())..to.min(letters.len()), edit.text.chars());
            }
        }
        if !gone {
            out.extend(letters);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_insight::Place;

    fn edit(line: usize, columns: (usize, usize), text: &str) -> Edit {
        Edit { place: Place { file: 0, line, columns }, text: text.into() }
    }

    #[test]
    fn replacements_keep_the_rest_of_the_line() {
        let lines = ["rate 1 ceil 2".to_owned(), "gone".to_owned(), "stays".to_owned()];
        let edits = [edit(1, (5, 6), "10"), edit(1, (12, 13), "20"), edit(2, (0, 0), "")];
        assert_eq!(fixed(&lines, &edits.iter().collect::<Vec<_>>()), "rate 10 ceil 20\nstays\n");
    }

    #[test]
    fn replacements_that_touch_are_not_made_both() {
        assert!(touch(&edit(1, (0, 4), "a"), &edit(1, (3, 5), "b")));
        assert!(touch(&edit(1, (0, 0), "a"), &edit(1, (3, 5), "b")));
        assert!(!touch(&edit(1, (0, 3), "a"), &edit(1, (3, 5), "b")));
        assert!(!touch(&edit(1, (0, 3), "a"), &edit(2, (0, 5), "b")));
    }
}
