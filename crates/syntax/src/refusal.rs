//! A command that is not carried out.

use std::fmt;

/// A refusal: the tool's own words first, because scripts look for them, then our explanation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// What the real tool prints on stderr, lines ended by `\n`. Usage texts are our own.
    pub stderr: String,
    /// The exit code: 1 for an option's value, 2 for what the kernel refuses, 255 for the command line.
    pub code: u8,
    /// The tool ends at once with this code, whatever the code of the command that it was reading.
    pub at_once: bool,
    /// Which argument is at fault, counted from 0 in the slice given to the parser.
    pub word: Option<usize>,
    /// What to write instead, in a sentence.
    pub remedy: Option<String>,
}

impl Refusal {
    /// A refusal with one line of the tool's words (without the end of line).
    pub fn new(code: u8, line: impl Into<String>) -> Refusal {
        let mut stderr = line.into();
        stderr.push('\n');
        Refusal { stderr, code, at_once: false, word: None, remedy: None }
    }

    /// It ends the tool at once.
    #[must_use]
    pub fn at_once(mut self) -> Refusal {
        self.at_once = true;
        self
    }

    /// Blames an argument.
    pub fn at(mut self, word: usize) -> Refusal {
        self.word = Some(word);
        self
    }

    /// Says what to write instead.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Refusal {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds text (a usage, a second line) to what is printed.
    pub fn then(mut self, text: &str) -> Refusal {
        self.stderr.push_str(text);
        if !text.is_empty() && !text.ends_with('\n') {
            self.stderr.push('\n');
        }
        self
    }

    /// The command line ends too early.
    pub fn incomplete() -> Refusal {
        Refusal::new(255, "Command line is not complete. Try option \"help\"")
    }

    /// `Error: argument "WORD" is wrong: WHY`.
    pub fn wrong(word: &str, why: &str) -> Refusal {
        Refusal::new(255, format!("Error: argument \"{word}\" is wrong: {why}"))
    }

    /// `Error: duplicate "WHAT": "WORD" is the second value.`
    pub fn duplicate(what: &str, word: &str) -> Refusal {
        Refusal::new(255, format!("Error: duplicate \"{what}\": \"{word}\" is the second value."))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stderr.trim_end())?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n{remedy}"),
            None => Ok(()),
        }
    }
}
impl std::error::Error for Refusal {}
