//! The terminal: its size, and keys as they are pressed.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io;
use std::os::fd::AsFd;

/// Columns and rows of a terminal; `None`: it is none, or does not report.
pub fn size(terminal: &impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}

/// A terminal that hands over each key at once and does not show it, until this goes. Ctrl-C stays what it
/// is.
pub struct RawTerminal<F: AsFd> {
    terminal: F,
    before: Termios,
}

impl<F: AsFd> RawTerminal<F> {
    /// Begins.
    ///
    /// # Errors
    /// It is no terminal.
    pub fn begin(terminal: F) -> io::Result<RawTerminal<F>> {
        let before = tcgetattr(&terminal)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &keys)?;
        Ok(RawTerminal { terminal, before })
    }
}

impl<F: AsFd> Drop for RawTerminal<F> {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
