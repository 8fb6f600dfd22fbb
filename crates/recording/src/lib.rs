#![forbid(unsafe_code)]
//! The files of a recorded run of a real kernel: `link`, `schedule.csv`, `draws.csv`, and lines of shell.
//!
//! Times are nanoseconds from the recording's zero, which is [`EPOCH`] on the machine's clock; [`at`] and
//! [`ns`] convert. Pure: no clock, no IO, no global state.

mod because;
mod error;
mod files;
mod frame;
pub mod line;
mod random;

pub use error::{RandomError, RecordingError};
pub use files::{DRAIN, EPOCH, RecordedLink, Recording, RowKind, SCRIPT_AT, ScheduleRow, Texts, at, ns};
pub use frame::RecordedArrival;
pub use random::RecordedRandom;

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
