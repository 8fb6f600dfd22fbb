#![forbid(unsafe_code)]
//! A traffic-control policy onto this computer's devices, and away again.
//!
//! ```text
//! files ─▶ loader ─▶ Wanted ─┬─▶ kernel::lacks? ─▶ user: a daemon (tidegate-daemon)
//!                            └─▶ kernel::Arm: what is there is noted ─▶ plan ─▶ guardian ─▶ State with a job ─▶ go ─▶ look ─▶ State
//!                                                                                  └─▶ undoes what did not end, reverts what is not confirmed
//! ```
//!
//! [`read()`] reads a policy, [`apply()`] applies it, [`confirm()`] keeps it, [`revert()`] and [`down`]
//! undo it, [`status::healths`] reports its state, [`SnapshotSource`] reads its counters. Messages for people
//! come as [`Notice`]s; nothing is printed here.
//!
//! The process that uses this must be able to play the guardian and the daemon: [`apply()`] starts the
//! running executable as `revert NAME --guard`, which is to call [`guard()`], and as `daemon …`, which is to
//! call `tidegate_daemon::run`.

mod apply;
mod before;
mod confirm;
mod guard;
mod guardian;
mod job;
mod kept;
mod kernel;
mod notice;
mod options;
mod queues;
mod record;
mod revert;
mod source;
mod state;
pub mod status;
pub mod time;
mod undone;
mod user;
mod wanted;

pub use apply::{apply, put_in_order, waiting};
pub use confirm::confirm;
pub use guard::guard;
pub use kept::all as kept;
pub use notice::{Notice, NoticeHandler};
pub use options::{ApplyOptions, BackendChoice};
pub use queues::read;
pub use record::strings;
pub use revert::{Down, down, revert};
pub use source::{SnapshotSource, daemon_with, daemons, sources};
pub use tidegate_daemon::{Error, ErrorKind, Result};
pub use wanted::Wanted;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The policies of this network namespace that were undone automatically, by name, each as its document
/// (`at`, `why`, `policy`, `devices`).
///
/// # Errors
/// There is no `/proc`.
pub fn undone() -> Result<Vec<(String, serde_json::Value)>> {
    Ok(undone::all(&tidegate_daemon::RuntimeDir::here()?))
}
