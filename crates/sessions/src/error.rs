//! Why something could not be measured.

use std::fmt;
use std::io;
use tidegate_replay::ReadCaptureError;

/// Why something could not be measured. `{}` shows the outermost message, [`std::error::Error::source`] leads
/// to its causes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Sockets, servers, names: errors of measuring with real sockets.
    Field(tidegate_prober::Error),
    /// This computer's devices, policies and daemons.
    Computer(tidegate_apply::Error),
    /// A system call.
    Io(io::Error),
    /// The request is not possible: there is no such test, or a policy is applied already.
    Invalid(String),
    /// Not all was measured that was to be.
    Partial(String),
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

impl Error {
    /// The failure of sockets or of a server that caused this.
    pub fn field(&self) -> Option<&tidegate_prober::Error> {
        match self {
            Error::Field(error) => Some(error),
            Error::During { cause, .. } => cause.field(),
            _ => None,
        }
    }

    /// The failure of a file or another system call that caused this.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Error::Io(error) => Some(error),
            Error::During { cause, .. } => cause.io(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Field(error) => error.fmt(f),
            Error::Computer(error) => write!(f, "{error}"),
            Error::Io(error) => error.fmt(f),
            Error::Invalid(words) | Error::Partial(words) => f.write_str(words),
            Error::During { doing, .. } => f.write_str(doing),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // These errors name their own context.
            Error::Field(error) => error.source(),
            Error::Computer(error) => error.source(),
            Error::Io(error) => error.source(),
            Error::Invalid(_) | Error::Partial(_) => None,
            Error::During { cause, .. } => Some(cause.as_ref()),
        }
    }
}

impl From<tidegate_prober::Error> for Error {
    fn from(error: tidegate_prober::Error) -> Error {
        Error::Field(error)
    }
}

impl From<tidegate_apply::Error> for Error {
    fn from(error: tidegate_apply::Error) -> Error {
        Error::Computer(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<ReadCaptureError> for Error {
    fn from(error: ReadCaptureError) -> Error {
        match error {
            ReadCaptureError::Io(error) => Error::Io(error),
            other => Error::Invalid(other.to_string()),
        }
    }
}

/// Puts what was being done before a failure.
pub(crate) trait Context<T> {
    fn context(self, doing: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error::During { doing: doing.into(), cause: Box::new(error.into()) })
    }
}

/// A failure with its causes, on one line.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The request is not possible.
pub(crate) fn invalid<T>(words: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(words.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_failure_of_a_server_is_found_behind_its_context() {
        let gone: Result<(), _> = Err(tidegate_prober::Error::Gone("it is gone".into()));
        let error = gone.context("a turn").expect_err("it failed");
        assert_eq!(error.to_string(), "a turn");
        assert!(matches!(error.field(), Some(tidegate_prober::Error::Gone(_))));
        assert!(error.source().is_some_and(|cause| cause.to_string().contains("it is gone")));
        assert!(Error::Invalid("no".into()).field().is_none());
    }
}
