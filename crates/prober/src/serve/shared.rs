//! What the threads of a server share.

use crate::clock::ProbeClock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_probe_wire::Sessions;

/// What a thread's stack takes.
pub(super) const STACK: usize = 256 << 10;

/// What its threads share.
pub(crate) struct Shared {
    pub(crate) clock: ProbeClock,
    pub(crate) sessions: Mutex<Sessions>,
    pub(super) over: AtomicBool,
    /// Callers' threads.
    pub(super) threads: AtomicUsize,
}

impl Shared {
    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
