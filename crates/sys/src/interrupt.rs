//! Ctrl-C, noticed instead of obeyed: a long run may write down what is done, and a background program may
//! clean up. And Ctrl-Z: a program that draws on the whole terminal gives it back before it stops.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, c_int, sigaction};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);
/// Where the handler writes, once a descriptor is taken.
static BELL: OnceLock<OwnedFd> = OnceLock::new();
/// What is written when it rings.
static RUNG: u8 = 0;

/// A handler of signals. It must do only what signal-safety(7) allows, and leave `errno` as it finds it.
type Handler = extern "C" fn(c_int);

extern "C" fn note(_: c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

extern "C" fn note_stop(_: c_int) {
    STOP_REQUESTED.store(true, Ordering::Relaxed);
}

extern "C" fn pass(_: c_int) {}

extern "C" fn ring(_: c_int) {
    let Some(bell) = BELL.get() else { return };
    // SAFETY: the place of this thread's `errno` is there as long as the thread; write() may be called in a
    // handler, the byte lives as long as the process, and the pipe is never closed.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        // A full pipe has rung already.
        libc::write(bell.as_raw_fd(), (&raw const RUNG).cast(), 1);
        *errno = before;
    }
}

/// Installs a handler; returns what was installed before. `once`: the second time the signal is obeyed at
/// once.
fn install(number: c_int, handler: Handler, once: bool) -> io::Result<sigaction> {
    // SAFETY: a `sigaction` holds numbers and function pointers that may be missing; zero is a value of
    // those.
    let mut action: sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | if once { libc::SA_RESETHAND } else { 0 };
    exchange(number, &action)
}

fn exchange(number: c_int, action: &sigaction) -> io::Result<sigaction> {
    // SAFETY: zero is a value of it, as above.
    let mut before: sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both structures live until the call returns. Handlers come from `install` only (a `Handler`
    // lives as long as the process, and keeps its promise), or were installed before.
    let result = unsafe { libc::sigaction(number, ptr::from_ref(action), &raw mut before) };
    if result == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

/// A descriptor that becomes readable on Ctrl-C or SIGTERM, which then do not end this process; can be taken
/// once.
///
/// # Errors
/// No pipe can be made, or it was taken already.
pub fn event_fd() -> io::Result<OwnedFd> {
    let (heard, bell) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
    BELL.set(bell).map_err(|_| io::Error::other("another thread waits for the end already"))?;
    for number in [SIGINT, SIGTERM] {
        install(number, ring, true)?;
    }
    Ok(heard)
}

/// Makes the descriptor of [`event_fd`] readable on SIGHUP, the end of a terminal, too; where that is
/// ignored, as under nohup(1), it stays so.
///
/// # Errors
/// No handler can be installed.
pub fn also_on_hangup() -> io::Result<()> {
    let before = install(SIGHUP, ring, false)?;
    if before.sa_sigaction == libc::SIG_IGN {
        exchange(SIGHUP, &before)?;
    }
    Ok(())
}

/// While this lives, Ctrl-C does not end this process.
pub struct Ignored {
    /// What was installed before, if it could be replaced.
    before: Option<sigaction>,
}

impl std::fmt::Debug for Ignored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ignored").finish_non_exhaustive()
    }
}

/// Ignores Ctrl-C: a process that works for us decides what it means.
#[must_use]
pub fn ignore() -> Ignored {
    // (Programs that we start have the usual handling: handlers do not outlive exec, as being ignored would.)
    Ignored { before: install(SIGINT, pass, false).ok() }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = exchange(SIGINT, before);
        }
    }
}

/// While this lives, Ctrl-Z (SIGTSTP) does not stop this process, but is noticed. A wait for descriptors
/// ([`crate::poll::readable`]) ends by it.
pub struct StopRequests {
    before: sigaction,
}

impl std::fmt::Debug for StopRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StopRequests").finish_non_exhaustive()
    }
}

impl StopRequests {
    /// Begins.
    ///
    /// # Errors
    /// Whatever sigaction(2) reports.
    pub fn begin() -> io::Result<StopRequests> {
        STOP_REQUESTED.store(false, Ordering::Relaxed);
        Ok(StopRequests { before: install(SIGTSTP, note_stop, false)? })
    }

    /// Whether there was one since the last call.
    pub fn take(&self) -> bool {
        STOP_REQUESTED.swap(false, Ordering::Relaxed)
    }

    /// Stops this process as the signal would have, and returns once it is continued (`fg`). Without a shell
    /// that could continue it (an orphaned process group) the kernel does not stop it.
    ///
    /// # Errors
    /// Whatever sigaction(2) reports.
    pub fn stop(&self) -> io::Result<()> {
        exchange(SIGTSTP, &self.before)?;
        // SAFETY: raise() sends this process a signal whose action was installed before.
        let sent = unsafe { libc::raise(SIGTSTP) };
        let failed = if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        install(SIGTSTP, note_stop, false)?;
        failed
    }
}

impl Drop for StopRequests {
    fn drop(&mut self) {
        let _ = exchange(SIGTSTP, &self.before);
    }
}

/// Begins to notice: what is returned becomes true at the first Ctrl-C; a second one ends the process.
pub fn notice() -> &'static AtomicBool {
    // sigaction(2) refuses only signals that cannot be caught.
    let _ = install(SIGINT, note, true);
    &INTERRUPTED
}

/// As [`notice`], at SIGTERM, too: as timeout(1) and service managers end a program.
pub fn notice_end() -> &'static AtomicBool {
    let _ = install(SIGTERM, note, true);
    notice()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_handler_rings_once_and_keeps_errno() {
        let heard = event_fd().expect("the first to ask");
        // Fill the pipe, so that the handler's write fails and would change `errno`.
        let bell = BELL.get().expect("it was set");
        while rustix::io::write(bell, &[1; 4096]).is_ok() {}
        // SAFETY: the place of this thread's `errno` is there as long as the thread.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno = 4711 };
        // SAFETY: raise() delivers to this thread before it returns.
        unsafe { libc::raise(SIGTERM) };
        // SAFETY: as above.
        assert_eq!(unsafe { *errno }, 4711);
        let readable = crate::poll::readable(&[heard.as_fd()], Duration::ZERO).expect("it is a pipe");
        assert_eq!(readable, [true]);
        // The first signal was the last that does not end the process.
        // SAFETY: zero is a value of a `sigaction`.
        let mut now: sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: nothing is installed; the structure lives until the call returns.
        unsafe { libc::sigaction(SIGTERM, ptr::null(), &raw mut now) };
        assert_eq!(now.sa_sigaction, libc::SIG_DFL);
        let _ = install(SIGTERM, pass, false);
    }
}
