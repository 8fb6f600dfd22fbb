//! `tidegate top`, `metrics`, `capture`, `tc`: what devices do whose policy is at work, by asking whoever runs it.

pub mod capture;
pub mod metrics;
pub(crate) mod source;
pub mod tc;
pub mod top;

use std::process::ExitCode;

/// Says what went wrong, as `tidegate NAME`.
fn failed(name: &str, error: &anyhow::Error) -> ExitCode {
    eprintln!("tidegate {name}: {error:#}");
    ExitCode::from(2)
}

/// Is this whoever reads having had enough? That is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
