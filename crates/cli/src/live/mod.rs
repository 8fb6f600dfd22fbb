//! `tidegate apply`, `status`, `confirm`, `revert` and `down`: a policy onto this computer's devices, and away again.
//!
//! ```text
//! files ─▶ loader ─▶ Wanted ─┬─▶ kernel::lacks? ─▶ user: a daemon of ours
//!                            └─▶ kernel::Arm: what stands is noted ─▶ plan ─▶ guardian ─▶ State with a job ─▶ go ─▶ look ─▶ State
//!                                                                                └─▶ undoes what did not end, reverts what is not confirmed
//! ```

mod apply;
mod guard;
mod job;
mod kept;
mod kernel;
mod options;
mod revert;
mod state;
pub(crate) mod status;
mod undone;
mod user;
mod wanted;

pub use options::{Apply, Backend, Revert, Which};

use std::process::ExitCode;

/// The exit codes of `tidegate status`, for its help.
pub const STATUS_CODES: &str = "\
Exit codes, of the worst policy: 0 installed; 1 tidegate applied nothing there; 2 wrong usage, or the state cannot be read; 3 waiting for confirmation; 4 in progress; \
5 drifted; 6 device gone; 7 daemon dead; 8 daemon not answering; 9 in trouble.";

/// Nothing was changed, or all of it was undone.
const UNDONE: u8 = 1;
/// The policy cannot be read.
const UNREAD: u8 = 2;

/// Plays `tidegate apply`.
pub fn apply(options: &Apply) -> ExitCode {
    apply::command(options)
}

/// Plays `tidegate status`.
pub fn status(which: &Which) -> ExitCode {
    status::command(which).unwrap_or_else(|error| {
        eprintln!("tidegate status: {error:#}");
        UNREAD.into()
    })
}

/// Plays `tidegate confirm`.
pub fn confirm(which: &Which) -> ExitCode {
    ended("confirm", guard::confirm(which))
}

/// Plays `tidegate revert`.
pub fn revert(options: &Revert) -> ExitCode {
    let done = match &options.dev {
        Some(name) if options.guard => guard::watch(name),
        dev => revert::revert(dev.as_deref(), options.json),
    };
    ended("revert", done)
}

/// Plays `tidegate down`.
pub fn down(which: &Which) -> ExitCode {
    ended("down", revert::down(which))
}

fn ended(command: &str, done: anyhow::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => UNDONE.into(),
        Err(error) => {
            eprintln!("tidegate {command}: {error:#}");
            UNDONE.into()
        }
    }
}
