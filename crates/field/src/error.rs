//! Why nothing could be measured, in words for people.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tidegate_probe::Malformed;

/// Why nothing could be measured.
#[derive(Debug)]
pub enum Error {
    /// Nobody knows the name.
    NoSuchName {
        /// The name.
        host: String,
        /// What the resolver says.
        why: io::Error,
    },
    /// The name has no address of the family asked for.
    NoSuchFamily {
        /// The name.
        host: String,
        /// The family: `IPv4`, `IPv6`.
        family: &'static str,
    },
    /// Nobody answers, or there is no way.
    Unreachable {
        /// The last address tried.
        to: SocketAddr,
        /// What the kernel says.
        why: io::Error,
    },
    /// The server wants a token, and there is none.
    WantsToken,
    /// There is a token, and the server asks for none: it may be another one.
    WantsNoToken,
    /// The server could not prove that it knows the token.
    Impostor,
    /// The server says no.
    Refused(String),
    /// What the server says makes no sense.
    Nonsense(Malformed),
    /// The server has closed the connection, or says nothing any more.
    Gone(String),
    /// A call to the kernel failed.
    Kernel {
        /// What was to be done.
        what: &'static str,
        /// What it says.
        why: io::Error,
    },
}

impl Error {
    /// What was to be done, for an error of the kernel.
    pub(crate) fn kernel(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |why| Error::Kernel { what, why }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoSuchName { host, why } => {
                write!(f, "`{host}` is no name that anybody knows ({why}); is it spelt right, and does DNS work?")
            }
            Error::NoSuchFamily { host, family } => write!(f, "`{host}` has no address of {family}"),
            Error::Unreachable { to, why } => match why.kind() {
                io::ErrorKind::ConnectionRefused => {
                    write!(f, "nobody listens at {to}; is `tidegate serve` running there, with this port?")
                }
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                    write!(f, "{to} does not answer; a firewall may be before it, which must let TCP and UDP through")
                }
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    write!(f, "there is no way to {to} ({why}); `ip route get {}` tells more", to.ip())
                }
                _ => write!(f, "cannot connect to {to}: {why}"),
            },
            Error::WantsToken => {
                f.write_str("the server wants a token: write it into a file and name that with --token, or set TIDEGATE_TOKEN")
            }
            Error::WantsNoToken => f.write_str(
                "the server asks for no token, though there is one: it is not the server meant, or was started with --open; leave the token out to go on",
            ),
            Error::Impostor => f.write_str("the server does not know the token: it is not the one meant"),
            Error::Refused(why) => write!(f, "the server refuses: {why}"),
            Error::Nonsense(why) => write!(f, "the server says something that makes no sense ({why}); is it another version, or another program?"),
            Error::Gone(why) => write!(f, "the server is gone: {why}"),
            Error::Kernel { what, why } => write!(f, "cannot {what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Malformed> for Error {
    fn from(why: Malformed) -> Error {
        Error::Nonsense(why)
    }
}
