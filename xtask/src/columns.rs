//! How long lines may be: rustfmt folds code, but neither comments nor Markdown.

use std::path::Path;

use crate::walls::{block_comment, char_literal, quoted, raw_string};

/// The most columns of a line of source. The texts of string literals do not count, as rustfmt cannot fold
/// them, nor do diagrams in doc comments (blocks of `text`).
const MAX_SOURCE: usize = 110;

/// The most columns of a line of Markdown. Code blocks, tables, headings and links do not count.
const MAX_MARKDOWN: usize = 120;

/// Pages that a test of the command writes, each line as long as its sentence.
const GENERATED: [&str; 1] = ["docs/predicted-vs-measured.md"];

/// Lines of a file that are too long.
pub(crate) fn breaches(name: &Path, text: &str) -> Vec<String> {
    let (long, most) = match name.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => (long_lines(&without_strings(text), MAX_SOURCE), MAX_SOURCE),
        Some("md") if !GENERATED.iter().any(|page| name == Path::new(page)) => {
            (long_prose(text), MAX_MARKDOWN)
        }
        _ => return Vec::new(),
    };
    long.into_iter()
        .map(|(number, columns)| {
            format!("{}:{number}: {columns} columns: fold it, {most} is the limit", name.display())
        })
        .collect()
}

fn long_lines(text: &str, most: usize) -> Vec<(usize, usize)> {
    let mut in_diagram = false;
    let mut long = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let comment = line.trim_start().trim_start_matches(['/', '!']).trim_start();
        if line.trim_start().starts_with("//") && comment.starts_with("```") {
            in_diagram = comment.starts_with("```text");
        }
        let columns = line.chars().count();
        if columns > most && !in_diagram {
            long.push((number + 1, columns));
        }
    }
    long
}

fn long_prose(text: &str) -> Vec<(usize, usize)> {
    let mut in_code = false;
    let mut long = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            in_code = !in_code;
        }
        let exempt = in_code || start.starts_with(['|', '#']) || line.contains("](") || line.contains("://");
        let columns = line.chars().count();
        if columns > MAX_MARKDOWN && !exempt {
            long.push((number + 1, columns));
        }
    }
    long
}

/// The text without what string literals hold; their line ends stay.
fn without_strings(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let rest = &letters[at..];
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let (length, is_text) = if rest.starts_with(&['/', '/']) {
            (rest.iter().take_while(|letter| **letter != '\n').count(), false)
        } else if rest.starts_with(&['/', '*']) {
            (block_comment(rest), false)
        } else if letter == '"' {
            (quoted(rest), true)
        } else if let Some(length) = raw_string(rest, before) {
            (length, true)
        } else {
            (char_literal(rest).unwrap_or(1), false)
        };
        let length = length.clamp(1, rest.len());
        kept.extend(rest[..length].iter().filter(|letter| !is_text || **letter == '\n'));
        at += length;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        breaches(Path::new(name), text)
    }

    #[test]
    fn long_lines_of_source_are_refused_and_long_strings_are_not() {
        let long = "x".repeat(MAX_SOURCE);
        let text = format!(
            "// {long}\nlet a = \"{long}\";\nlet b = r#\"{long}\"#;\nlet c = '\"'; {long}\n{long}\n\
            let d = \"{long}\\\n    {long}\";\n/* {long} */\n/// ```text\n/// {long}\n/// ```\n/// {long}\n"
        );
        let lines: Vec<String> = found("a.rs", &text);
        assert_eq!(
            lines,
            [
                "a.rs:1: 113 columns: fold it, 110 is the limit",
                "a.rs:4: 123 columns: fold it, 110 is the limit",
                "a.rs:8: 116 columns: fold it, 110 is the limit",
                "a.rs:12: 114 columns: fold it, 110 is the limit",
            ]
        );
    }

    #[test]
    fn long_lines_of_prose_are_refused_and_tables_links_and_code_are_not() {
        let long = "x".repeat(MAX_MARKDOWN);
        let text =
            format!("{long}\n{long}y\n| {long} |\n# {long}\n[{long}](a)\n```\n{long}y\n```\n- {long}\n");
        assert_eq!(
            found("a.md", &text),
            [
                "a.md:2: 121 columns: fold it, 120 is the limit",
                "a.md:9: 122 columns: fold it, 120 is the limit",
            ]
        );
        assert!(found("a.txt", &text).is_empty());
    }
}
