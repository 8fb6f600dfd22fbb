#![forbid(unsafe_code)]
//! Captures a script: runs it unmodified in a sandbox where `tc`, `iptables`, `ip` and the like are ourselves.
//!
//! ```text
//! run_script ──▶ sandbox ──────▶ sh modem.sh ──▶ /sbin/tc qdisc add … (this executable: `shim`)
//!     ▲                                                  │ request: tool, words, input, directory
//!     └──────── Answer::answer(&Call) ◀── one at a time ─┘ reply: output, errors, code
//! ```
//! The parent answers in the order the calls come, so its model of the machine is always what the script believes.
//! [`Shell`] does the same for single lines, one after the other in one sandbox, for replays.
//!
//! ```no_run
//! use tidegate_capture::{CaptureOptions, run_script};
//! use tidegate_shims::{Call, Reply};
//!
//! // Every tool is told that all went well; what was called is printed.
//! let mut answer = |call: &Call| {
//!     println!("{} {}", call.tool, call.args.join(" "));
//!     Reply::ok()
//! };
//! let outcome = run_script("modem.sh".as_ref(), &[], &CaptureOptions::default(), &mut answer).unwrap();
//! assert!(outcome.success());
//! ```
//!
//! *Invariants.* The host's file system, links and processes stay as they are. Nothing of a run outlives it. A
//! script cannot make us wait longer than the time limit, nor keep more than the bounds stated in [`CaptureOptions`].

mod echo;
mod effect;
mod error;
mod given;
mod lines;
mod run;
mod sandbox;
mod scan;
mod serve;
mod shell;
mod shim;
pub mod troubles;
mod wire;
mod words;

use std::path::PathBuf;
use std::time::Duration;
use tidegate_shims::Call;

pub use echo::Print;
pub use error::{CaptureError, Trouble};
pub use lines::{CallFrame, SourceLine, SourceWord};
pub use run::{devices_of, run_in_turn, run_script};
pub use sandbox::available;
pub use shell::Shell;
pub use shim::dispatch;
pub use tidegate_shims::TOOLS;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What becomes of what the script prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Kept in [`Outcome::stdout`] and [`Outcome::stderr`].
    #[default]
    Collect,
    /// Kept, and printed by us as it comes, both streams to our standard error.
    ToErrors,
    /// Kept, and printed by us as it comes, each stream where it belongs.
    PassThrough,
}

/// How to capture.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// How long each run may take, whatever it does.
    pub timeout: Duration,
    /// What becomes of its output.
    pub output: Output,
    /// What prints what is passed on.
    pub print: Print,
    /// Devices that exist inside beside those its text names.
    pub devices: Vec<String>,
    /// The executable that plays the tools; `None`: ourselves. It must call [`dispatch`] first thing in `main`.
    pub executable: Option<PathBuf>,
    /// The directory it runs in; `None`: the current one.
    pub cwd: Option<PathBuf>,
    /// Do without overlays, as on kernels that have none: the host's files are then read-only inside.
    pub no_overlay: bool,
    /// Make no network links, as where the kernel has no kind of them without loading a module.
    pub no_links: bool,
    /// Hide home directories and the environment.
    pub private: bool,
    /// The most processes at once; with more the run is ended.
    pub max_processes: usize,
    /// The most calls that are answered; further ones fail.
    pub max_calls: usize,
    /// The most bytes kept of each of its two output streams; the rest is read and forgotten.
    pub max_output: usize,
}

/// How long a run may take unless somebody says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            timeout: DEFAULT_TIMEOUT,
            output: Output::Collect,
            print: echo::to_streams,
            devices: Vec::new(),
            executable: None,
            cwd: None,
            no_overlay: false,
            no_links: false,
            private: false,
            max_processes: 1000,
            max_calls: 100_000,
            max_output: 4 << 20,
        }
    }
}

/// A call with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The call.
    pub call: Call,
    /// The code it was answered.
    pub code: u8,
    /// The errors it was answered.
    pub stderr: String,
    /// The caller threw its errors away (`2>/dev/null`).
    pub silenced: bool,
    /// The line that issued it, if it was found.
    pub source: Option<SourceLine>,
    /// The words of that file that gave the arguments, as far as they were found: one for each argument, or none at all.
    pub words: Vec<Option<SourceWord>>,
    /// The model was asked; otherwise the call could not be read, or there were too many.
    pub answered: bool,
}

impl Recorded {
    /// Did the call ask for something to go that was not there? Scripts that first undo what an earlier run left do so.
    #[must_use]
    pub fn deletes_nothing(&self) -> bool {
        self.call.deletes_nothing(&self.stderr)
    }

    /// Does the script's author count on it that this may fail?
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.silenced
            // What the kernel has it need not load again.
            || self.call.tool == "insmod" && self.stderr.contains("File exists")
            // `tc qdisc add sfq help` tells what it is asked, and fails.
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
        /// The limit.
        after: Duration,
        /// What was running then, the innermost last, each with its words joined.
        running: Vec<String>,
        /// Those of them that a signal had stopped.
        stopped: Vec<String>,
    },
    /// By us, because it started too many processes.
    Crowded {
        /// The limit.
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
    /// Did the script itself come to an end, well or not?
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Code(_) | Self::Signal(_))
    }
}

/// What a run showed.
#[derive(Debug)]
pub struct Outcome {
    /// How the script ended.
    pub exit: Exit,
    /// Its calls, in order.
    pub calls: Vec<Recorded>,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained.
    pub stderr: Vec<u8>,
    /// The devices that existed inside.
    pub devices: Vec<String>,
    /// What the sandbox could not provide.
    pub notes: Vec<String>,
    /// What went wrong, each with its place: failed calls nobody expected to fail, missing tools, how it ended.
    pub troubles: Vec<Trouble>,
    /// What processes that were still running when the script ended mean for what is known of it, in a sentence.
    pub unfinished: Option<String>,
    /// The arguments that the script asks for and was not given, in a sentence, where a call of it failed.
    pub missing_arguments: Option<String>,
}

impl Outcome {
    /// True when the script ended with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }
}

/// Reads what came over the socket as a request, and as a reply, for the fuzzer.
#[doc(hidden)]
pub fn fuzz_wire(bytes: &[u8]) {
    if let Ok(request) = wire::read_request(&mut &bytes[..]) {
        // What was read is written and read again as the same.
        let mut written = Vec::new();
        wire::write_request(&mut written, &request).expect("a vector takes everything");
        let again = wire::read_request(&mut &written[..]).expect("it was written just now");
        assert_eq!(again, request);
    }
    let _ = wire::read_reply(&mut &bytes[..]);
}
