//! The files with the fixes made.

use super::result::Checked;
use crate::finding::{Edit, Finding, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a policy with its fixes made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedTexts {
    /// How many findings were fixed.
    pub findings: usize,
    /// How many more have a fix, in places that another fix has changed.
    pub left: usize,
    /// The text of each of the policy's sources, with the end of its last line.
    pub texts: Vec<String>,
}

/// Makes the fixes of all findings that have one: of two that touch, the first. Units go first, because
/// another fix may repeat the word as it was read.
pub fn fixed_texts(checked: &Checked) -> FixedTexts {
    let fixes = checked.findings.iter().filter_map(|one| one.fix.as_ref());
    let fixable = fixes.filter(|fix| !fix.edits.is_empty()).count();
    let (edits, findings) = chosen(&checked.findings);
    let edits_of = |file: usize| edits.get(&file).map_or(&[][..], Vec::as_slice);
    let sources = checked.reading.sources.iter().enumerate();
    let texts = sources.map(|(file, source)| fixed(&source.lines, edits_of(file))).collect();
    FixedTexts { findings, left: fixable - findings, texts }
}

/// The replacements that do not touch one another, by file, and how many findings they are from.
fn chosen(findings: &[Finding]) -> (BTreeMap<usize, Vec<&Edit>>, usize) {
    let mut edits: BTreeMap<usize, Vec<&Edit>> = BTreeMap::new();
    let mut fixed = 0;
    // Units first, and nothing else in their lines: another fix may repeat the word as it was read before.
    let mut units: BTreeSet<(usize, usize)> = BTreeSet::new();
    let (first, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|one| one.rule == Rule::Units);
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
    use crate::reading::SourceLocation;

    fn edit(line: usize, columns: (usize, usize), text: &str) -> Edit {
        Edit { place: SourceLocation { file: 0, line, columns }, text: text.into() }
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
