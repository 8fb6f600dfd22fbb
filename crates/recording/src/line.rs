//! Lines of shell that need no shell: tools with their words, quotes, `;`, `$?`, output into one file.

/// Where the output of a command goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redirects {
    /// Standard output goes into the file, and whether the file is emptied before.
    pub out: Option<bool>,
    /// Standard error goes where standard output does.
    pub errors: bool,
}

/// A command: its words, and where its output goes.
pub type Plain = (Vec<String>, Redirects);

/// A letter, and the quote that it is in.
pub type Letter = (char, Option<char>);

/// A line in pieces: what is between `;`, without comments. The end of a quote is a NUL in it, which
/// makes a word even of nothing. `None`: a quote is not closed.
pub fn pieces(line: &str) -> Option<Vec<Vec<Letter>>> {
    let (mut all, mut piece, mut open) = (Vec::new(), Vec::<Letter>::new(), None);
    for letter in line.chars() {
        match open {
            Some(quote) if letter == quote => {
                piece.push(('\0', open));
                open = None;
            }
            None if letter == '\'' || letter == '"' => open = Some(letter),
            None if letter == ';' => all.push(std::mem::take(&mut piece)),
            None if letter == '#' && piece.last().is_none_or(|(before, _)| before.is_whitespace()) => break,
            _ => piece.push((letter, open)),
        }
    }
    all.push(piece);
    open.is_none().then_some(all)
}

/// The words of a piece and where its output goes; an empty piece is nothing. `None`: it needs a shell.
pub fn plain(piece: &[Letter], code: u8) -> Option<Option<Plain>> {
    // Each with whether it has a quoted part: that is no redirection.
    let mut words: Vec<(String, bool)> = Vec::new();
    let (mut inside, mut letters) = (false, piece.iter().copied());
    while let Some((letter, quote)) = letters.next() {
        if quote.is_none() && letter.is_whitespace() {
            inside = false;
            continue;
        }
        if !std::mem::replace(&mut inside, true) {
            words.push((String::new(), false));
        }
        let (word, quoted) = words.last_mut()?;
        *quoted |= quote.is_some();
        match (letter, quote) {
            ('$', None | Some('"')) if letters.next()?.0 == '?' => word.push_str(&code.to_string()),
            ('$' | '`' | '\\', None | Some('"')) | ('|' | '(' | ')' | '{' | '}' | '*' | '<' | '~', None) => {
                return None;
            }
            ('\0', Some(_)) => {}
            _ => word.push(letter),
        }
    }
    let Some((first, _)) = words.first() else { return Some(None) };
    if first.contains('=') {
        return None;
    }
    directed(words).map(Some)
}

/// Takes the redirections out of a command. `None`: there is one that is not known here.
fn directed(words: Vec<(String, bool)>) -> Option<Plain> {
    let (mut kept, mut to) = (Vec::new(), Redirects::default());
    let mut words = words.into_iter();
    while let Some((word, quoted)) = words.next() {
        if quoted || !word.contains(['>', '&']) {
            kept.push(word);
        } else if word == "2>&1" {
            to.errors = true;
        } else {
            let empties = !word.starts_with(">>");
            let file = match word.trim_start_matches('>') {
                "" => words.next()?.0,
                file if word.starts_with('>') && !file.contains('&') => file.to_owned(),
                _ => return None,
            };
            to.out = Some(empties).filter(|_| file != "/dev/null");
        }
    }
    Some((kept, to))
}
