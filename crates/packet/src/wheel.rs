//! Timers of the kind that Linux's maintenance work uses: in jiffies, on a wheel whose levels grow coarser
//! with distance.

use crate::units::{Jiffies, Time};
use core::cell::Cell;
use core::cmp::Ordering;

/// An armed timer.
///
/// Timers are ordered as they fire: by time, then those of the coarser level, then the one armed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// When it fires; [`Time::NEVER`]: not armed.
    pub at: Time,
    level: u8,
    armed: u64,
}

impl Timer {
    /// A timer that is not armed.
    pub const NEVER: Timer = Timer { at: Time::NEVER, level: 0, armed: 0 };
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> Ordering {
        // Recorded: answers/timers-in-one-place-fire-last-armed-first.
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
/// How coarsely a timer is placed depends on how far the wheel has been turned. These timers do not wake a
/// sleeping machine, so the wheel may lag: behind one that is due and has not fired, or, on a machine that
/// never had reason to turn it, since the start.
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
        Wheel {
            jiffies,
            never_turned: Cell::new(false),
            pending: Cell::new(Time::NEVER),
            armed: Cell::new(0),
        }
    }

    /// The tick of the machine, in which timers are counted.
    pub fn jiffies(&self) -> Jiffies {
        self.jiffies
    }

    /// Returns whether the wheel is as it was when the machine started.
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
        let turned_to =
            if self.never_turned.get() { -300 * hz } else { self.jiffies.at(now.min(self.pending.get())) };
        let (fires, level) = place(present + i64::from(secs) * hz, turned_to);
        self.armed.set(self.armed.get() + 1);
        Timer { at: self.jiffies.time(fires), level, armed: self.armed.get() }
    }
}

/// Where a timer that expires at `expires` is put on a wheel turned to `turned_to`: when it fires, and its
/// level.
fn place(expires: i64, turned_to: i64) -> (i64, u8) {
    let level = level(expires - turned_to);
    let shift = 3 * u32::from(level);
    (((expires >> shift) + 1) << shift, level)
}

/// A timer that always fires in time and arms itself again: maintenance that a qdisc does on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicTimer {
    jiffies: Jiffies,
    next: Time,
}

impl PeriodicTimer {
    /// Not armed.
    pub fn never(jiffies: Jiffies) -> PeriodicTimer {
        PeriodicTimer { jiffies, next: Time::NEVER }
    }

    /// Armed at `now` for so many jiffies later.
    pub fn after(jiffies: Jiffies, now: Time, ticks: u32) -> PeriodicTimer {
        PeriodicTimer::until(jiffies, now, jiffies.at(now) + i64::from(ticks))
    }

    /// Armed at `now` to run out when the counter has this value.
    pub fn until(jiffies: Jiffies, now: Time, expires: i64) -> PeriodicTimer {
        PeriodicTimer { jiffies, next: jiffies.time(place(expires, jiffies.at(now)).0) }
    }

    /// The tick that the wheel was made with.
    pub fn jiffies(&self) -> Jiffies {
        self.jiffies
    }

    /// When it fired, if it has by `now`; it is armed again for `ticks` jiffies after that, or not at all
    /// when they are 0.
    pub fn fired(&mut self, now: Time, ticks: u32) -> Option<Time> {
        let at = self.fired_until(now, |present| present + i64::from(ticks))?;
        if ticks == 0 {
            self.next = Time::NEVER;
        }
        Some(at)
    }

    /// The timer's expiry and rearming until `now`; `next` gives from the counter when it expires again.
    pub fn fired_until(&mut self, now: Time, next: impl FnOnce(i64) -> i64) -> Option<Time> {
        let at = self.next;
        if at > now || at == Time::NEVER {
            return None;
        }
        // While timers of a jiffy run the wheel has already been turned to the next.
        let present = self.jiffies.at(at);
        self.next = self.jiffies.time(place(next(present), present + 1).0);
        Some(at)
    }
}

/// The level on which a timer so many jiffies ahead is placed: each level has 64 places and is eight times as
/// coarse as the one below.
fn level(ahead: i64) -> u8 {
    (0..8).find(|level| ahead < 63 << (3 * level)).unwrap_or(8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded: PIE with an update every 15 ms runs every 16 ms; one every 500 ms runs at the next multiple
    /// of 8 ms.
    #[test]
    fn maintenance_is_never_early() {
        let fired = |ticks: u32| {
            let mut timer = PeriodicTimer::after(Jiffies { hz: 1000 }, Time(120_000_000_000), ticks);
            [(); 3].map(|()| timer.fired(Time(130_000_000_000), ticks).map(|at| at.0 / 1_000_000))
        };
        assert_eq!(fired(15), [Some(120_016), Some(120_032), Some(120_048)]);
        assert_eq!(fired(500), [Some(120_504), Some(121_008), Some(121_512)]);
        let mut once = PeriodicTimer::after(Jiffies { hz: 250 }, Time(0), 1);
        assert_eq!(once.fired(Time(7_999_999), 0), None);
        assert_eq!(once.fired(Time(8_000_000), 0), Some(Time(8_000_000)));
        assert_eq!(once.fired(Time(1_000_000_000), 0), None);
    }

    /// What a recorded machine did: ten seconds from a wheel that never turned, and from one that turns in
    /// time.
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
