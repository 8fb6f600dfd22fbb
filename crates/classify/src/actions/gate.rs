//! `gate`: packets pass while a gate is open (IEEE 802.1Qci).
//!
//! The schedule starts at the first multiple of the cycle after its base; before, the gate is open. From then
//! on the intervals follow each other without end. All clocks count from the machine's time 0.

use tidegate_packet::Time;
use tidegate_policy::{Errno, Gate, GateClock, GateEntry, TcError};

/// What a gate remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// When its schedule starts.
    start: u64,
    /// When the state began in which `bytes` were counted.
    since: u64,
    bytes: u64,
}

/// How a gate treats a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Passes,
    /// The gate is closed.
    Closed,
    /// More bytes than may pass while the gate is open.
    TooMuch,
}

/// What the kernel takes for no gate, if none was there before.
pub(super) fn check(gate: &Gate) -> Result<(), TcError> {
    if gate.schedule.is_empty() {
        return Err(TcError::new(Errno::Inval, "The entry list is empty"));
    }
    if gate.schedule.iter().any(|entry| entry.interval_ns == 0) {
        return Err(TcError::new(Errno::Inval, "Invalid interval for schedule entry"));
    }
    Ok(())
}

/// A gate with what a change gives; the rest is as it was, or has its default.
pub(super) fn merged(old: &Gate, new: &Gate) -> Gate {
    let fresh = !new.schedule.is_empty();
    let schedule = if fresh { &new.schedule } else { &old.schedule }.clone();
    let sum = cycle(&schedule);
    // A new schedule brings its own cycle.
    let kept = old.cycle_ns.filter(|_| !fresh);
    Gate {
        priority: new.priority.or(old.priority).or(Some(-1)),
        clock: new.clock.or(old.clock).or(Some(GateClock::default())),
        flags: new.flags.or(old.flags).or(Some(0)),
        base_ns: new.base_ns.or(old.base_ns).or(Some(0)),
        cycle_ns: new.cycle_ns.filter(|cycle| *cycle > 0).or(kept).or(Some(sum)),
        extension_ns: new.extension_ns.or(old.extension_ns).or(Some(0)),
        schedule,
        control: new.control,
    }
}

fn cycle(schedule: &[GateEntry]) -> u64 {
    schedule.iter().map(|entry| u64::from(entry.interval_ns)).sum()
}

impl State {
    /// A gate that is made or changed now.
    pub(super) fn new(gate: &Gate, now: Time) -> State {
        let (base, cycle) =
            (i128::from(gate.base_ns.unwrap_or(0)), i128::from(gate.cycle_ns.unwrap_or(1).max(1)));
        let now = i128::from(now.0);
        let start = if base > now { base } else { base + ((now - base) / cycle + 1) * cycle };
        State { start: u64::try_from(start).unwrap_or(u64::MAX), since: 0, bytes: 0 }
    }

    /// A packet of `len` bytes comes.
    pub(super) fn admit(&mut self, gate: &Gate, len: u32, now: Time) -> Passage {
        let Some(since_start) = now.0.checked_sub(self.start) else { return Passage::Passes };
        let round = cycle(&gate.schedule).max(1);
        let (mut begin, mut left) = (now.0 - since_start % round, since_start % round);
        for entry in &gate.schedule {
            let interval = u64::from(entry.interval_ns);
            if left >= interval {
                (begin, left) = (begin + interval, left - interval);
                continue;
            }
            return self.meet(entry, begin, len);
        }
        Passage::Passes
    }

    fn meet(&mut self, entry: &GateEntry, begin: u64, len: u32) -> Passage {
        if !entry.open {
            return Passage::Closed;
        }
        let Ok(most) = u64::try_from(entry.max_bytes) else { return Passage::Passes };
        if self.since != begin {
            (self.since, self.bytes) = (begin, 0);
        }
        self.bytes += u64::from(len);
        if self.bytes > most { Passage::TooMuch } else { Passage::Passes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;

    fn entry(open: bool, ms: u32, max_bytes: i32) -> GateEntry {
        GateEntry { open, interval_ns: ms * 1_000_000, priority: -1, max_bytes }
    }

    /// The milliseconds at which packets of 500 bytes pass, of those at which the recorded run had some.
    fn passes(gate: Gate) -> Vec<u64> {
        let gate = merged(&Gate::default(), &gate);
        let mut state = State::new(&gate, Time(0));
        // The 6.1 kernel's run began 8 seconds earlier; all cycles divide that.
        state.start = state.start.min(gate.base_ns.unwrap_or(0) as u64);
        let times = (0..7).flat_map(|ten| [0, 1, 4, 9].map(|ms| 10 * ten + ms));
        times.filter(|ms| state.admit(&gate, 500, Time(ms * MS)) == Passage::Passes).collect()
    }

    #[test]
    fn packets_pass_while_the_gate_is_open() {
        let schedule = alloc::vec![entry(true, 10, -1), entry(false, 10, -1)];
        let open = [0, 1, 4, 9, 20, 21, 24, 29, 40, 41, 44, 49, 60, 61, 64, 69];
        assert_eq!(passes(Gate { schedule, ..Gate::default() }), open);
        // Before the base, all pass; the cycle does not change the order of intervals.
        let schedule = alloc::vec![entry(false, 10, -1), entry(true, 10, -1)];
        let late = [0, 1, 4, 9, 10, 11, 14, 19, 30, 31, 34, 39, 50, 51, 54, 59];
        let base_ns = Some(20 * MS as i64);
        assert_eq!(passes(Gate { schedule: schedule.clone(), base_ns, ..Gate::default() }), late);
        let cycle_ns = Some(15 * MS);
        assert_eq!(passes(Gate { schedule, base_ns, cycle_ns, ..Gate::default() }), late);
    }

    #[test]
    fn bytes_are_counted_anew_each_time_it_opens() {
        let schedule = alloc::vec![entry(true, 10, 1200), entry(false, 10, 5)];
        assert_eq!(passes(Gate { schedule, ..Gate::default() }), [0, 1, 20, 21, 40, 41, 60, 61]);
    }

    #[test]
    fn a_schedule_starts_at_the_next_multiple_of_its_cycle() {
        let schedule = alloc::vec![entry(false, 3, -1), entry(true, 4, -1)];
        let gate = merged(&Gate::default(), &Gate { schedule, base_ns: Some(MS as i64), ..Gate::default() });
        let start = |ms: u64| State::new(&gate, Time(ms * MS)).start / MS;
        assert_eq!([0, 1, 7, 8, 9].map(start), [1, 8, 8, 15, 15]);
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let all = Gate {
            priority: Some(3),
            clock: Some(GateClock::Monotonic),
            flags: Some(15),
            base_ns: Some(5),
            cycle_ns: Some(100),
            extension_ns: Some(2),
            schedule: alloc::vec![entry(true, 2, -1)],
            ..Gate::default()
        };
        let other = Gate { clock: Some(GateClock::Tai), ..Gate::default() };
        assert_eq!(merged(&all, &other), Gate { clock: Some(GateClock::Tai), ..all.clone() });
        let schedule = alloc::vec![entry(true, 5, -1)];
        let newer = merged(&all, &Gate { schedule: schedule.clone(), ..Gate::default() });
        assert_eq!(newer, Gate { schedule, cycle_ns: Some(5 * MS), ..all });
    }
}
