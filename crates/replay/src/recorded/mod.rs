//! Recorded runs of a real kernel, carried out again packet by packet.
//!
//! A recording is a folder with `link`, `script.tc`, `schedule.csv` and `draws.csv`; what comes of it has the form of
//! the recording's other files, so that both can be compared byte by byte.

mod because;
mod beside;
mod commands;
mod draws;
mod error;
mod files;
mod frame;
mod lives;
mod run;

pub use commands::{Commands, NotPlain, PlainCommands};
pub use error::{DrawsError, RecordingError, ReplayError};
pub use files::{RecordedLink, Recording, Texts};
pub use lives::{FlowAccount, RecordedEnd, RecordedPacket, RecordedPackets};
pub use run::{ReplayedRun, replay};
