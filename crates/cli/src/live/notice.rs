//! What all of these commands say, and how they end.

use tidegate_apply::Notice;

/// Nothing was changed, or all of it was undone.
pub(super) const UNDONE: u8 = 1;
/// The policy cannot be read.
pub(super) const UNREAD: u8 = 2;

/// Prints a notice; with `--json`, only if it is a warning.
pub(super) fn tell(command: &str, notice: &Notice, json: bool) {
    match notice {
        Notice::Policy(words) => eprintln!("{words}"),
        Notice::Daemon(words) => eprintln!("tidegate daemon: {words}"),
        warning if !warning.is_progress() => eprintln!("tidegate {command}: {warning}"),
        _ if json => {}
        progress => print!("{progress}"),
    }
}
