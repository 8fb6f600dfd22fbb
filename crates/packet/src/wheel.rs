//! Timers of the kind that Linux's maintenance work uses: in jiffies, on a wheel whose levels grow coarser with distance.

use crate::units::{Jiffies, Time};
use core::cell::Cell;
use core::cmp::Ordering;

/// An armed timer.
///
/// Timers are ordered as they fire: by time, then those of the coarser level, then the one armed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// When it fires.
    pub at: Time,
    level: u8,
    armed: u64,
}

impl Timer {
    /// Not armed.
    pub const NEVER: Timer = Timer { at: Time::NEVER, level: 0, armed: 0 };
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> Ordering {
        self.at.cmp(&other.at).then(other.level.cmp(&self.level)).then(other.armed.cmp(&self.armed))
    }
}
impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The wheel of one machine, for timers that may be late.
///
/// How coarsely a timer is placed depends on how far the wheel has been turned. These timers do not wake a sleeping machine, so the
/// wheel may lag: behind one that is due and has not fired, or, on a machine that never had reason to turn it, since the start.
#[derive(Debug)]
pub struct Wheel {
    jiffies: Jiffies,
    never_turned: Cell<bool>,
    pending: Cell<Time>,
    armed: Cell<u64>,
}

impl Wheel {
    /// A wheel that is turned in time.
    pub fn new(jiffies: Jiffies) -> Wheel {
        Wheel { jiffies, never_turned: Cell::new(false), pending: Cell::new(Time::NEVER), armed: Cell::new(0) }
    }

    /// Its tick.
    pub fn jiffies(&self) -> Jiffies {
        self.jiffies
    }

    /// Tells whether the wheel stands as it did when the machine started.
    pub fn set_never_turned(&self, never: bool) {
        self.never_turned.set(never);
    }

    /// Tells when the earliest armed timer is due, which may be past.
    pub fn set_pending(&self, due: Time) {
        self.pending.set(due);
    }

    /// Arms a timer for `secs` seconds after `now`; 0 does not arm.
    pub fn arm(&self, now: Time, secs: u32) -> Timer {
        if secs == 0 {
            return Timer::NEVER;
        }
        let hz = i64::from(self.jiffies.hz);
        let present = self.jiffies.at(now);
        let turned_to = if self.never_turned.get() { -300 * hz } else { self.jiffies.at(now.min(self.pending.get())) };
        let expires = present + i64::from(secs) * hz;
        let level = level(expires - turned_to);
        let shift = 3 * u32::from(level);
        let fires = ((expires >> shift) + 1) << shift;
        self.armed.set(self.armed.get() + 1);
        Timer { at: self.jiffies.time(fires), level, armed: self.armed.get() }
    }
}

/// The level on which a timer so many jiffies ahead is placed: each level has 64 places and is eight times as coarse as the one below.
fn level(ahead: i64) -> u8 {
    (0..8).find(|level| ahead < 63 << (3 * level)).unwrap_or(8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a recorded machine did: ten seconds from a wheel that never turned, and from one that turns in time.
    #[test]
    fn coarseness_depends_on_how_far_the_wheel_was_turned() {
        let wheel = Wheel::new(Jiffies { hz: 1000 });
        let at = |secs: u64| Time(secs * 1_000_000_000);
        let in_time = wheel.arm(at(120), 1).at;
        wheel.set_never_turned(true);
        let late = [wheel.arm(at(120), 1), wheel.arm(at(120), 3)];
        assert_eq!(in_time, Time(121_056_000_000));
        assert_eq!(late.map(|timer| timer.at), [Time(123_872_000_000); 2]);
        assert!(late[1] < late[0], "of two in one place the later armed fires first");
    }
}
