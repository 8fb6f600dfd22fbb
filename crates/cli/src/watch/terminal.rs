//! The terminal's other screen, drawn by `ratatui`: only what changed is written, and it is left as it was.

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use std::fmt::Write;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_sys::terminal::RawTerminal;

/// The other screen, without a cursor and without wrapping: a figure in the last column does not scroll it.
const BEGIN: &[u8] = b"\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J";
const END: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l";

/// Whether the other screen is shown.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// The other screen, until this goes.
pub(super) struct OtherScreen {
    terminal: Terminal<AnsiBackend>,
    // Keys come back after the screen.
    keys: Option<RawTerminal>,
}

impl OtherScreen {
    /// Begins.
    ///
    /// # Errors
    /// Standard output does not take it.
    pub(super) fn begin() -> anyhow::Result<OtherScreen> {
        // A panic's message must reach the screen that stays.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                tidegate_sys::terminal::restore();
                before(panic);
            }));
        });
        // A pipe has no keys.
        let keys = RawTerminal::begin(&io::stdin()).ok();
        SHOWN.store(true, Ordering::Relaxed);
        let begun = crate::output::drawn(BEGIN).and_then(|()| {
            Terminal::new(AnsiBackend { drawing: String::new(), colors: crate::output::has_color() })
        });
        match begun {
            Ok(terminal) => Ok(OtherScreen { terminal, keys }),
            Err(error) => {
                leave();
                Err(error.into())
            }
        }
    }

    /// Gives the terminal back, does something meanwhile, and takes it again; the next frame is drawn whole.
    ///
    /// # Errors
    /// Standard output does not take it.
    pub(super) fn aside(&mut self, meanwhile: impl FnOnce() -> io::Result<()>) -> anyhow::Result<()> {
        let had_keys = self.keys.take().is_some();
        leave();
        let done = meanwhile();
        if had_keys {
            self.keys = RawTerminal::begin(&io::stdin()).ok();
        }
        SHOWN.store(true, Ordering::Relaxed);
        crate::output::drawn(BEGIN)?;
        self.terminal.clear()?;
        Ok(done?)
    }

    /// Columns and rows, as they are now.
    pub(super) fn size() -> Size {
        let (columns, rows) = tidegate_sys::terminal::size(&crate::output::stdout()).unwrap_or((80, 24));
        let cut = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        Size::new(cut(columns), cut(rows))
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// Standard output does not take it.
    pub(super) fn draw(
        &mut self,
        draw: impl FnOnce(&mut ratatui_core::buffer::Buffer),
    ) -> anyhow::Result<()> {
        self.terminal.draw(|frame| draw(frame.buffer_mut()))?;
        Ok(())
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        leave();
    }
}

/// Shows the screen that was there before, once.
fn leave() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        let _ = crate::output::drawn(END);
    }
}

/// Writes cells as ECMA-48 control sequences to standard output, all of a frame at once.
struct AnsiBackend {
    drawing: String,
    /// Whether colours are written; other attributes always are.
    colors: bool,
}

impl AnsiBackend {
    /// The attributes of a cell, from nothing.
    fn style(&mut self, cell: &Cell) {
        self.drawing += "\x1b[0";
        for (modifier, number) in [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)] {
            if cell.modifier.contains(modifier) {
                let _ = write!(self.drawing, ";{number}");
            }
        }
        let color = match cell.fg {
            Color::Red => Some(31),
            Color::Green => Some(32),
            Color::Yellow => Some(33),
            Color::Cyan => Some(36),
            _ => None,
        };
        if let Some(number) = color.filter(|_| self.colors) {
            let _ = write!(self.drawing, ";{number}");
        }
        self.drawing.push('m');
    }
}

impl Backend for AnsiBackend {
    type Error = io::Error;

    fn draw<'c, I: Iterator<Item = (u16, u16, &'c Cell)>>(&mut self, content: I) -> io::Result<()> {
        let mut last: Option<(u16, u16, &Cell)> = None;
        for (column, row, cell) in content {
            // A character may take two columns: the cursor is placed again unless it was an ordinary one.
            let follows =
                last.is_some_and(|(x, y, before)| (x + 1, y) == (column, row) && before.symbol().is_ascii());
            if !follows {
                let _ = write!(self.drawing, "\x1b[{};{}H", row + 1, column + 1);
            }
            let same = |before: &Cell| (before.fg, before.modifier) == (cell.fg, cell.modifier);
            if !last.is_some_and(|(_, _, before)| same(before)) {
                self.style(cell);
            }
            // All text was made visible before; nothing that a terminal obeys passes here in any case.
            let is_plain = !cell.symbol().contains(char::is_control);
            self.drawing += if is_plain { cell.symbol() } else { "\u{fffd}" };
            last = Some((column, row, cell));
        }
        self.drawing += "\x1b[0m";
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, _: P) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.drawing += "\x1b[2J";
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        Ok(OtherScreen::size())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        crate::output::drawn(std::mem::take(&mut self.drawing).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::buffer::Buffer;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    fn drawn(colors: bool) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 2));
        buffer.set_string(0, 0, "a", Style::new().fg(Color::Red));
        buffer.set_string(1, 0, "b", Style::new().add_modifier(Modifier::BOLD));
        buffer[(3, 1)].set_symbol("\x1b[31m");
        let mut backend = AnsiBackend { drawing: String::new(), colors };
        let cells = [(0, 0), (1, 0), (3, 1)].map(|(x, y)| (x, y, &buffer[(x, y)]));
        backend.draw(cells.into_iter()).expect("it is kept");
        backend.drawing
    }

    #[test]
    fn cells_become_control_sequences_and_foreign_ones_do_not() {
        let expected = "\x1b[1;1H\x1b[0;31ma\x1b[0;1mb\x1b[2;4H\x1b[0m\u{fffd}\x1b[0m";
        assert_eq!(drawn(true), expected);
        assert_eq!(drawn(false), expected.replace(";31", ""));
    }
}
