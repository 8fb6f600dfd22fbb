//! When a thread gets its turn: woken on time, before others, on a processor of its own.

use std::io;
use std::num::NonZeroU64;

use libc::c_int;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

/// What a thread starts does not inherit its policy (`SCHED_RESET_ON_FORK`).
const FIFO: c_int = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;

// The kernel's `sched_param` is one `int`; musl's has fields of its own behind it.
const _: () = assert!(std::mem::offset_of!(libc::sched_param, sched_priority) == 0);

/// Lets the calling thread be woken when its time has come, not when that suits the kernel.
pub fn wake_on_time() {
    // Refused only where the kernel was built without it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// What the calling thread was given, until this is dropped (by the same thread).
#[derive(Debug, Default)]
pub struct SchedulingGuard {
    urgent: bool,
    /// The processors it ran on before.
    before: Option<CpuSet>,
}

impl SchedulingGuard {
    /// Nothing beyond what all threads have.
    #[must_use]
    pub fn usual() -> SchedulingGuard {
        SchedulingGuard::default()
    }

    /// Goes before all usual programs (SCHED_FIFO) and those of a lower priority (1 to 99; the kernel's own
    /// threads mostly have 50). What it starts does not.
    ///
    /// # Errors
    /// Neither `CAP_SYS_NICE` nor a limit of real-time priorities that allows it.
    pub fn before_others(&mut self, priority: i32) -> io::Result<()> {
        schedule(FIFO, priority)?;
        self.urgent = true;
        Ok(())
    }

    /// Stays on a processor, counted from 0. Threads that it starts do, too.
    ///
    /// # Errors
    /// There is no such processor for us.
    pub fn pin_to(&mut self, processor: usize) -> io::Result<()> {
        if processor >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(processor);
        sched_setaffinity(None, &only)?;
        self.before.get_or_insert(before);
        Ok(())
    }
}

impl Drop for SchedulingGuard {
    fn drop(&mut self) {
        if self.urgent {
            let _ = schedule(libc::SCHED_OTHER, 0);
        }
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

fn schedule(policy: c_int, priority: c_int) -> io::Result<()> {
    // By number: musl's own sched_setscheduler() does nothing but fail.
    // SAFETY: the kernel reads one number, the priority, which outlives the call; 0 is the calling thread.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0 as c_int, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_its_processor_and_is_free_again() {
        let mine = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|cpu| mine.is_set(*cpu)).unwrap();
        let mut turn = SchedulingGuard::usual();
        turn.pin_to(first).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(turn);
        assert_eq!(sched_getaffinity(None).unwrap(), mine);
        let error = SchedulingGuard::usual().pin_to(usize::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
