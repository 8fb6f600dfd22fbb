//! What the network gets of the machine.

use super::error::{Context, Result};
use tidegate_sys::scheduling::SchedulingGuard;

/// Of the real-time priorities the middle, as the kernel's own threads have.
const PRIORITY: i32 = 50;

/// What the network gets of the machine, so that nothing is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulingOptions {
    /// Never sleep between packets: exact to microseconds, and a processor is busy all the time.
    pub busy: bool,
    /// Use real-time scheduling (`SCHED_FIFO`). Not with `busy`: from a process that never sleeps the kernel
    /// then takes 50 ms of each second.
    pub realtime: bool,
    /// Stay on this processor, counted from 0.
    pub pin: Option<usize>,
}

impl SchedulingOptions {
    /// Gives the calling thread what was requested, until the turn is dropped.
    ///
    /// # Errors
    /// There is no such processor, or this user may not go before others; the words name the option of
    /// `tidegate lab`.
    pub fn begin(self) -> Result<SchedulingGuard> {
        let mut turn = SchedulingGuard::usual();
        if let Some(cpu) = self.pin {
            turn.pin_to(cpu).context(format!("--pin {cpu}: this machine has no such processor for us"))?;
        }
        if self.realtime {
            let remedy =
                "--realtime: we may not go before others; run it as root, or raise `ulimit -r` to 50";
            turn.before_others(PRIORITY).context(remedy)?;
        }
        Ok(turn)
    }
}
