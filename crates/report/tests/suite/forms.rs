//! A trial on the terminal.

use crate::fixture::trial::trial;

use tidegate_measure::trial::TrialDocument;
use tidegate_report::text;

#[test]
fn terminal() {
    let told = text(&trial());
    let expected = include_str!("../data/trial.txt");
    assert_eq!(told, expected, "\n{told}");
    let long = told.lines().filter(|line| line.chars().count() > 100).collect::<Vec<_>>();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn terminal_without_anything() {
    let mut empty = TrialDocument {
        script: "a\x1b[2Jb".into(),
        again: "tidegate try x".into(),
        ..TrialDocument::default()
    };
    empty.notes.push("nothing was measured".into());
    let told = text(&empty);
    assert!(
        told.contains("Note: nothing was measured\n\nAgain: tidegate try x\n") && !told.contains('\x1b'),
        "{told}"
    );
}
