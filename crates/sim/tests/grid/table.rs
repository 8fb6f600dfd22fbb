//! Rows of true and measured values, computed by two threads, and the page that shows them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Within the bounds, and nothing had a caveat.
    Right,
    /// It reported a caveat; whether the figures are right all the same.
    Unreliable(bool),
    /// Neither.
    Wrong,
}

impl Verdict {
    /// The verdict of a case within its bounds or not, with caveats or without.
    pub(crate) fn of(is_within: bool, has_caveats: bool) -> Verdict {
        match (is_within, has_caveats) {
            (within, true) => Verdict::Unreliable(within),
            (true, false) => Verdict::Right,
            (false, false) => Verdict::Wrong,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Verdict::Right => "correct",
            Verdict::Unreliable(true) => "unreliable (correct)",
            Verdict::Unreliable(false) => "unreliable",
            Verdict::Wrong => "WRONG",
        }
    }
}

/// A case with its figures.
pub(crate) struct Row {
    /// The link, and for each figure the truth and what was found.
    pub(crate) cells: Vec<String>,
    pub(crate) verdict: Verdict,
    /// Its caveats.
    pub(crate) caveats: Vec<String>,
}

/// Works out cases in turn, two at a time, and keeps their order.
pub(crate) fn work<C: Sync>(cases: &[C], of: impl Fn(&C) -> Row + Sync) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return done };
            done.push((at, of(case)));
        }
    };
    let mut rows = std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers
            .map(|worker| worker.join().expect("nobody panicked"))
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    });
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// As a table of Markdown, with a line that counts the verdicts.
pub(crate) fn markdown(head: &[&str], rows: &[Row]) -> String {
    let count = |verdict: fn(&Verdict) -> bool| rows.iter().filter(|row| verdict(&row.verdict)).count();
    let mut text = format!(
        "{} cases: {} correct, {} reported as unreliable ({} of them correct), {} wrong without a warning.\n\n",
        rows.len(),
        count(|verdict| *verdict == Verdict::Right),
        count(|verdict| matches!(verdict, Verdict::Unreliable(_))),
        count(|verdict| *verdict == Verdict::Unreliable(true)),
        count(|verdict| *verdict == Verdict::Wrong)
    );
    text += &format!("| {} | verdict |\n|{}\n", head.join(" | "), "---|".repeat(head.len() + 1));
    for row in rows {
        let caveats =
            if row.caveats.is_empty() { String::new() } else { format!(": {}", row.caveats.join("; ")) };
        text += &format!("| {} | {}{caveats} |\n", row.cells.join(" | "), row.verdict.words());
    }
    text
}

/// Compares a generated part of docs/measure-grid.md with the present result, or writes it
/// (TIDEGATE_BLESS=1).
#[expect(clippy::disallowed_methods, reason = "the page is what this test is about")]
pub(crate) fn check(name: &str, wanted: &str) {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure-grid.md");
    let text = std::fs::read_to_string(&paper).expect("docs/measure-grid.md is there");
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("a part {name}"));
    let (_, after) = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("the part {name} ends"));
    let new = format!("{before}{begin}{wanted}<!-- end -->{after}");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&paper, new).expect("docs can be written");
    } else {
        assert!(
            text == new,
            "docs/measure-grid.md, part {name}, is not what is found today; TIDEGATE_BLESS=1 writes it"
        );
    }
}
