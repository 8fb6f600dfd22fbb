//! The variables of a configuration that a shell reads, as bash does FireQOS's: what gives them values, and
//! their values in the words of the other commands. Nothing is run: what only a command tells is said and
//! left open.

use super::problem::Problem;
use crate::nft::Span;
use std::collections::BTreeMap;

/// Bytes that a word may come to: a variable's value may have others in it, over and over.
const LONGEST: usize = 4096;
/// Bytes that all variables of a file may come to where they are used, and the most problems reported.
const MOST_BYTES: usize = 1 << 20;
const MOST_PROBLEMS: usize = 32;
/// Words before an assignment.
const SETTERS: [&str; 5] = ["export", "declare", "readonly", "typeset", "local"];

/// What is known of the variables, and what is not.
#[derive(Default)]
pub(super) struct Variables {
    /// `None`: what it is is not known, which has been said.
    values: BTreeMap<String, Option<String>>,
    /// Bytes that values came to so far.
    expanded: usize,
    problems: Vec<Problem>,
}

/// Words that one word came to, the last of them still open.
#[derive(Default)]
struct Expanded {
    words: Vec<String>,
    open: Option<String>,
}

impl Variables {
    /// Reads a command: its words with the variables' values in their places. None are left of one that only
    /// gives variables values, or has one that is not known.
    pub(super) fn carry_out(&mut self, command: &[(&str, Span)]) -> Vec<(String, Span)> {
        let setters = command.iter().take_while(|(word, _)| SETTERS.contains(word)).count();
        let mut rest = &command[setters..];
        while let Some((name, length)) = assignment(rest) {
            let (words, others) = rest.split_at(length);
            rest = others;
            let text = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ");
            let value = self.expand(&text[name.len() + 1..], words[0].1);
            self.values.insert(name.to_owned(), value.map(|words| words.join(" ")));
        }
        let mut out = Vec::new();
        let mut at = 0;
        while at < rest.len() {
            let length = quoted(&rest[at..]);
            let (words, span) = (&rest[at..at + length], rest[at].1);
            at += length;
            let text = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ");
            let Some(words) = self.expand(&text, span) else { return Vec::new() };
            out.extend(words.into_iter().map(|word| (word, span)));
        }
        out
    }

    /// What could not be known, each once, with its place.
    pub(super) fn problems(self) -> Vec<Problem> {
        self.problems
    }

    /// What a word comes to; `None`: it is not known.
    fn expand(&mut self, text: &str, span: Span) -> Option<Vec<String>> {
        let mut out = Expanded::default();
        let mut rest = text;
        let mut quote = None;
        while let Some(letter) = rest.chars().next() {
            match (letter, quote) {
                ('\'' | '"', None) => {
                    quote = Some(letter);
                    out.push("");
                }
                (_, Some(open)) if letter == open => quote = None,
                ('`', None | Some('"')) => return self.unknown(text, span),
                ('$', None | Some('"')) => {
                    let (value, length) = self.value(&rest[1..], text, span)?;
                    match quote {
                        Some(_) => out.push(&value),
                        None => out.split(&value),
                    }
                    rest = &rest[1 + length..];
                    continue;
                }
                _ => out.push(letter.encode_utf8(&mut [0; 4])),
            }
            rest = &rest[letter.len_utf8()..];
        }
        let words = out.close();
        if words.iter().map(String::len).sum::<usize>() > LONGEST {
            let what = format!("\"{text}\" comes to more than {LONGEST} bytes");
            return self.wrong(span, what, "write what is meant");
        }
        Some(words)
    }

    /// The value that `rest`, behind a `$`, begins with, and how much of it that takes.
    fn value(&mut self, rest: &str, text: &str, span: Span) -> Option<(String, usize)> {
        let (inside, length) = match rest.strip_prefix('{') {
            Some(braced) => {
                let end = braced.find('}')?;
                (&braced[..end], end + 2)
            }
            None => {
                let end = rest.find(|letter: char| !is_of_name(letter)).unwrap_or(rest.len());
                (&rest[..end], end)
            }
        };
        let name = &inside[..inside.find(|letter: char| !is_of_name(letter)).unwrap_or(inside.len())];
        let instead = inside[name.len()..].trim_start_matches(':').strip_prefix('-');
        let is_plain = name.len() == inside.len() || instead.is_some_and(|text| !text.contains('$'));
        if !is_name(name) || !is_plain {
            return self.unknown(text, span);
        }
        match (self.values.get(name), instead) {
            (Some(Some(value)), _) => {
                self.expanded = self.expanded.saturating_add(value.len());
                if self.expanded > MOST_BYTES {
                    let what = format!("the variables of this file come to more than {MOST_BYTES} bytes");
                    return self.wrong(span, what, "write fewer of them, or shorter ones");
                }
                Some((value.clone(), length))
            }
            (Some(None), _) => None,
            (None, Some(instead)) => Some((instead.to_owned(), length)),
            (None, None) => {
                let what = format!("nothing in this file gives ${name} a value");
                self.values.insert(name.to_owned(), None);
                self.wrong(span, what, "write its value in its place")
            }
        }
    }

    fn unknown<T>(&mut self, text: &str, span: Span) -> Option<T> {
        let what = format!("what \"{text}\" comes to is not known without running it");
        self.wrong(span, what, "write the value in its place")
    }

    /// Notes a problem, once a cause and at most so many.
    fn wrong<T>(&mut self, span: Span, what: String, remedy: &str) -> Option<T> {
        let is_new = self.problems.len() < MOST_PROBLEMS && self.problems.iter().all(|one| one.what != what);
        if is_new {
            self.problems.push(Problem::new(span, what, remedy));
        }
        None
    }
}

impl Expanded {
    fn push(&mut self, text: &str) {
        self.open.get_or_insert_default().push_str(text);
    }

    /// A value outside quotes: its blanks end words.
    fn split(&mut self, value: &str) {
        for (at, word) in value.split(char::is_whitespace).enumerate() {
            if at > 0 {
                self.words.extend(self.open.take());
            }
            if !word.is_empty() {
                self.push(word);
            }
        }
    }

    fn close(mut self) -> Vec<String> {
        self.words.extend(self.open.take());
        self.words
    }
}

/// The variable that a command's first words give a value, and how many of them do.
fn assignment<'t>(words: &[(&'t str, Span)]) -> Option<(&'t str, usize)> {
    let (name, _) = words.first()?.0.split_once('=')?;
    is_name(name).then(|| (name, quoted(words)))
}

/// How many words belong to the first: a quote or a `$(` that it opens may end in a later one.
fn quoted(words: &[(&str, Span)]) -> usize {
    let mut quote = None;
    let mut depth = 0_usize;
    for (at, (word, _)) in words.iter().enumerate() {
        for letter in word.chars() {
            match (letter, quote) {
                ('\'' | '"' | '`', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                ('(', None | Some('"')) => depth += 1,
                (')', None | Some('"')) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if quote.is_none() && depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let mut variables = Variables::default();
        let mut out = Vec::new();
        for line in text.lines() {
            let words: Vec<(&str, Span)> =
                line.split_whitespace().map(|word| (word, Span::default())).collect();
            let words = variables.carry_out(&words);
            if !words.is_empty() {
                out.push(words.into_iter().map(|(word, _)| word).collect::<Vec<_>>().join("|"));
            }
        }
        (out, variables.problems().into_iter().map(|problem| problem.what).collect())
    }

    #[test]
    fn values_take_the_places_of_their_variables() {
        let (lines, problems) = read(
            "UP=900kbit DOWN='9 mbit'\nexport BOTH=\"$UP ${DOWN}\"\na $UP ${UP}x \"$BOTH\" $BOTH '$UP'\n\
             EMPTY=\nb $EMPTY \"$EMPTY\" ${NONE:-5} ${UP:-5}",
        );
        assert_eq!(lines, ["a|900kbit|900kbitx|900kbit 9 mbit|900kbit|9|mbit|$UP", "b||5|900kbit"]);
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn what_is_not_known_is_said_once() {
        let (lines, problems) =
            read("A=$(ip route)\na $A\na $A\nb $B\nb $B\nC=`x`\nc ${C}\nd ${B%x}\nD=$A\nd $D\ne f");
        assert_eq!(lines, ["e|f"]);
        assert_eq!(
            problems,
            [
                "what \"$(ip route)\" comes to is not known without running it",
                "nothing in this file gives $B a value",
                "what \"`x`\" comes to is not known without running it",
                "what \"${B%x}\" comes to is not known without running it",
            ]
        );
    }

    #[test]
    fn values_do_not_grow_without_a_bound() {
        let used = format!("A={}\n{}", "x".repeat(4000), "a $A $A $A $A\n".repeat(1000));
        let (lines, problems) = read(&used);
        assert!(lines.iter().map(String::len).sum::<usize>() <= MOST_BYTES);
        assert_eq!(problems, ["the variables of this file come to more than 1048576 bytes"]);
        let unknown: String = (0..100).map(|number| format!("a $(b {number})\n")).collect();
        assert_eq!(read(&unknown).1.len(), MOST_PROBLEMS);
        let text = format!("A=xxxxxxxxxx\n{}a $A", "A=$A$A\n".repeat(60));
        let (lines, problems) = read(&text);
        assert_eq!(lines, [""; 0]);
        assert_eq!(problems, ["\"$A$A\" comes to more than 4096 bytes"]);
    }
}
