//! A trial on the terminal.

use crate::fixture::trial::trial;

use tidegate_measure::trial::TrialDocument;
use tidegate_report::text;

#[test]
fn terminal() {
    let output = text(&trial());
    let expected = include_str!("../data/trial.txt");
    assert_eq!(output, expected, "\n{output}");
    let long = output.lines().filter(|line| line.chars().count() > 100).collect::<Vec<_>>();
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
    let output = text(&empty);
    assert!(
        output.contains("Note: nothing was measured\n\nAgain: tidegate try x\n") && !output.contains('\x1b'),
        "{output}"
    );
}
