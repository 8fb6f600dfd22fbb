//! This machine's clocks: one that only goes forward, which all times here are of, and the one of the kernel's stamps, which may be set.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A stamp is not older than this when it is read; else one of the clocks was set meanwhile.
const OLDEST_NS: u64 = 2_000_000_000;
/// The date may drift against the other clock by this from one look to the next, ns; more is a step.
const STEP_NS: i64 = 20_000_000;
/// Sleep is left this early, to be on time by looking at the clock.
const EARLY: Duration = Duration::from_micros(60);
/// The longest sleep: it is looked whether all is over.
const LOOK: Duration = Duration::from_millis(50);

/// ns since a moment of its own, and what the date has to do with it.
#[derive(Debug)]
pub struct Clock {
    began: Instant,
    /// The date minus our time, at the last look; ns. 0: nobody has looked.
    apart: AtomicI64,
    steps: AtomicU32,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { began: Instant::now(), apart: AtomicI64::new(0), steps: AtomicU32::new(0) }
    }
}

impl Clock {
    /// ns since it began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Both clocks, read together.
    pub fn look(&self) -> Look {
        let (now, unix) = (self.now(), unix());
        let apart = unix.wrapping_sub(now) as i64;
        let before = self.apart.swap(apart, Ordering::Relaxed);
        if before != 0 && before.abs_diff(apart) > STEP_NS.unsigned_abs() {
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
        Look { now, unix }
    }

    /// How often the date was set since this clock began, as far as anybody looked.
    pub fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Waits until a time, to a few microseconds; false: `is_over` said so before.
    pub fn wait_until(&self, at: u64, is_over: impl Fn() -> bool) -> bool {
        loop {
            let left = Duration::from_nanos(at.saturating_sub(self.now()));
            if left.is_zero() {
                return true;
            }
            if is_over() {
                return false;
            }
            match left.checked_sub(EARLY) {
                Some(sleep) if !sleep.is_zero() => std::thread::sleep(sleep.min(LOOK)),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Ours.
    pub now: u64,
    unix: u64,
}

impl Look {
    /// A kernel's stamp from just before this look, by our clock. A stamp that cannot be, because the date was set, is taken for now.
    pub fn stamped(&self, stamp: Option<u64>) -> u64 {
        let age = stamp.and_then(|stamp| self.unix.checked_sub(stamp)).filter(|age| *age <= OLDEST_NS);
        self.now.saturating_sub(age.unwrap_or(0))
    }
}

fn unix() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_that_cannot_be_are_taken_for_now() {
        let look = Look { now: 5_000_000_000, unix: 1_000_000_000_000 };
        let cases = [
            (Some(999_999_000_000), 4_999_000_000),
            (Some(1_000_000_000_001), 5_000_000_000),
            (Some(0), 5_000_000_000),
            (None, 5_000_000_000),
        ];
        for (stamp, expected) in cases {
            assert_eq!(look.stamped(stamp), expected, "{stamp:?}");
        }
    }
}
