//! What keeps a recording from being carried out again.

use std::error::Error;
use std::fmt;

/// What keeps a run from being carried out again.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The machine has no device `link0`.
    NoDevice,
    /// More packets are in flight than there is space for.
    TooManyPackets,
    /// Carrying out commands failed.
    Commands(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::NoDevice => write!(f, "the machine has no link0"),
            ReplayError::TooManyPackets => write!(f, "too many packets under way"),
            ReplayError::Commands(error) => error.fmt(f),
        }
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReplayError::Commands(error) => error.source(),
            _ => None,
        }
    }
}
