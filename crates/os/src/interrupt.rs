//! Ctrl-C, noticed instead of obeyed: whoever works long may write down what is done.

use std::sync::atomic::{AtomicBool, Ordering};

/// The number of the signal that Ctrl-C sends.
const INTERRUPT: i32 = 2;
/// What the C library calls the usual handling of a signal.
const DEFAULT: usize = 0;

static ASKED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// As POSIX has it; handlers are functions of the signal's number, passed as their address.
    fn signal(number: i32, handler: usize) -> usize;
}

extern "C" fn note(_: i32) {
    ASKED.store(true, Ordering::Relaxed);
    // SAFETY: signal() may be called in a handler, and the usual handling is always there: a second Ctrl-C ends us at once.
    unsafe {
        signal(INTERRUPT, DEFAULT);
    }
}

extern "C" fn pass(_: i32) {}

/// While this lives, Ctrl-C does not end this process.
#[derive(Debug)]
pub struct Ignored {
    before: usize,
}

/// Lets Ctrl-C pass: whoever works for us decides what it means.
#[must_use]
pub fn ignore() -> Ignored {
    // SAFETY: the handler does nothing; it lives as long as the process. (Programs that we start have the usual one: handlers do not
    // outlive exec, as being ignored would.)
    Ignored { before: unsafe { signal(INTERRUPT, pass as *const () as usize) } }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        // SAFETY: it is what signal() gave us, or its word for a failure, which it refuses.
        unsafe {
            signal(INTERRUPT, self.before);
        }
    }
}

/// Begins to notice: what is returned becomes true at the first Ctrl-C; a second one ends the process.
pub fn notice() -> &'static AtomicBool {
    // SAFETY: the handler stores to an atomic and calls signal(), both of which are safe in a handler; it lives as long as the process.
    unsafe {
        signal(INTERRUPT, note as *const () as usize);
    }
    &ASKED
}
