//! `tc -batch`: a file of commands, one per line.
//!
//! As in iproute2: `#` begins a comment anywhere, a backslash at the end of a line joins the next, and a word
//! may be quoted as a whole, with single or double quotes. There is no escaping. Options such as `-s` are not
//! allowed inside.

use crate::Refusal;

/// A command of a batch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchLine {
    /// The number of its last line in the file, from 1: the one tc names when it fails.
    pub number: usize,
    /// Its words; [`crate::tc::parse_line`] reads them.
    pub args: Vec<String>,
}

/// The commands of a batch file; empty lines are left out. A line with an open quote is a refusal in its
/// place, after which tc stops.
pub fn lines(text: &str) -> Vec<Result<BatchLine, Refusal>> {
    let mut commands = Vec::new();
    let mut joined = String::new();
    let mut all = text.lines().enumerate().peekable();
    while let Some((index, line)) = all.next() {
        let line = line.split('#').next().unwrap_or("");
        if let (Some(begun), Some(_)) = (line.strip_suffix('\\'), all.peek()) {
            joined.push_str(begun);
            continue;
        }
        joined.push_str(line);
        match words(&joined) {
            Some(args) if args.is_empty() => {}
            Some(args) => commands.push(Ok(BatchLine { number: index + 1, args })),
            None => {
                let refusal = Refusal::new(1, "Unterminated quoted string");
                commands.push(Err(
                    refusal.remedy(format!("Line {} opens a quote and does not close it.", index + 1))
                ));
                break;
            }
        }
        joined.clear();
    }
    commands
}

/// What tc adds on stderr when a command of a batch fails; its exit code is then 1.
pub fn failed(file: &str, line: usize) -> String {
    format!("Command failed {file}:{line}\n")
}

/// Does this refusal end tc at once, with its own code and without naming the line, even with `-force`?
pub fn ends_all(refusal: &Refusal) -> bool {
    ["Error: argument ", "Error: duplicate ", "Command line is not complete", "Unterminated", "qdisc '"]
        .iter()
        .any(|begin| refusal.stderr.starts_with(begin))
}

/// Splits at blanks; a word that begins with a quote ends at the next one of its kind.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => rest[1..].split_once(first)?,
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_string());
        rest = after.trim_start();
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_tc_splits_them() {
        let text = "# head\nqdisc add dev 'a b' # tail\n\nclass add \\\n  dev lo\\\n# joined by \
        nothing\nfoo l\"o\"#x\nqdisc \"open\n";
        let table: Vec<_> = lines(text)
            .into_iter()
            .map(|line| line.map(|line| (line.number, line.args.join("|"))).map_err(|_| ()))
            .collect();
        let wanted = [
            Ok((2, "qdisc|add|dev|a b".to_string())),
            Ok((6, "class|add|dev|lo".to_string())),
            Ok((7, "foo|l\"o\"".to_string())),
            Err(()),
        ];
        assert_eq!(table, wanted);
    }

    #[test]
    fn words_that_tc_dies_of() {
        let table = [
            Refusal::wrong("10000:", "invalid qdisc ID"),
            Refusal::incomplete(),
            Refusal::new(1, "What is \"x\"?"),
        ];
        assert_eq!(table.map(|refusal| ends_all(&refusal)), [true, true, false]);
    }
}
