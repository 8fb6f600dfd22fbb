//! A script's output, passed on as it comes, with what could move a terminal's cursor made visible.

use tidegate_text::Filter;

/// Prints a piece of a script's output: to standard error, or to standard output.
pub type PrintFn = fn(to_errors: bool, piece: &str);

/// One of a script's output streams, passed on.
#[derive(Debug)]
pub(super) struct Echo {
    filter: Filter,
    to_errors: bool,
    print: PrintFn,
}

impl Echo {
    /// To standard error, or to standard output.
    pub(super) fn new(to_errors: bool, print: PrintFn) -> Echo {
        Echo { filter: Filter::new(), to_errors, print }
    }

    /// The next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let shown = self.filter.push(piece);
        self.print(&shown);
    }

    /// The script has closed its output.
    pub(super) fn finish(&mut self) {
        let shown = self.filter.finish();
        self.print(&shown);
    }

    fn print(&self, shown: &str) {
        if !shown.is_empty() {
            (self.print)(self.to_errors, shown);
        }
    }
}

/// Prints to this process's own streams; errors are ignored, as the reader may be gone.
pub fn to_streams(to_errors: bool, piece: &str) {
    use std::io::Write as _;
    let _ = match to_errors {
        true => std::io::stderr().write_all(piece.as_bytes()),
        false => std::io::stdout().write_all(piece.as_bytes()).and_then(|()| std::io::stdout().flush()),
    };
}
