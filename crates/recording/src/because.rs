//! Why a line of a recording cannot be read, put together from the inside out.

use std::fmt::Display;

/// What was read, or why not.
pub(crate) type Parsed<T> = Result<T, String>;

/// Says what was being read.
pub(crate) trait Because<T> {
    /// Adds what was being read before the reason.
    fn because(self, what: impl FnOnce() -> String) -> Parsed<T>;
}

impl<T, E: Display> Because<T> for Result<T, E> {
    fn because(self, what: impl FnOnce() -> String) -> Parsed<T> {
        self.map_err(|error| format!("{}: {error}", what()))
    }
}
