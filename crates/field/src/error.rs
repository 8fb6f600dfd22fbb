//! What goes wrong outside, with what may help.

use std::fmt;
use std::io;

/// Why something could not be measured.
#[derive(Debug)]
pub enum Error {
    /// A name has no address.
    NoName {
        /// The name.
        host: String,
        /// The resolver's words.
        why: String,
    },
    /// There is no way to an address.
    NoWay {
        /// The address.
        to: String,
        /// The kernel's words.
        why: io::Error,
    },
    /// We may not do that.
    NotAllowed {
        /// What.
        what: String,
        /// How to be allowed to.
        remedy: String,
    },
    /// The kernel refused something.
    Io {
        /// What was tried.
        what: String,
        /// Its words.
        why: io::Error,
    },
    /// What was asked for cannot be.
    Wrong(String),
}

impl Error {
    /// The kernel refused `what`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |why| Error::Io { what, why }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoName { host, why } => {
                write!(
                    f,
                    "no address is known for `{host}` ({why}): is the name right, and does this computer have a resolver (/etc/resolv.conf)?"
                )
            }
            Error::NoWay { to, why } => {
                write!(f, "there is no way to {to} ({why}): `ip route get {to}` tells what this computer would do")
            }
            Error::NotAllowed { what, remedy } => write!(f, "{what} is not allowed. {remedy}"),
            Error::Io { what, why } => write!(f, "cannot {what}: {why}"),
            Error::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NoWay { why, .. } | Error::Io { why, .. } => Some(why),
            _ => None,
        }
    }
}
