//! The commands of a policy, and their places in the files that were read.

use std::ops::Range;

/// A place in a file that was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file: a number in [`crate::PolicyModel::sources`].
    pub file: usize,
    /// The line, from 1.
    pub line: usize,
    /// The columns in question, in characters from 0; empty: the line as a whole.
    pub columns: (usize, usize),
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it came to.
    pub text: String,
    /// The word's place, if it is known.
    pub place: Option<SourceLocation>,
    /// It is literal in the file; otherwise it comes from a variable or a substitution.
    pub literal: bool,
}

impl Word {
    /// A word whose place in a file is not known.
    pub fn unplaced(text: String) -> Word {
        Word { text, place: None, literal: false }
    }
}

/// A command inside a function, which passed on what the function was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function that contains it.
    pub function: String,
    /// The place of its line.
    pub place: SourceLocation,
}

/// One command of a policy, in the order in which they were carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The tool: `tc`, `iptables`.
    pub tool: String,
    /// The arguments, with their places.
    pub words: Vec<Word>,
    /// The place of its line, if that is known: of the one that says which it is, where functions pass
    /// on what they are given.
    pub place: Option<SourceLocation>,
    /// What it came to: operations, by their number in [`crate::PolicyModel::ops`].
    pub ops: Range<usize>,
    /// What the tool complained, where it refused.
    pub refused: Option<String>,
    /// Which of its words is at fault where the tool refused, if that is known.
    pub at_fault: Option<usize>,
    /// The author counts on it that it may fail (`2>/dev/null`, `|| true`).
    pub may_fail: bool,
    /// A batch ended before it: it was not carried out.
    pub is_skipped: bool,
    /// The commands between that line and the tool, the tool's own last, where functions pass on what they
    /// are given.
    pub frames: Vec<Frame>,
    /// Where that line is in a function: the call that led to it, if it is known.
    pub called_from: Option<SourceLocation>,
}

impl Step {
    /// The word after a keyword.
    pub fn after(&self, keyword: &str) -> Option<&Word> {
        self.words.get(self.words.iter().position(|word| word.text == keyword)? + 1)
    }

    /// The keyword itself and the word after it.
    pub fn option(&self, keyword: &str) -> Option<[&Word; 2]> {
        let at = self.words.iter().position(|word| word.text == keyword)?;
        Some([self.words.get(at)?, self.words.get(at + 1)?])
    }

    /// The command as one line.
    pub fn text(&self) -> String {
        let words = self.words.iter().map(|word| word.text.as_str());
        std::iter::once(self.tool.as_str()).chain(words).collect::<Vec<_>>().join(" ")
    }
}
