//! Ctrl-C, noticed instead of obeyed: whoever works long may write down what is done, and who runs in the background may clear up.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of the signal that Ctrl-C sends.
const INTERRUPT: i32 = 2;
/// The number of the signal that asks a process to end.
const TERMINATE: i32 = 15;
/// What the C library calls the usual handling of a signal.
const DEFAULT: usize = 0;

static ASKED: AtomicBool = AtomicBool::new(false);
/// Where the handler writes, once somebody waits.
static BELL: OnceLock<OwnedFd> = OnceLock::new();

unsafe extern "C" {
    /// As POSIX has it; handlers are functions of the signal's number, passed as their address.
    fn signal(number: i32, handler: usize) -> usize;
    /// Likewise.
    fn write(file: i32, octets: *const u8, count: usize) -> isize;
}

extern "C" fn note(_: i32) {
    ASKED.store(true, Ordering::Relaxed);
    // SAFETY: signal() may be called in a handler, and the usual handling is always there: a second Ctrl-C ends us at once.
    unsafe {
        signal(INTERRUPT, DEFAULT);
    }
}

extern "C" fn pass(_: i32) {}

extern "C" fn ring(number: i32) {
    let Some(bell) = BELL.get() else { return };
    // SAFETY: write() and signal() may be called in a handler; the octet is there until write() returns, and the pipe is never closed. The second
    // time we are obeyed at once.
    unsafe {
        write(bell.as_raw_fd(), &raw const RUNG, 1);
        signal(number, DEFAULT);
    }
}

/// What is written when it rings.
static RUNG: u8 = 0;

/// What becomes readable when this process is asked to end, by Ctrl-C or otherwise, which then does not end it; to be had once.
///
/// # Errors
/// No pipe can be had, or somebody has it already.
pub fn bell() -> io::Result<OwnedFd> {
    let (heard, bell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
    BELL.set(bell).map_err(|_| io::Error::other("somebody waits for the end already"))?;
    for number in [INTERRUPT, TERMINATE] {
        // SAFETY: the handler does what handlers may; it lives as long as the process.
        unsafe {
            signal(number, ring as *const () as usize);
        }
    }
    Ok(heard)
}

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
