//! The commands of a bundle, run: each is a process of this program, in the directory of the bundle.

use super::commands::{BundleCommand, quoted};
use crate::error::{Context, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use tidegate_sys::process::die_with_parent;

/// How commands are run.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRun<'r> {
    /// The program's file: absolute, since it is started elsewhere.
    pub path: &'r Path,
    /// How many runs at once; `None`: one for each processor. Results do not depend on it.
    pub jobs: Option<u16>,
    /// Show no progress.
    pub quiet: bool,
}

/// How work that commands do came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It is done.
    Done(T),
    /// A command ended otherwise; it said why on standard error.
    Ended {
        /// The command.
        command: String,
        /// Its exit code; `None`: a signal ended it.
        code: Option<i32>,
    },
}

/// Runs a command; the exit code is that of one that ended well.
pub(super) fn run(how: &ProgramRun<'_>, dir: &Path, command: &BundleCommand) -> Result<Outcome<u8>> {
    let line =
        format!("tidegate {}", command.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    let mut process = Command::new(how.path);
    if how.quiet {
        process.arg("--quiet");
    }
    process.args(&command.words);
    let verb = command.words.first().map_or("", String::as_str);
    if let (Some(jobs), "sweep") = (how.jobs, verb) {
        process.args(["--jobs", &jobs.to_string()]);
    }
    process.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
    let status = die_with_parent(&mut process).status().context(format!("starting {line}"))?;
    Ok(match (status.code(), verb) {
        (Some(0), _) => Outcome::Done(0),
        // An assertion of the scenario fails, which is a result.
        (Some(1), "sim") => Outcome::Done(1),
        (code, _) => Outcome::Ended { command: line, code },
    })
}
