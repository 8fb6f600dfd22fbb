//! `tidegate top`, `metrics`, `capture`, `tc`: the counters and packets of applied policies, read from the
//! daemon or the kernel.

pub mod capture;
mod keys;
pub mod metrics;
mod screen;
pub mod tc;
mod terminal;
pub mod top;

use crate::exit::CliExit;
use std::process::ExitCode;
use tidegate_analysis::watch::Snapshot;
use tidegate_apply::SnapshotSource;

/// Says what went wrong, as `tidegate NAME`.
fn failed(name: &str, error: &anyhow::Error) -> ExitCode {
    eprintln!("tidegate {name}: {error:#}");
    CliExit::of_device(error).into()
}

/// Whether the reader has closed the pipe. That is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let kind = kind.or_else(|| error.downcast_ref::<tidegate_daemon::Error>()?.io_kind());
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

/// What a source has counted by now.
///
/// # Errors
/// The source is gone, or sends no valid snapshot.
pub(crate) fn snapshot(source: &mut SnapshotSource) -> anyhow::Result<Snapshot> {
    Ok(Snapshot::read(&source.snapshot()?.to_string())?)
}
