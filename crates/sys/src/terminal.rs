//! The terminal: its size, and keys as they are pressed.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

/// Columns and rows of a terminal; `None`: it is none, or does not report.
pub fn size(terminal: &impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}

/// The terminal that is changed, and its settings before.
static CHANGED: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// A terminal that hands over each key at once and does not show it, until this goes or
/// [`restore`] is called. Ctrl-C and Ctrl-Z stay what they are. There is one at a time.
#[derive(Debug)]
pub struct RawTerminal(());

impl RawTerminal {
    /// Begins.
    ///
    /// # Errors
    /// It is no terminal, or another one is changed already.
    pub fn begin(terminal: &impl AsFd) -> io::Result<RawTerminal> {
        let mut changed = CHANGED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if changed.is_some() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let before = tcgetattr(terminal)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        let kept = terminal.as_fd().try_clone_to_owned()?;
        tcsetattr(terminal, OptionalActions::Now, &keys)?;
        *changed = Some((kept, before));
        Ok(RawTerminal(()))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal that a [`RawTerminal`] changed its settings back. For a panic hook: where a panic does
/// not unwind, no value goes.
pub fn restore() {
    // A hook may run while this thread holds the lock; then nothing is changed yet, or it is restored.
    let Ok(mut changed) = CHANGED.try_lock() else { return };
    if let Some((terminal, before)) = changed.take() {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    #[test]
    fn settings_come_back_when_it_goes_and_when_they_are_restored() {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are pseudo-terminals");
        grantpt(&main).expect("it is ours");
        unlockpt(&main).expect("it is ours");
        let name = ptsname(&main, Vec::new()).expect("it has a name").into_string().expect("plain");
        let terminal = std::fs::File::options().read(true).write(true).open(name).expect("it is ours");
        let is_raw = || !tcgetattr(&terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO);

        let keys = RawTerminal::begin(&terminal).expect("a terminal");
        let busy = RawTerminal::begin(&terminal).expect_err("one at a time").kind();
        let begun = is_raw();
        restore();
        let restored = is_raw();
        drop(keys);
        let again = RawTerminal::begin(&terminal).expect("a terminal");
        let second = is_raw();
        drop(again);

        let seen = (begun, busy, restored, second, is_raw());
        assert_eq!(seen, (true, io::ErrorKind::ResourceBusy, false, true, false));
    }
}
