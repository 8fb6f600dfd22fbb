//! `tidegate apply`, `status`, `confirm`, `revert` and `down`: a policy onto this computer's devices, and away again.
//!
//! ```text
//! files ─▶ intake ─▶ Wanted ─┬─▶ kernel::lacks? ─▶ user: a daemon of ours
//!                            └─▶ kernel::Arm: what stands is noted ─▶ plan ─▶ State ─▶ go ─▶ look ─▶ (undo)
//!                                                                       └─▶ guard: reverts unless confirmed
//! ```

mod apply;
pub(crate) mod control;
mod diff;
mod guard;
mod kernel;
mod options;
mod revert;
mod state;
mod status;
mod user;
mod wanted;

pub use options::{Apply, Backend, Revert, Which};

use std::process::ExitCode;

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
    ended("status", status::command(which))
}

/// Plays `tidegate confirm`.
pub fn confirm(which: &Which) -> ExitCode {
    ended("confirm", guard::confirm(which))
}

/// Plays `tidegate revert`.
pub fn revert(options: &Revert) -> ExitCode {
    let done = match &options.unless_confirmed {
        Some(words) => guard::watch(options, words),
        None => revert::revert(options.dev.as_deref(), options.json),
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
