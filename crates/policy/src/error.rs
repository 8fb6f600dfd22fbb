//! What the kernel answers when it refuses.

use alloc::borrow::Cow;
use core::fmt;

/// The error numbers that traffic control answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Errno {
    /// Operation not permitted.
    Perm,
    /// No such file or directory.
    NoEnt,
    /// Resource temporarily unavailable.
    Again,
    /// Cannot allocate memory.
    NoMem,
    /// Device or resource busy.
    Busy,
    /// File exists.
    Exist,
    /// No such device.
    NoDev,
    /// Invalid argument.
    Inval,
    /// Numerical result out of range.
    Range,
    /// No space left on device.
    NoSpc,
    /// Operation not supported.
    OpNotSupp,
    /// Function not implemented.
    NoSys,
    /// No buffer space available.
    NoBufs,
    /// Cannot assign requested address.
    AddrNotAvail,
    /// Too many levels of symbolic links (the kernel's word for a tree that loops or is too deep).
    Loop,
    /// Too many links.
    Links,
}

impl Errno {
    /// The C library's words for it, as tc prints after `RTNETLINK answers: `.
    pub fn text(self) -> &'static str {
        match self {
            Errno::Perm => "Operation not permitted",
            Errno::NoEnt => "No such file or directory",
            Errno::Again => "Resource temporarily unavailable",
            Errno::NoMem => "Cannot allocate memory",
            Errno::Busy => "Device or resource busy",
            Errno::Exist => "File exists",
            Errno::NoDev => "No such device",
            Errno::Inval => "Invalid argument",
            Errno::Range => "Numerical result out of range",
            Errno::NoSpc => "No space left on device",
            Errno::OpNotSupp => "Operation not supported",
            Errno::NoSys => "Function not implemented",
            Errno::NoBufs => "No buffer space available",
            Errno::AddrNotAvail => "Cannot assign requested address",
            Errno::Loop => "Too many levels of symbolic links",
            Errno::Links => "Too many links",
        }
    }
}

/// A refusal: the error number and, where the kernel has one, its message (without the final full stop tc
/// adds).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcError {
    /// The kernel's error number.
    pub errno: Errno,
    /// The kernel's extended message, e.g. `Exclusivity flag on, cannot modify`.
    pub message: Option<Cow<'static, str>>,
}

impl TcError {
    /// A refusal without the kernel's own words: tc prints the error number's text.
    pub const fn bare(errno: Errno) -> TcError {
        TcError { errno, message: None }
    }
    /// A refusal with the kernel's words.
    pub const fn new(errno: Errno, message: &'static str) -> TcError {
        TcError { errno, message: Some(Cow::Borrowed(message)) }
    }
}

impl fmt::Display for TcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => write!(f, "Error: {message}."),
            None => write!(f, "RTNETLINK answers: {}", self.errno.text()),
        }
    }
}
impl core::error::Error for TcError {}
