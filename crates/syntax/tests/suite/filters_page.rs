//! docs/filters.md lists what the parser knows; what it lists as not built is refused with that reason.
//!
//! `TIDEGATE_BLESS=1 cargo test -p tidegate-syntax --test suite filters_page::` writes the page's tables.

#![allow(clippy::disallowed_methods, reason = "a test reads the page it holds")]

use std::fs;
use std::path::Path;
use tidegate_policy::spec::{
    ACTIONS, DocumentedName, EMATCHES, FILTERS, REFUSED_ACTIONS, REFUSED_EMATCHES, REFUSED_FILTERS,
    REFUSED_FLOWER_KEYS,
};
use tidegate_syntax::{Env, Refusal, tc};

fn table(heading: &str, parts: impl Iterator<Item = DocumentedName>) -> String {
    let rows: String = parts.map(|(name, text)| format!("| `{name}` | {text} |\n")).collect();
    format!("| | {heading} |\n|---|---|\n{rows}")
}

#[test]
fn the_page_is_made_from_the_tables() {
    let does = |parts: &[DocumentedName]| table("what it does", parts.iter().copied());
    let why = |parts: &[DocumentedName]| table("why not", parts.iter().copied());
    let wanted = [
        ("filters", table("what it does", FILTERS.iter().map(|kind| (kind.name, kind.title)))),
        ("no-filters", why(REFUSED_FILTERS)),
        ("no-keys", why(REFUSED_FLOWER_KEYS)),
        ("ematches", does(EMATCHES)),
        ("no-ematches", why(REFUSED_EMATCHES)),
        ("actions", does(ACTIONS)),
        ("no-actions", why(REFUSED_ACTIONS)),
    ];
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/filters.md");
    let text = fs::read_to_string(&paper).expect("the page");
    let renewed = wanted.iter().fold(text.clone(), |text, (name, rows)| {
        let begin = format!("<!-- generated: {name} -->\n");
        let (before, rest) = text.split_once(&begin).expect("the part's beginning");
        let (_, after) = rest.split_once("<!-- end -->").expect("the part's end");
        format!("{before}{begin}{rows}<!-- end -->{after}")
    });
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&paper, &renewed).expect("the page is written");
    } else {
        assert_eq!(text, renewed, "docs/filters.md is not what the tables say");
    }
}

/// A list of parts, and a command with one of them.
type Refused = (&'static [DocumentedName], fn(&str) -> String);

fn refusal(command: &str) -> Refusal {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    tc::parse(&words, &Env::default()).expect_err(command)
}

#[test]
fn what_is_not_built_is_refused_with_its_reason() {
    const ADD: &str = "filter add dev eth0 parent 1: protocol ip prio 1";
    let commands: [Refused; 4] = [
        (REFUSED_FILTERS, |name| format!("{ADD} {name} classid 1:1")),
        (REFUSED_FLOWER_KEYS, |name| format!("{ADD} flower {name} 1 classid 1:1")),
        (REFUSED_EMATCHES, |name| format!("{ADD} basic match {name}(1) classid 1:1")),
        (REFUSED_ACTIONS, |name| format!("actions add action {name} 1")),
    ];
    for (parts, command) in commands {
        for (name, why) in parts {
            let command = command(name);
            let refused = refusal(&command);
            let remedy = refused.remedy.clone().unwrap_or_default();
            assert!(refused.stderr.contains("is not supported in this version"), "{command}: {refused}");
            assert_eq!(remedy, format!("Not built: {why}."), "{command}");
        }
    }
}
