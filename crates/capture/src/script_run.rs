//! What a run showed.

use super::error::Trouble;
use super::place::{SourceLine, SourceWord};
use super::stubs::StubbedCall;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_shims::Call;

/// A call with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The call itself.
    pub call: Call,
    /// The code it was answered.
    pub code: u8,
    /// The errors it was answered.
    pub stderr: String,
    /// The caller threw its errors away (`2>/dev/null`).
    pub silenced: bool,
    /// The line that issued it, if it was found.
    pub source: Option<SourceLine>,
    /// The words of that file that gave the arguments, as far as they were found: one for each argument, or
    /// none at all.
    pub words: Vec<Option<SourceWord>>,
    /// Which argument is at fault where the call failed, if that is known.
    pub at_fault: Option<usize>,
    /// The file outside that has what the call read (`tc -batch FILE`), as the user would name it.
    pub input: Option<PathBuf>,
    /// The model answered; otherwise the call could not be read, or there were too many.
    pub answered: bool,
}

impl Recorded {
    /// Did the call ask for something to go that was not there? Scripts that first undo what an earlier run
    /// left do so.
    #[must_use]
    pub fn deletes_nothing(&self) -> bool {
        self.call.deletes_nothing(&self.stderr)
    }

    /// Did the call make an ifb that `modprobe ifb` had made? Nothing is missing then.
    #[must_use]
    pub fn makes_loaded_ifb(&self) -> bool {
        self.call.makes_loaded_ifb(&self.stderr)
    }

    /// Does the script's author count on it that this may fail, or is nothing missing where it does?
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.silenced
            || self.call.asks()
            // What the kernel has it need not load again.
            || self.call.tool == "insmod" && self.stderr.contains("File exists")
            || self.makes_loaded_ifb()
            // `tc qdisc add sfq help` prints the help, and fails.
            || self.call.args.iter().any(|word| word == "help")
            || self.source.as_ref().is_some_and(|source| {
                let text: String = source.text.split_whitespace().collect();
                text.contains("||true") || text.contains("||:")
            })
    }
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
    /// By us, because its time was up.
    TimedOut {
        /// The limit that was exceeded.
        after: Duration,
        /// What was running then, the innermost last, each with its words joined.
        running: Vec<String>,
        /// Those of them that a signal had stopped.
        stopped: Vec<String>,
    },
    /// By us, because it started too many processes.
    Crowded {
        /// The limit that was exceeded.
        limit: usize,
    },
    /// By us, because its processes held too much memory together.
    Exhausted {
        /// The limit, bytes.
        limit: u64,
    },
    /// It could not be started or lost its sandbox.
    Lost(String),
}

impl Exit {
    /// Whether the script itself ended, successfully or not.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Code(_) | Self::Signal(_))
    }
}

/// What a run showed.
#[derive(Debug)]
pub struct ScriptRun {
    /// How the script ended.
    pub exit: Exit,
    /// Its calls, in order.
    pub calls: Vec<Recorded>,
    /// How many arguments it was given.
    pub arguments: usize,
    /// Its first line that asks a question: here standard input is empty.
    pub question: Option<SourceLine>,
    /// It ended badly, and its text calls tools behind the last line that did.
    pub cut_short: bool,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained.
    pub stderr: Vec<u8>,
    /// The devices that existed inside.
    pub devices: Vec<String>,
    /// What the sandbox could not provide.
    pub notes: Vec<String>,
    /// What went wrong, each with its place: unexpected failures of calls, missing tools, how it ended.
    pub troubles: Vec<Trouble>,
    /// What processes that were still running when the script ended mean for what is known of it, in a
    /// sentence.
    pub unfinished: Option<String>,
    /// The arguments that the script uses and was not given, in a sentence, where a call of it failed or
    /// a word means something else without them.
    pub missing_arguments: Option<String>,
    /// The files that programs of the script did not find, in a sentence.
    pub missing_files: Option<String>,
    /// That it asks a question whose answer is empty here, in a sentence, where it came to its end.
    pub unanswered: Option<String>,
    /// Its calls of programs that were not run, in order,
    pub stubbed: Vec<StubbedCall>,
    /// and which these are, in a sentence.
    pub not_run: Option<String>,
    /// In which of several network namespaces the calls were made, and what was configured in others, in a
    /// sentence.
    pub namespaces: Option<String>,
    /// That another shell than its own runs it here, in a sentence.
    pub stand_in: Option<String>,
    /// What the script's shell reads otherwise than its author may mean; no command failed because of it.
    pub remarks: Vec<Trouble>,
}

/// What to do about a question: `read` gives its variable a value, whatever it had.
pub(crate) const ANSWER: &str = "give it with --answer TEXT, once for each question in their order";

/// What a line that asks a question gets here, behind its number.
pub fn asks(line: &SourceLine) -> String {
    format!(
        "asks a question (`{}`), and here standard input is empty: {ANSWER}",
        tidegate_text::line(line.text.trim())
    )
}

impl ScriptRun {
    /// What is not in the result because of how the script was run, or of what is not here: a sentence each.
    pub fn caveats(&self) -> impl Iterator<Item = &String> {
        let of_run = [&self.unfinished, &self.missing_arguments, &self.missing_files, &self.unanswered];
        let all = of_run.into_iter().chain([&self.not_run, &self.stand_in, &self.namespaces]);
        all.flatten()
    }

    /// True when the script ended with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }
}
