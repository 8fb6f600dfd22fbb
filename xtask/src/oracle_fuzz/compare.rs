//! Two answers side by side: the first line that differs, and what kind of difference it is.

use std::fmt;
use std::fs;
use std::path::Path;

/// What is compared, in the order in which a mistake spreads.
const FILES: &[&str] = &["egress.csv", "drops.csv", "snap.txt", "stats.txt", "filters.txt"];

/// The first difference of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The file, or `replay` when our program refused.
    pub(crate) file: String,
    /// What is the same for all differences of this sort: no numbers of the case in it.
    pub(crate) shape: String,
    /// Line number, from 1.
    pub(crate) line: usize,
    /// The kernel's line.
    pub(crate) theirs: String,
    /// Our line.
    pub(crate) ours: String,
}

impl Difference {
    /// The sort: file and shape.
    pub(crate) fn group(&self) -> String {
        format!("{}: {}", self.file, self.shape)
    }

    /// Our program refused to answer.
    pub(crate) fn refusal(message: &str) -> Self {
        let last = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(message);
        let text = message.lines().find(|line| line.contains("panicked")).unwrap_or(last);
        Self {
            file: "replay".to_owned(),
            shape: without_numbers(text),
            line: 0,
            theirs: String::new(),
            ours: message.to_owned(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, theirs, ours, .. } = self;
        write!(to, "{file}:{line}\n  kernel   {theirs}\n  tidegate {ours}")
    }
}

/// The first difference between the kernel's folder and ours; none if all is the same.
pub(crate) fn folders(theirs: &Path, ours: &Path) -> Option<Difference> {
    FILES.iter().find_map(|file| {
        let read = |dir: &Path| {
            fs::read(dir.join(file))
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .unwrap_or_default()
        };
        texts(file, &read(theirs), &read(ours))
    })
}

/// The first difference between two texts of this file.
pub(crate) fn texts(file: &str, theirs: &str, ours: &str) -> Option<Difference> {
    let take = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| match file {
                // The name of the kernel's function is for people.
                "drops.csv" => line.splitn(5, ',').take(4).collect::<Vec<_>>().join(","),
                _ => line.to_owned(),
            })
            .collect()
    };
    let (theirs, ours) = (take(theirs), take(ours));
    let count = theirs.len().max(ours.len());
    let none = String::new();
    for at in 0..count {
        let (left, right) = (theirs.get(at), ours.get(at));
        if left == right {
            continue;
        }
        let shape = match (left, right) {
            (Some(_), None) => "ours ends early".to_owned(),
            (None, Some(_)) => "ours goes on".to_owned(),
            (Some(left), Some(right)) if has_columns(file) => columns(left, right).to_owned(),
            (Some(left), Some(right)) if is_sentence(left) || is_sentence(right) => {
                format!("{} / {}", without_numbers(left), without_numbers(right))
            }
            (Some(left), Some(right)) => format!("{}{}", heading(&theirs, at), words(left, right)),
            (None, None) => continue,
        };
        let (left, right) = (left.unwrap_or(&none).clone(), right.unwrap_or(&none).clone());
        return Some(Difference { file: file.to_owned(), shape, line: at + 1, theirs: left, ours: right });
    }
    None
}

/// A message or an exit code, not a line of a listing.
fn is_sentence(line: &str) -> bool {
    let listing = [" ", "qdisc ", "class ", "filter "].iter().any(|word| line.starts_with(word));
    !line.is_empty() && !listing
}

fn has_columns(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end == "csv")
}

/// Which column of `time_ns,id,len,dsfield` is another.
fn columns(left: &str, right: &str) -> &'static str {
    let left: Vec<&str> = left.split(',').collect();
    let right: Vec<&str> = right.split(',').collect();
    let same = |at: usize| left.get(at) == right.get(at);
    match (same(0), same(1)) {
        (false, true) => "the same packet at another time",
        (true, false) => "another packet at the same time",
        (false, false) => "another packet at another time",
        (true, true) if !same(3) => "another DS field",
        _ => "another length",
    }
}

/// `qdisc htb, `: the thing that the line at `at` speaks of.
fn heading(lines: &[String], at: usize) -> String {
    let head = lines[..=at]
        .iter()
        .rev()
        .find(|line| ["qdisc ", "class ", "filter "].iter().any(|word| line.starts_with(word)));
    let Some(head) = head else { return String::new() };
    let words: Vec<&str> = head.split_whitespace().collect();
    let kind = if words[0] == "filter" {
        ["fw", "u32", "flow", "flower", "basic", "matchall"]
            .iter()
            .find(|kind| words.contains(kind))
            .copied()
            .unwrap_or("?")
    } else {
        words.get(1).copied().unwrap_or("?")
    };
    format!("{} {kind}, ", words[0])
}

/// The word before the first that differs, and that one if it is no number.
fn words(left: &str, right: &str) -> String {
    let theirs: Vec<&str> = left.split_whitespace().collect();
    let ours: Vec<&str> = right.split_whitespace().collect();
    let at = (0..theirs.len().max(ours.len())).find(|at| theirs.get(*at) != ours.get(*at));
    let Some(at) = at else { return "blanks".to_owned() };
    let before = if at == 0 { String::new() } else { format!("{} ", without_numbers(theirs[at - 1])) };
    let name = |word: Option<&&str>| word.map_or("nothing".to_owned(), |word| without_numbers(word));
    let (left_word, right_word) = (name(theirs.get(at)), name(ours.get(at)));
    if left_word == right_word {
        format!("{before}{left_word}")
    } else {
        format!("{before}{left_word} / {right_word}")
    }
}

/// Every run of digits (and hexadecimal figures behind one) becomes `N`.
fn without_numbers(text: &str) -> String {
    let mut shape = String::new();
    let mut in_number = false;
    for letter in text.chars() {
        let part = letter.is_ascii_digit()
            || (in_number && (letter.is_ascii_hexdigit() || letter == 'x' || letter == '.'));
        if part && !in_number {
            shape.push('N');
        } else if !part {
            shape.push(letter);
        }
        in_number = part;
    }
    shape.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_shapes_without_numbers() {
        let stats = "qdisc htb 1: root\n Sent 5 bytes 1 pkt (dropped 7, overlimits 2 requeues 0)\n";
        let table = [
            ("egress.csv", "h\n1,2,3,4\n", "h\n1,2,3,4\n", "same"),
            ("egress.csv", "h\n1,2,3,4\n", "h\n9,2,3,4\n", "the same packet at another time"),
            ("egress.csv", "h\n1,2,3,4\n", "h\n1,3,3,4\n", "another packet at the same time"),
            ("egress.csv", "h\n1,2,3,4\n", "h\n1,2,3,5\n", "another DS field"),
            ("egress.csv", "h\n1,2,3,4\n", "h\n", "ours ends early"),
            ("drops.csv", "h\n1,2,3,4,a\n", "h\n1,2,3,4,b\n", "same"),
            ("stats.txt", stats, &stats.replace("dropped 7", "dropped 6"), "qdisc htb, (dropped N,"),
            ("snap.txt", "rc=2\n", "rc=0\n", "rc=N / rc=N"),
            ("snap.txt", "Error: Invalid handle.\n", "rc=0\n", "Error: Invalid handle. / rc=N"),
        ];
        for (file, theirs, ours, want) in table {
            let got = texts(file, theirs, ours).map_or("same".to_owned(), |difference| difference.shape);
            assert_eq!(got, want, "{file} {theirs:?} {ours:?}");
        }
    }

    #[test]
    fn a_refusal_is_grouped_by_its_last_line_or_its_panic() {
        assert_eq!(Difference::refusal("exit 1: 3 draws left\n").group(), "replay: exit N: N draws left");
        let panic = "exit 101: thread 'main' panicked at crates/qdisc/src/a.rs:5:\nnote: run with";
        assert!(Difference::refusal(panic).shape.contains("panicked at crates/qdisc"));
    }
}
