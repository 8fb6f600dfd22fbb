//! `tidegate daemon`: a policy run by tidegate's own qdiscs on real devices. What it does is
//! `tidegate_daemon`'s.

mod options;

pub use options::{Options, PacketIoKind};

use crate::exit::CliExit;
use std::process::ExitCode;

/// Plays `tidegate daemon`.
pub fn command(options: &Options) -> ExitCode {
    // If no one can read it (the disk with the log is full), packets go on all the same.
    let say = |words: &str| eprintln!("tidegate daemon: {words}");
    match tidegate_daemon::run(&options.into(), &say) {
        Ok(()) => CliExit::Yes.into(),
        Err(error) => {
            let error = anyhow::Error::from(error);
            say(&format!("{error:#}"));
            CliExit::of_device(&error).into()
        }
    }
}
