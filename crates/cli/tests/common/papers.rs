//! Papers with blocks marked `console` that show commands' output, and with generated parts between markers.

use super::TIDEGATE;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Any number of lines.
const GAP: &str = "…";

/// The papers in a folder, in order.
pub(crate) fn of(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut papers: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    papers.sort();
    papers
}

/// A command in a paper, and the lines of its output.
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) output: Vec<String>,
}

pub(crate) fn blocks(text: &str) -> Vec<Block> {
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
                    let block: &mut Block = blocks
                        .last_mut()
                        .unwrap_or_else(|| panic!("output without a command, line {}", line + 1));
                    block.output.push(words.to_owned());
                }
            },
            _ => {}
        }
    }
    blocks
}

/// The words of a command; single quotes hold several together.
pub(crate) fn split(command: &str) -> Vec<&str> {
    let parts = command.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
        .collect()
}

/// Runs a command of tidegate's where the examples are; its output, errors after it.
pub(crate) fn run(command: &str, place: &Path) -> Vec<String> {
    let words = split(command);
    assert_eq!(words.first(), Some(&"tidegate"), "only our own commands stand in papers: {command}");
    let output = Command::new(TIDEGATE).args(&words[1..]).current_dir(place).output().expect("tidegate runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    lines(&text)
}

/// Lines without what trails.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Whether the lines of a paper match the printed lines.
pub(crate) fn fits(lines: &[String], printed: &[String]) -> bool {
    match lines.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == GAP => (0..=printed.len()).any(|skip| fits(rest, &printed[skip..])),
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, more)| line == first && fits(rest, more))
        }
    }
}

/// The lines printed, with the gaps between lines (or before the first, after the last) that are still there.
pub(crate) fn with_gaps(lines: &[String], printed: Vec<String>) -> Vec<String> {
    let mut kept = printed.clone();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| *line == GAP) {
        let begin = |line: &String| line.split_whitespace().next().map(str::to_owned);
        let (before, after) = (at.checked_sub(1).map(|i| &lines[i]), lines.get(at + 1));
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

/// A paper with what its commands print now; beside it, what differs.
pub(crate) fn renewed(text: &str, mut printed: impl FnMut(&str) -> Vec<String>) -> (String, String) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut differs = String::new();
    // Commands in their order, a later one may read what an earlier one wrote; changes from the end, so that
    // places stay right.
    let mut run = |block: Block| {
        let now = printed(&block.command);
        (block, now)
    };
    let ran: Vec<(Block, Vec<String>)> = blocks(text).into_iter().map(&mut run).collect();
    for (block, now) in ran.into_iter().rev() {
        if !fits(&block.output, &now) {
            let _ = writeln!(differs, "line {}: {} prints\n{}", block.line, block.command, now.join("\n"));
            lines.splice(block.line..block.line + block.output.len(), with_gaps(&block.output, now));
        }
    }
    (lines.join("\n") + "\n", differs)
}

/// A paper with this between `<!-- generated: NAME -->` and `<!-- end -->`, if it has such a part.
pub(crate) fn generated(text: &str, name: &str, content: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let Some((before, rest)) = text.split_once(&begin) else { return text.to_owned() };
    let after = rest.split_once("<!-- end -->").map_or("", |(_, after)| after);
    format!("{before}{begin}{content}<!-- end -->{after}")
}
