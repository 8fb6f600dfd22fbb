//! `tidegate daemon`: a policy run by our own disciplines on real devices. What it does is
//! `tidegate_daemon`'s.

mod options;

pub use options::{DoorKind, Options};

use std::process::ExitCode;

/// Something is wrong with the policy, a device or our privileges.
const FAILED: u8 = 2;

/// Plays `tidegate daemon`.
pub fn command(options: &Options) -> ExitCode {
    // If no one can read it (the disk with the log is full), packets go on all the same.
    let say = |words: &str| eprintln!("tidegate daemon: {words}");
    match tidegate_daemon::run(&options.into(), &say) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            FAILED.into()
        }
    }
}
