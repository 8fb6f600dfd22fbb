//! The messages of all of these commands, and their exit codes.

use tidegate_apply::Notice;

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
