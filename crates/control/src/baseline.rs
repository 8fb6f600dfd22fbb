//! The least of a delay lately: what the path takes without queues.

use tidegate_packet::{Nanos, Time};

/// The least value of the last one to two windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    window: Nanos,
    since: Time,
    now: i64,
    before: i64,
}

impl Baseline {
    /// Begins with a value, ns.
    pub(crate) fn new(window: Nanos, at: Time, value: i64) -> Baseline {
        Baseline { window, since: at, now: value, before: value }
    }

    /// Takes a value in, and returns how far it is above the least one, ns.
    pub(crate) fn above(&mut self, at: Time, value: i64) -> i64 {
        if at.since(self.since) >= self.window {
            (self.before, self.now, self.since) = (self.now, value, at);
        }
        self.now = self.now.min(value);
        value - self.now.min(self.before)
    }

    /// The path became longer by so much, ns.
    pub(crate) fn raise(&mut self, by: i64) {
        self.now = self.now.saturating_add(by);
        self.before = self.before.saturating_add(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_last_windows_is_the_base() {
        let second = |n: u64| Time(n * 1_000_000_000);
        let mut base = Baseline::new(Nanos::secs(10), second(0), 50);
        let values = [(1, 70), (2, 40), (3, 60), (13, 60), (20, 60), (24, 60), (25, 65)];
        let above = values.map(|(at, value)| base.above(second(at), value));
        // The 40 of second 2 counts until the window after its own has ended.
        assert_eq!(above, [20, 0, 20, 20, 20, 0, 5]);
        base.raise(100);
        assert_eq!(base.above(second(26), 170), 10);
    }
}
