//! The arguments, taken one after another.

use crate::Refusal;

/// A place in the arguments.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    args: &'a [String],
    at: usize,
    /// What tc prints on stderr while it reads them, before it continues.
    stderr: String,
}

impl<'a> Words<'a> {
    pub(crate) fn new(args: &'a [String]) -> Words<'a> {
        Words { args, at: 0, stderr: String::new() }
    }

    /// The word here, if there is one.
    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.args.get(self.at).map(String::as_str)
    }
    /// Takes the word here.
    pub(crate) fn take(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }
    /// Takes the word here, which must be there.
    pub(crate) fn need(&mut self) -> Result<&'a str, Refusal> {
        self.take().ok_or_else(|| Refusal::incomplete().at(self.at))
    }
    /// Goes over the word here.
    pub(crate) fn skip(&mut self) {
        self.at += 1;
    }
    /// Goes back to the word just taken.
    pub(crate) fn back(&mut self) {
        self.at = self.last();
    }
    /// Notes a line that tc prints on stderr before it continues.
    pub(crate) fn say(&mut self, line: &str) {
        self.stderr.push_str(line);
        self.stderr.push('\n');
    }
    /// The lines noted.
    pub(crate) fn take_stderr(&mut self) -> String {
        std::mem::take(&mut self.stderr)
    }
    /// Is there a word here, and is it this name or its beginning?
    pub(crate) fn begins(&self, name: &str) -> bool {
        self.peek().is_some_and(|word| begins(word, name))
    }
    /// The words from here on.
    pub(crate) fn rest(&self) -> &'a [String] {
        self.args.get(self.at..).unwrap_or(&[])
    }
    /// How many words are left.
    pub(crate) fn left(&self) -> usize {
        self.args.len().saturating_sub(self.at)
    }
    /// The place of the word here.
    pub(crate) fn place(&self) -> usize {
        self.at
    }
    /// The place of the word just taken.
    pub(crate) fn last(&self) -> usize {
        self.at.saturating_sub(1)
    }
}

/// Is `word` this name, or the beginning of it? (tc's abbreviations.)
pub(crate) fn begins(word: &str, name: &str) -> bool {
    !word.is_empty() && name.starts_with(word)
}
