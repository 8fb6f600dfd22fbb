//! What the papers say a command prints is what it prints.
//!
//! In README.md, docs/ and docs/disciplines/, a block marked `console` begins with `$ tidegate …`; what follows is its output, where a line `…` stands
//! for any number of lines. `TIDEGATE_BLESS=1 cargo test -p tidegate --test docs` writes the present output into the blocks, the lines
//! `…` kept where the lines around them are still found.

mod common;

use common::{Place, TIDEGATE, skip};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Any number of lines.
const GAP: &str = "…";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn papers() -> Vec<PathBuf> {
    let mut papers = vec![root().join("README.md")];
    for folder in ["docs", "docs/disciplines"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("papers");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        papers.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    papers.sort();
    papers
}

/// A command in a paper, and the lines said to be its output.
struct Block {
    line: usize,
    command: String,
    output: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open = false;
    for (line, words) in text.lines().enumerate() {
        match (open, words) {
            (false, "```console") => open = true,
            (true, "```") => open = false,
            (true, words) => match words.strip_prefix("$ ") {
                Some(command) => {
                    blocks.push(Block { line: line + 1, command: command.to_owned(), output: Vec::new() });
                }
                None => {
                    let block: &mut Block =
                        blocks.last_mut().unwrap_or_else(|| panic!("output without a command, line {}", line + 1));
                    block.output.push(words.to_owned());
                }
            },
            _ => {}
        }
    }
    blocks
}

/// The words of a command; single quotes hold several together.
fn split(command: &str) -> Vec<&str> {
    let parts = command.split('\'').enumerate();
    parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
}

/// Runs a command of ours where the examples are; its output, errors after it.
fn run(command: &str, place: &Path) -> Vec<String> {
    let words = split(command);
    assert_eq!(words.first(), Some(&"tidegate"), "only our own commands stand in papers: {command}");
    let output = Command::new(TIDEGATE).args(&words[1..]).current_dir(place).output().expect("tidegate runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Do the lines said fit the lines printed?
fn fits(said: &[String], printed: &[String]) -> bool {
    match said.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == GAP => (0..=printed.len()).any(|skip| fits(rest, &printed[skip..])),
        Some((first, rest)) => printed.split_first().is_some_and(|(line, more)| line == first && fits(rest, more)),
    }
}

#[test]
fn papers_say_what_commands_print() {
    if skip() {
        return;
    }
    let place = Place::new("papers");
    for folder in ["examples", "docs"] {
        std::os::unix::fs::symlink(root().join(folder), place.0.join(folder)).expect("a link");
    }
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let (mut wrong, mut ran) = (String::new(), 0);
    for paper in papers() {
        let text = std::fs::read_to_string(&paper).expect("a paper");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for block in blocks(&text).into_iter().rev() {
            let printed = run(&block.command, &place.0);
            ran += 1;
            if fits(&block.output, &printed) {
                continue;
            }
            let _ =
                writeln!(wrong, "{}:{}: {} prints\n{}", paper.display(), block.line, block.command, printed.join("\n"));
            lines.splice(block.line..block.line + block.output.len(), with_gaps(&block.output, printed));
        }
        if bless {
            std::fs::write(&paper, lines.join("\n") + "\n").expect("a paper");
        }
    }
    assert!(ran > 0, "no paper has a command");
    assert!(bless || wrong.is_empty(), "{wrong}");
}

/// The lines printed, with the gaps that stood between lines (or before the first, after the last) that are still there.
fn with_gaps(said: &[String], printed: Vec<String>) -> Vec<String> {
    let mut kept = printed.clone();
    for (at, _) in said.iter().enumerate().filter(|(_, line)| *line == GAP) {
        let begin = |line: &String| line.split_whitespace().next().map(str::to_owned);
        let (before, after) = (at.checked_sub(1).map(|i| &said[i]), said.get(at + 1));
        let find = |line: Option<&String>, missing: usize| match line {
            None => Some(missing),
            Some(line) => kept.iter().position(|other| !line.is_empty() && begin(other) == begin(line)),
        };
        let from = if before.is_none() { Some(0) } else { find(before, 0).map(|i| i + 1) };
        if let (Some(from), Some(to)) = (from, find(after, kept.len()))
            && from <= to
        {
            kept.splice(from..to, [GAP.to_owned()]);
        }
    }
    kept
}

#[test]
fn gaps_stand_for_any_lines() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let rows = [
        ("a b", "a b", true),
        ("a … d", "a b c d", true),
        ("… d", "a d d", true),
        ("a …", "a", true),
        ("a b", "a c", false),
        ("a … d", "a b", false),
    ];
    for (said, printed, expected) in rows {
        assert_eq!(fits(&lines(said), &lines(printed)), expected, "{said} and {printed}");
    }
}
