//! Why something could not be done: with what kind of failure it is, for programs, and a chain of messages,
//! for people.

use std::error::Error as StdError;
use std::fmt;
use std::io;

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The policy cannot be read, is not carried out to its end, or requests what tidegate does not do.
    Policy,
    /// A device is not there, is another one than the policy's, or cannot be taken.
    Device,
    /// Another tidegate process has the device, or is at work in this network namespace.
    Busy,
    /// tidegate applied nothing there.
    NotApplied,
    /// The policy would cut off what keeps the network alive, or the previous configuration could not be
    /// restored; nothing was changed.
    Unsafe,
    /// The kernel refuses something, or does not do what it accepted.
    Kernel,
    /// A daemon does not run, does not answer, or refuses.
    Daemon,
    /// A file that tidegate keeps is missing or is not what tidegate wrote.
    State,
    /// A system call failed.
    Io,
    /// Something else.
    Other,
}

/// Why something could not be done. `{}` shows the outermost message, `{:#}` all of them: what was being done
/// first, its cause last.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// `None`: the message of `source`.
    message: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of an operation that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure of a kind, as text for people: what failed, where, and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: Some(message.into()), source: None }
    }

    /// Something else's failure, of a kind.
    pub fn of(kind: ErrorKind, source: impl StdError + Send + Sync + 'static) -> Error {
        Error { kind, message: None, source: Some(Box::new(source)) }
    }

    /// The same failure, with the operation before it in the chain of messages.
    #[must_use]
    pub fn context(self, message: impl Into<String>) -> Error {
        Error { kind: self.kind, message: Some(message.into()), source: Some(Box::new(self)) }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The kind of the system call's error that caused this; `None`: none did.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let source = self.source.as_deref()?;
        match source.downcast_ref::<io::Error>() {
            Some(error) => Some(error.kind()),
            None => source.downcast_ref::<Error>()?.io_kind(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.message, &self.source) {
            (Some(message), _) => f.write_str(message)?,
            (None, Some(source)) => write!(f, "{source}")?,
            (None, None) => {}
        }
        let mut cause = if f.alternate() { self.source() } else { None };
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.source.as_deref()?;
        // A message that repeats its source is reported once.
        if self.message.is_some() { Some(source) } else { source.source() }
    }
}

macro_rules! from {
    ($($type:ty => $kind:ident),* $(,)?) => {
        $(impl From<$type> for Error {
            fn from(error: $type) -> Error {
                Error::of(ErrorKind::$kind, error)
            }
        })*
    };
}

from! {
    io::Error => Io,
    serde_json::Error => State,
    tidegate_loader::LoadError => Policy,
    tidegate_plan::rebind::RebindError => Policy,
    tidegate_plan::Incomplete => Policy,
    tidegate_netlink::encode::nft::UnsupportedRule => Policy,
    tidegate_netlink::decode::Unread => Kernel,
    tidegate_netlink::KernelError => Kernel,
}

/// Puts what was being done before a failure.
pub trait ErrorContext<T> {
    /// Puts this before the failure; where nothing is there, it is the failure.
    ///
    /// # Errors
    /// The failure, with its context.
    fn context(self, message: impl Into<String>) -> Result<T>;

    /// As `context`, with a message that is made only if there is a failure.
    ///
    /// # Errors
    /// The failure, with its context.
    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: Into<Error>> ErrorContext<T> for Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.map_err(|error| error.into().context(message))
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| error.into().context(message()))
    }
}

impl<T> ErrorContext<T> for Option<T> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.ok_or_else(|| Error::new(ErrorKind::Other, message))
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.ok_or_else(|| Error::new(ErrorKind::Other, message()))
    }
}

/// An error of a kind: `error!(Busy, "words {}", …)`.
#[macro_export]
#[doc(hidden)]
macro_rules! error {
    ($kind:ident, $($words:tt)*) => { $crate::error::Error::new($crate::error::ErrorKind::$kind,
        format!($($words)*)) };
}

/// Returns an error of a kind.
#[macro_export]
#[doc(hidden)]
macro_rules! bail {
    ($kind:ident, $($words:tt)*) => { return Err($crate::error::Error::new($crate::error::ErrorKind::$kind,
        format!($($words)*))) };
}

/// Returns an error of a kind unless something holds.
#[macro_export]
#[doc(hidden)]
macro_rules! ensure {
    ($holds:expr, $kind:ident, $($words:tt)*) => { if !$holds {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($words)*))) } };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_shown_once_and_knows_its_system_call() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let failed: Result<()> = Err(missing()).context("/run/x.sock").context("no daemon");
        let error = failed.expect_err("it failed");
        assert_eq!(error.to_string(), "no daemon");
        assert_eq!(format!("{error:#}"), format!("no daemon: /run/x.sock: {}", missing()));
        assert_eq!((error.kind(), error.io_kind()), (ErrorKind::Io, Some(io::ErrorKind::NotFound)));
        assert_eq!(format!("{:#}", Error::from(missing())), missing().to_string());
        assert_eq!(error!(Busy, "{} has it", 7).io_kind(), None);
        let nothing: Result<()> = None.context("nothing there");
        assert_eq!(format!("{:#}", nothing.expect_err("it failed")), "nothing there");
    }
}
