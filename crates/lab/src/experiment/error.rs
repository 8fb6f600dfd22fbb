//! Why a scenario could not be carried out with real hosts.

use crate::HostError;
use std::fmt;
use std::io;
use tidegate_netlink::KernelError;
use tidegate_scenario::run::Outside;

/// Why a scenario could not be carried out with real hosts. `{}` shows the outermost message,
/// [`std::error::Error::source`] leads to its causes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What the scenario requests cannot be had of real hosts, or of this machine; with the way out.
    Impossible(String),
    /// The machine that this kernel is to be does not take a part of the policy.
    Kernel {
        /// The machine's name.
        machine: String,
        /// The operation, in words.
        operation: String,
        /// The kernel's error.
        reason: KernelError,
    },
    /// A host, or the machine that the kernel is, could not be made.
    Host(HostError),
    /// A system call.
    Io(io::Error),
    /// The observer failed.
    Observer(Outside),
    /// Another failure, with what was being done.
    During {
        /// What was being done.
        doing: String,
        /// What failed.
        cause: Box<Error>,
    },
}

/// The result of an operation that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Impossible(words) => f.write_str(words),
            Error::Kernel { machine, operation, reason } => write!(
                f,
                "`{machine}` is this kernel, and it does not take {operation}: {reason}; use a kernel that \
                can, or the model (without --router kernel)"
            ),
            Error::Host(trouble) => trouble.fmt(f),
            Error::Io(error) => error.fmt(f),
            Error::Observer(error) => error.fmt(f),
            Error::During { doing, .. } => f.write_str(doing),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Impossible(_) | Error::Kernel { .. } => None,
            // These errors name their own context.
            Error::Host(trouble) => trouble.source(),
            Error::Io(error) => error.source(),
            Error::Observer(error) => error.source(),
            Error::During { cause, .. } => Some(cause.as_ref()),
        }
    }
}

impl From<HostError> for Error {
    fn from(problem: HostError) -> Error {
        Error::Host(problem)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

/// Puts what was being done before a failure.
pub(super) trait Context<T> {
    fn context(self, doing: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error::During { doing: doing.into(), cause: Box::new(error.into()) })
    }
}

/// What was requested cannot be.
pub(super) fn impossible<T>(words: impl Into<String>) -> Result<T> {
    Err(Error::Impossible(words.into()))
}

/// What is not there, which a correct scenario never requests.
pub(super) fn missing(words: &str) -> impl FnOnce() -> Error {
    move || Error::Impossible(words.to_owned())
}
