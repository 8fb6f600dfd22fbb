//! Recorded runs of a real kernel, carried out again packet by packet.
//!
//! A recording is a folder with `link`, `script.tc`, `schedule.csv` and `draws.csv`; the result has the form
//! of the recording's other files, so that both can be compared byte by byte.

mod beside;
mod commands;
mod error;
mod lives;
mod run;

pub use commands::{Commands, NotPlain, PlainCommands};
pub use error::ReplayError;
pub use lives::{FlowAccount, RecordedEnd, RecordedPacket, RecordedPackets};
pub use run::{ReplayedRun, replay};
pub use tidegate_recording::{RandomError, RecordedLink, Recording, RecordingError, Texts};

use tidegate_gateway::{DeviceSpec, Switches};

/// The device that the recordings name `link0`. Their kernel ticks a thousand times a second.
pub fn recorded_device(link: &RecordedLink) -> DeviceSpec {
    let switches = Switches { linux: link.linux, no_bypass: true, ..Switches::default() };
    DeviceSpec { mtu: link.mtu, tx_queue_len: link.tx_queue_len, hz: 1000, switches, ..DeviceSpec::default() }
}
