//! The words of nft's language, each with its place.

/// A stretch of the text: a line from 1, and columns from 1, the last included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The line, from 1.
    pub line: usize,
    /// The first column.
    pub from: usize,
    /// The last one.
    pub to: usize,
}

impl Span {
    /// From the beginning of this to the end of another; where that is in a later line, only this one's.
    pub(super) fn up_to(self, other: Span) -> Span {
        if other.line == self.line && other.to >= self.from { Span { to: other.to, ..self } } else { self }
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word: a keyword, a name, a number, an address.
    Word,
    /// A word in quotes, without them.
    Quoted,
    /// An operator or another sign.
    Sign,
    /// The end of a line, or a semicolon.
    End,
    /// The end of the text.
    Eof,
}

/// A word of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) span: Span,
}

/// Signs of two letters; all others are of one.
const PAIRS: [&str; 6] = ["==", "!=", "<=", ">=", "<<", ">>"];

/// Letters of which words are made: of names, of numbers, of addresses with their prefixes, of ranges.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_.:/*-".contains(letter)
}

/// The tokens of a text.
///
/// # Errors
/// Where a quote is opened and not closed.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Span> {
    let mut tokens = Vec::new();
    let mut last = Span { line: 1, from: 1, to: 1 };
    for (index, line) in text.lines().enumerate() {
        let letters: Vec<char> = line.chars().collect();
        let joined = of_line(&letters, index + 1, &mut tokens)?;
        last = Span { line: index + 1, from: letters.len() + 1, to: letters.len() + 1 };
        if !joined {
            tokens.push(Token { kind: Kind::End, text: "newline".into(), span: last });
        }
    }
    let span = if tokens.is_empty() { last } else { Span { line: last.line + 1, from: 1, to: 1 } };
    tokens.push(Token { kind: Kind::Eof, text: "end of file".into(), span });
    Ok(tokens)
}

/// Adds a line's tokens; true: a backslash joins it with the next.
fn of_line(letters: &[char], line: usize, tokens: &mut Vec<Token>) -> Result<bool, Span> {
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let rest = &letters[at..];
        let (kind, length) = match letter {
            '#' => break,
            '\\' if rest[1..].iter().all(|after| after.is_whitespace()) => return Ok(true),
            blank if blank.is_whitespace() => {
                at += 1;
                continue;
            }
            '"' => match rest[1..].iter().position(|end| *end == '"') {
                Some(end) => (Kind::Quoted, end + 2),
                None => return Err(Span { line, from: at + 1, to: letters.len() }),
            },
            ';' => (Kind::End, 1),
            first if is_word(first) => {
                (Kind::Word, rest.iter().position(|after| !is_word(*after)).unwrap_or(rest.len()))
            }
            _ => {
                let pair: String = rest.iter().take(2).collect();
                (Kind::Sign, if PAIRS.contains(&pair.as_str()) { 2 } else { 1 })
            }
        };
        let mut text: String = rest[..length].iter().collect();
        if kind == Kind::Quoted {
            text = text.trim_matches('"').to_owned();
        }
        tokens.push(Token { kind, text, span: Span { line, from: at + 1, to: at + length } });
        at += length;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_signs_and_ends() {
        let text = "add rule t c tcp dport != { 22, 80-90 } # tail\n  comment \"a b\"; x \\\n y\n";
        let lines: Vec<String> = tokens(text)
            .expect("quotes are closed")
            .iter()
            .map(|token| format!("{}:{}-{} {}", token.span.line, token.span.from, token.span.to, token.text))
            .collect();
        let wanted = "1:1-3 add|1:5-8 rule|1:10-10 t|1:12-12 c|1:14-16 tcp|1:18-22 dport|1:24-25 !=|1:27-27 \
        {|1:29-30 22|1:31-31 ,|\
                      1:33-37 80-90|1:39-39 \
                      }|1:47-47 newline|2:3-9 comment|2:11-15 a b|2:16-16 ;|2:18-18 x|3:2-2 y|3:3-3 newline|4:1-1 end of file";
        assert_eq!(lines.join("|"), wanted);
        assert_eq!(tokens("x \"y"), Err(Span { line: 1, from: 3, to: 4 }));
    }
}
