//! What goes wrong outside, with what may help.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tidegate_probe_wire::Malformed;

/// Why something could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A name has no address.
    NoName {
        /// The name that was looked up.
        host: String,
        /// The resolver's words.
        why: String,
    },
    /// There is no way to an address.
    NoRoute {
        /// The address without a route.
        to: String,
        /// The kernel's words.
        why: io::Error,
    },
    /// We may not do that.
    NotAllowed {
        /// The operation.
        what: String,
        /// How to be allowed to.
        remedy: String,
    },
    /// The kernel refused something.
    Io {
        /// What was tried.
        what: String,
        /// The system's error.
        why: io::Error,
    },
    /// What was requested cannot be.
    Wrong(String),
    /// Nothing answers there.
    NoReply {
        /// The server's address.
        to: SocketAddr,
        /// The kernel's words.
        why: io::Error,
    },
    /// The server wants a token, and there is none.
    WantsToken,
    /// There is a token, and the server requests none: it may be another one.
    WantsNoToken,
    /// The server could not prove that it knows the token.
    Impostor,
    /// The server refuses the measurement.
    Refused(String),
    /// The server sent an invalid message.
    Nonsense(Malformed),
    /// The server has closed the connection, or sends nothing any more.
    Gone(String),
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
                let host = tidegate_text::line(host);
                write!(
                    f,
                    "no address is known for `{host}` ({why}): is the name right, and does this computer \
                    have a resolver (/etc/resolv.conf)?"
                )
            }
            Error::NoRoute { to, why } => {
                write!(f, "no route to {to} ({why}): `ip route get {to}` shows what this computer would do")
            }
            Error::NotAllowed { what, remedy } => write!(f, "{what} is not allowed. {remedy}"),
            Error::Io { what, why } => write!(f, "cannot {what}: {why}"),
            Error::Wrong(what) => f.write_str(what),
            Error::NoReply { to, why } if why.kind() == io::ErrorKind::ConnectionRefused => {
                write!(f, "no program listens at {to}: is `tidegate serve` running there, with this port?")
            }
            Error::NoReply { to, why } => {
                write!(
                    f,
                    "{to} does not answer ({why}): a firewall before it must let its port through, \
                TCP and UDP"
                )
            }
            Error::WantsToken => f.write_str(
                "the server wants a token: write it into a file and name that with --token, or set \
                TIDEGATE_TOKEN",
            ),
            Error::WantsNoToken => f.write_str(
                "the server asks for no token, though there is one: it is not the one meant, or was started \
                with --open (then leave the token out)",
            ),
            Error::Impostor => f.write_str("the server does not know the token: it is not the one meant"),
            Error::Refused(why) => write!(f, "the server refuses: {why}"),
            Error::Nonsense(why) => {
                write!(f, "the server says something {why}: is it of another version, or another program?")
            }
            Error::Gone(why) => write!(f, "the server is gone: {why}"),
        }
    }
}

impl From<Malformed> for Error {
    fn from(why: Malformed) -> Error {
        Error::Nonsense(why)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NoRoute { why, .. } | Error::Io { why, .. } | Error::NoReply { why, .. } => Some(why),
            _ => None,
        }
    }
}

/// Why a host cannot be reached.
pub(crate) fn unreachable(to: SocketAddr, why: io::Error) -> Error {
    match why.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            Error::NoRoute { to: to.ip().to_string(), why }
        }
        _ => Error::NoReply { to, why },
    }
}
