//! The removal of a line, where what is around it stays as it is.

use super::context::RuleContext;
use crate::finding::{Edit, Fix};
use crate::reading::{SourceLocation, Step};

/// The line is removed, where it does nothing else and its words are literal.
pub(super) fn remove(context: &RuleContext<'_>, step: &Step) -> Option<Fix> {
    let written = step.words.iter().any(|word| word.literal);
    let is_whole = |place: &SourceLocation| {
        written && context.is_alone(step) && may_go(&context.reading.sources[place.file].lines, place.line)
    };
    let place = step.place.clone().filter(is_whole);
    let whole = |place: SourceLocation| Edit {
        place: SourceLocation { columns: (0, 0), ..place },
        text: String::new(),
    };
    let edits: Vec<Edit> = place.map(whole).into_iter().collect();
    let what = match (edits.is_empty(), written) {
        (false, _) => "remove the line".to_owned(),
        (true, true) => "remove it (by hand: its line does more than this, or others need it)".to_owned(),
        (true, false) => {
            "remove it (by hand: its words come from variables, substitutions, or a line that is used more \
            than once)"
                .to_owned()
        }
    };
    Some(Fix { what, edits })
}

/// Words of the shell behind which a command must follow, or that go on with one.
const OPENS: [&str; 11] = ["then", "do", "else", "{", "(", ")", "if", "elif", "while", "until", "!"];
const CLOSES: [&str; 8] = ["fi", "done", "else", "elif", "}", ")", "then", "do"];
const BEGINS: [&str; 8] = ["if", "elif", "while", "until", "for", "case", "!", "time"];

/// May a line of a script be removed, and what is around it stays as it is? Not if it goes on in another, if
/// another goes on in it, if it does more than one command, if it is all that a block does, and if the next
/// asks how it ended.
fn may_go(lines: &[String], number: usize) -> bool {
    let line = |at: usize| lines.get(at).map(|line| code(line)).unwrap_or_default();
    let at = number - 1;
    let joined = |text: &str| ["\\", "&&", "||", "|"].iter().any(|end| text.ends_with(end));
    let counts = |text: &&str| !text.is_empty();
    let before = (0..at).rev().map(line).find(counts).unwrap_or_default();
    let after = (number..lines.len()).map(line).find(counts).unwrap_or_default();
    let first = |text: &str| text.split([' ', ';', '\t']).next().unwrap_or_default().to_owned();
    let last = before.rsplit([' ', ';', '\t']).next().unwrap_or_default();
    let opens = OPENS.contains(&last) || before.ends_with(['{', '(', ')']);
    let only = opens && (CLOSES.contains(&first(after).as_str()) || after.starts_with(['}', ')']));
    let own = line(at);
    let several = own.contains([';', '&', '|', '<', '>', '(', ')', '{', '}', '`', '\\']);
    let in_words = BEGINS.contains(&first(own).as_str()) || OPENS.contains(&first(own).as_str());
    !(only || several || in_words || joined(before) || after.contains("$?"))
}

/// A line without what is around its commands: blanks, and a comment.
fn code(line: &str) -> &str {
    let comment = line.match_indices('#').map(|(at, _)| at).find(|at| {
        let before = &line[..*at];
        // In quotes it is none.
        let is_open = |quote: char| before.matches(quote).count() % 2 == 1;
        let begins = before.is_empty() || before.ends_with([' ', '\t', ';']);
        begins && !is_open('\'') && !is_open('"')
    });
    comment.map_or(line, |at| &line[..at]).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_where_the_script_stays_whole() {
        let cases = [
            ("a\ntc x\nb", 2, true),
            ("tc x", 1, true),
            ("if a; then\ntc x\ntc y\nfi", 2, true),
            // A branch of `case` may be empty.
            ("a)\n  tc x\n  ;;", 2, true),
            // It goes on in the next line, or is what the line before goes on in.
            ("tc x \\\n  y", 1, false),
            ("tc x \\\n  y", 2, false),
            ("a &&\ntc x", 2, false),
            ("a |\n# why\n\ntc x", 4, false),
            // It is all that a block does.
            ("if a; then\n  tc x\nfi", 2, false),
            ("for a in b; do\n  # why\n  tc x\ndone", 3, false),
            ("f() {\n  tc x\n}", 2, false),
            ("if true; then # why\ntc x\nfi", 2, false),
            ("f() { # why\ntc x\n}", 2, false),
            ("if\ntc x\nthen a; fi", 2, false),
            ("if a; then b; elif\ntc x\nthen c; fi", 2, false),
            ("while\ntc x\ndo break; done", 2, false),
            ("true && # why\ntc x\necho", 2, false),
            ("tc x\nrc=$?", 1, false),
            ("echo '#' &&\ntc x", 2, false),
            // It does more than that.
            ("tc x; tc y", 1, false),
            ("tc x || exit 1", 1, false),
            ("if tc x", 1, false),
            ("for a in b c; do tc x $a; done", 1, false),
        ];
        for (text, line, may) in cases {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert_eq!(may_go(&lines, line), may, "{text:?}, line {line}");
        }
    }
}
