//! How to capture.

use super::echo::{self, PrintFn};
use std::path::PathBuf;
use std::time::Duration;

/// What happens to the script's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Kept in [`crate::ScriptRun::stdout`] and [`crate::ScriptRun::stderr`].
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
    /// What happens to the script's output.
    pub output: Output,
    /// What prints what is passed on.
    pub print: PrintFn,
    /// Devices that exist inside beside those its text names.
    pub devices: Vec<String>,
    /// The executable that plays the tools; `None`: ourselves. It must call [`dispatch`](crate::dispatch)
    /// first thing in `main`.
    pub executable: Option<PathBuf>,
    /// The directory it runs in; `None`: the current one.
    pub cwd: Option<PathBuf>,
    /// Do without overlays, as on kernels that have none: the host's files are then read-only inside.
    pub no_overlay: bool,
    /// Make no network links, as where the kernel has no kind of them without loading a module.
    pub no_links: bool,
    /// Hide home directories and the environment.
    pub private: bool,
    /// The lines that the script reads from its standard input; without any that is empty. Of [`MAX_ANSWERS`]
    /// bytes at most.
    pub answers: Vec<String>,
    /// Programs that are not run beside those that make traffic: their calls succeed and print nothing. Names
    /// that [`check_stub`](crate::check_stub) refuses may hide what the sandbox needs.
    pub stubs: Vec<String>,
    /// The most processes at once; with more the run is ended.
    pub max_processes: usize,
    /// The most calls that are answered; further ones fail.
    pub max_calls: usize,
    /// The most bytes kept of each of its two output streams; the rest is read and forgotten.
    pub max_output: usize,
}

/// The most bytes of all answers, each with its line break: they are in a pipe before the script begins, and
/// Linux gives a user who has many pipes no more room in one.
pub const MAX_ANSWERS: usize = 4096;

/// The default limit on the duration of a run.
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
            answers: Vec::new(),
            stubs: Vec::new(),
            max_processes: 1000,
            max_calls: 100_000,
            max_output: 4 << 20,
        }
    }
}
