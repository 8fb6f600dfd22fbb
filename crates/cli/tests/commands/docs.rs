//! The papers' console blocks show what the commands print.
//!
//! In README.md, docs/ and docs/disciplines/ (docs/guide has `scenarios.rs`), a block marked `console` begins
//! with `$ tidegate …`; what follows is its output, where a line `…` matches any number of lines.
//! `TIDEGATE_BLESS=1 cargo test -p tidegate --test commands docs::` writes the present output into the
//! blocks, the lines `…` kept where the lines around them are still found.

use crate::common;

use common::papers::{self, fits};
use common::{Place, skip};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn papers_say_what_commands_print() {
    if skip() {
        return;
    }
    let place = Place::new("papers");
    for folder in ["examples", "docs", "scenarios"] {
        std::os::unix::fs::symlink(root().join(folder), place.0.join(folder)).expect("a link");
    }
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let (mut wrong, mut ran) = (String::new(), 0);
    let folders =
        ["docs", "docs/disciplines"].into_iter().flat_map(|folder| papers::of(&root().join(folder)));
    for paper in std::iter::once(root().join("README.md")).chain(folders) {
        let text = std::fs::read_to_string(&paper).expect("a paper");
        let (renewed, differs) = papers::renewed(&text, |command| {
            ran += 1;
            papers::run(command, &place.0)
        });
        if !differs.is_empty() {
            let _ = writeln!(wrong, "{}: {differs}", paper.display());
        }
        if bless {
            std::fs::write(&paper, renewed).expect("a paper");
        }
    }
    assert!(ran > 0, "no paper has a command");
    assert!(bless || wrong.is_empty(), "{wrong}");
}

#[test]
fn gaps_match_any_lines() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let rows = [
        ("a b", "a b", true),
        ("a … d", "a b c d", true),
        ("… d", "a d d", true),
        ("a …", "a", true),
        ("a b", "a c", false),
        ("a … d", "a b", false),
    ];
    for (output, printed, expected) in rows {
        assert_eq!(fits(&lines(output), &lines(printed)), expected, "{output} and {printed}");
    }
}
