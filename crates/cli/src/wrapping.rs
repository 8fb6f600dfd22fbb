//! Text for people, wrapped to the columns of a terminal: a word is not broken in its middle, later lines
//! stand under the text of the first, and what is to be copied stays in one line, as a terminal copies it.

use tidegate_report::width;

/// The fewest columns that are wrapped to.
const MIN_COLUMNS: usize = 20;

/// A text whose lines have at most so many columns.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let columns = columns.max(MIN_COLUMNS);
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if width(line) <= columns || is_to_copy(line) {
            out.push_str(line);
        } else {
            one(line, columns, &mut out);
        }
        out.push_str(end);
    }
    out
}

/// Is it a command, or does it quote a line of the policy, with a mark below?
fn is_to_copy(line: &str) -> bool {
    let text = line.trim_start();
    let is_source = || {
        let (number, rest) = text.split_once('|').unwrap_or(("x", ""));
        rest.starts_with(' ') && number.trim().chars().all(|digit| digit.is_ascii_digit())
    };
    let is_command =
        ["tidegate ", "tc ", "ip ", "sudo ", "printf ", "timeout "].iter().any(|name| text.starts_with(name));
    text.starts_with("Again: ") || (line.starts_with("    ") && is_command) || is_source()
}

fn one(line: &str, columns: usize, out: &mut String) {
    let hang = hanging(line, columns);
    let mut used = 0;
    let mut is_first = true;
    for word in words(line) {
        let wide = width(word.trim_end());
        if !is_first && used + wide > columns {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&hang);
            used = width(&hang);
        }
        out.push_str(word);
        used += width(word);
        is_first = false;
    }
}

/// Words with the blanks behind them; those before the first are its own, and what is between backticks is
/// one word.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut from, mut is_quoted, mut was_blank, mut is_begun) = (0, false, false, false);
    for (at, letter) in line.char_indices() {
        if was_blank && letter != ' ' && is_begun {
            words.push(&line[from..at]);
            from = at;
        }
        is_begun |= letter != ' ';
        is_quoted ^= letter == '`';
        was_blank = letter == ' ' && !is_quoted;
    }
    words.push(&line[from..]);
    words
}

/// What later lines begin with: the branches of a tree go on, and a column of text stands under itself.
fn hanging(line: &str, columns: usize) -> String {
    let tree = |letter: char| match letter {
        '│' | '├' => Some('│'),
        ' ' | '└' | '─' => Some(' '),
        _ => None,
    };
    let branches: String = line.chars().map_while(tree).collect();
    let text = line.trim_start_matches(|letter| tree(letter).is_some());
    if branches.contains('│') || line.trim_start().starts_with(['└', '├']) {
        return branches + "  ";
    }
    // The last column that begins in the first half.
    let mut column = 0;
    let (mut at, mut blanks) = (width(&branches), 0);
    for letter in text.chars() {
        if blanks >= 2 && letter != ' ' && at <= columns / 2 {
            column = at;
        }
        blanks = if letter == ' ' { blanks + 1 } else { 0 };
        at += 1;
    }
    let indent = if column > 0 { column } else { (width(&branches) + 2).min(columns / 2) };
    " ".repeat(indent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_where_it_may() {
        let rows = [
            ("short\n", "short\n"),
            ("one two three four five six\n", "one two three four\n  five six\n"),
            ("R1  name  a rule of many words\n", "R1  name  a rule of\n          many words\n"),
            ("│  ├─ 1:10 with many words\n", "│  ├─ 1:10 with many\n│  │    words\n"),
            ("  = `two of many words` here\n", "  =\n    `two of many words`\n    here\n"),
            ("  3 | tc qdisc add dev eth0 root\n", "  3 | tc qdisc add dev eth0 root\n"),
            ("Again: tidegate try a.sh --up 1mbit\n", "Again: tidegate try a.sh --up 1mbit\n"),
            ("    tidegate apply POLICY --dev eth0\n", "    tidegate apply POLICY --dev eth0\n"),
            ("onewordthatislongerthantheline", "onewordthatislongerthantheline"),
            ("", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(wrapped(text, 20), expected, "{text}");
            assert_eq!(wrapped(text, 1), wrapped(text, 20));
            assert_eq!(wrapped(text, 65_535), text);
        }
    }
}
