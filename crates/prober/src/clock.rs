//! The clock that measurements go by: it never steps. The kernel stamps packets by the wall clock, which may.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far the wall clock may be moved between two looks besides what its steering does, ns.
const STEP_NS: i64 = 1_000_000;
/// The wall clock is steered by less than this part of the time that passes.
const STEERING: i64 = 1000;
/// A packet whose stamp is older has waited longer than any socket keeps one: the stamp is wrong, ns.
const OLDEST_NS: u64 = 60_000_000_000;

/// Sleep is left this early, to be on time by looking at the clock.
const EARLY: Duration = Duration::from_micros(60);
/// The longest sleep: it is looked whether all is over.
const LOOK: Duration = Duration::from_millis(50);

/// Nanoseconds since a beginning.
#[derive(Clone, Debug)]
pub struct ProbeClock {
    began: Instant,
    /// The wall-clock time of that moment, ns since 1970.
    epoch_ns: u64,
    steps: Steps,
}

impl ProbeClock {
    /// Begins now.
    pub fn begin() -> ProbeClock {
        ProbeClock { began: Instant::now(), epoch_ns: wall(), steps: Steps::default() }
    }

    /// ns since it began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits until a time, to a few microseconds; false: `is_over` became true before.
    pub fn wait_until(&self, at_ns: u64, is_over: impl Fn() -> bool) -> bool {
        loop {
            let left = Duration::from_nanos(at_ns.saturating_sub(self.now()));
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

    /// The instant of a time of this clock.
    pub fn instant(&self, at_ns: u64) -> Instant {
        self.began + Duration::from_nanos(at_ns)
    }

    /// When it began, ns since 1970, by the wall clock of that moment.
    pub fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// When something happened that the kernel stamped `stamp_ns` since 1970 and that we see now: by the
    /// stamp, or now where there is none that can be believed.
    pub fn stamped(&mut self, stamp_ns: Option<u64>) -> u64 {
        let now = self.now();
        let wall_ns = wall();
        let believed = self.steps.looked(now, wall_ns.wrapping_sub(self.epoch_ns) as i64);
        let age = stamp_ns.filter(|_| believed).and_then(|stamp| wall_ns.checked_sub(stamp));
        age.filter(|age| *age <= OLDEST_NS.min(now)).map_or(now, |age| now - age)
    }

    /// How often the wall clock was seen to have been set meanwhile.
    pub fn steps(&self) -> u32 {
        self.steps.count
    }
}

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether the two clocks still go together.
#[derive(Clone, Debug, Default)]
struct Steps {
    count: u32,
    /// When we last looked, and how far the wall clock was ahead.
    last: (u64, i64),
}

impl Steps {
    /// Both clocks, ns since the beginning. False: the wall clock was set since the last look.
    fn looked(&mut self, now: u64, wall_ns: i64) -> bool {
        let ahead = wall_ns.wrapping_sub(now as i64);
        let passed = i64::try_from(now.saturating_sub(self.last.0)).unwrap_or(i64::MAX);
        let moved = ahead.wrapping_sub(self.last.1).unsigned_abs();
        let stepped = moved > (STEP_NS + passed / STEERING).unsigned_abs();
        self.count += u32::from(stepped);
        self.last = (now, ahead);
        !stepped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_wall_clock_that_is_set_is_noticed_and_one_that_is_steered_is_not() {
        let mut steps = Steps::default();
        // Both clocks in seconds; the wall clock 500 ppm fast, then set by an hour, then right again, then
        // set back by 3 ms.
        let looks = [
            (10 * SECOND, 10 * SECOND + 5_000_000, true),
            (11 * SECOND, 11 * SECOND + 5_500_000, true),
            (12 * SECOND, 3612 * SECOND, false),
            (13 * SECOND, 3613 * SECOND, true),
            (14 * SECOND, 3614 * SECOND - 3_000_000, false),
        ];
        for (now, wall, expected) in looks {
            assert_eq!(steps.looked(now as u64, wall), expected, "at {now}");
        }
        assert_eq!(steps.count, 2);
    }

    #[test]
    fn a_stamp_from_before_the_beginning_or_from_the_future_is_not_believed() {
        let mut clock = ProbeClock::begin();
        let (before, after) = (clock.epoch_ns() - 5 * SECOND as u64, clock.epoch_ns() + 3600 * SECOND as u64);
        for stamp in [before, after] {
            let now = clock.now();
            assert!(clock.stamped(Some(stamp)) >= now, "what cannot be is taken as now");
        }
        assert_eq!(clock.steps(), 0);
    }
}
