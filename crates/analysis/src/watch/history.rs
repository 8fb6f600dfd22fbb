//! The last intervals of each class.

use super::interval::{DeviceInterval, QueueRow};
use std::collections::{BTreeMap, VecDeque};

/// A class is idle after this many intervals in which nothing happened there, or as many as there were.
const IDLE_AFTER: usize = 10;

/// What is remembered of the last intervals: queueing delays, and whether anything happened at a class.
#[derive(Clone, Debug)]
pub struct DelayHistory {
    limit: usize,
    /// By device and class.
    classes: BTreeMap<(String, String), VecDeque<Past>>,
}

/// An interval of one class.
#[derive(Clone, Copy, Debug)]
struct Past {
    p99_ns: Option<u64>,
    active: bool,
}

impl DelayHistory {
    /// Remembers at most so many intervals (at least ten).
    pub fn new(limit: usize) -> DelayHistory {
        DelayHistory { limit: limit.max(IDLE_AFTER), classes: BTreeMap::new() }
    }

    /// Adds an interval of all devices. Classes that are not in it are forgotten.
    pub fn push(&mut self, intervals: &[DeviceInterval]) {
        let mut before = std::mem::take(&mut self.classes);
        for interval in intervals {
            for row in &interval.rows {
                let key = (interval.device.clone(), row.id.clone());
                let mut past = before.remove(&key).unwrap_or_default();
                past.push_back(Past { p99_ns: row.figures.p99_ns, active: is_active(row) });
                while past.len() > self.limit {
                    past.pop_front();
                }
                self.classes.insert(key, past);
            }
        }
    }

    /// The 99th percentiles of a class's queueing delay, in ns, the oldest first; `None`: nothing left in
    /// that interval, or delays are unknown.
    pub fn delays(&self, device: &str, class: &str) -> impl Iterator<Item = Option<u64>> + '_ {
        self.of(device, class).map(|past| past.p99_ns)
    }

    /// Whether no packet left, waited or was dropped in the last ten intervals (fewer, if there were fewer).
    pub fn is_idle(&self, device: &str, class: &str) -> bool {
        self.of(device, class).rev().take(IDLE_AFTER).all(|past| !past.active)
    }

    fn of(&self, device: &str, class: &str) -> impl DoubleEndedIterator<Item = &Past> + '_ {
        self.classes.get(&(device.to_owned(), class.to_owned())).into_iter().flatten()
    }
}

fn is_active(row: &QueueRow) -> bool {
    let figures = &row.figures;
    figures.pps > 0.0
        || figures.bps > 0.0
        || figures.drops > 0.0
        || figures.qlen > 0
        || figures.oldest_ns.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Figures;

    fn interval(classes: &[(&str, f64, Option<u64>)]) -> Vec<DeviceInterval> {
        let row = |&(id, pps, p99_ns): &(&str, f64, Option<u64>)| QueueRow {
            id: id.into(),
            figures: Figures { pps, p99_ns, ..Figures::default() },
            ..QueueRow::default()
        };
        vec![DeviceInterval {
            device: "eth0".into(),
            rows: classes.iter().map(row).collect(),
            ..DeviceInterval::default()
        }]
    }

    #[test]
    fn a_class_is_idle_after_ten_quiet_intervals() {
        let mut history = DelayHistory::new(0);
        history.push(&interval(&[("1:10", 1.0, Some(5)), ("1:20", 0.0, None)]));
        assert!(!history.is_idle("eth0", "1:10") && history.is_idle("eth0", "1:20"));
        for _ in 0..9 {
            history.push(&interval(&[("1:10", 0.0, None)]));
            assert!(!history.is_idle("eth0", "1:10"), "it was active less than ten intervals ago");
        }
        assert_eq!(history.delays("eth0", "1:10").count(), 10);
        history.push(&interval(&[("1:10", 0.0, None)]));
        assert!(history.is_idle("eth0", "1:10"));
        assert_eq!(history.delays("eth0", "1:10").flatten().count(), 0, "the limit is ten intervals");
    }

    #[test]
    fn a_class_that_is_gone_is_forgotten() {
        let mut history = DelayHistory::new(20);
        history.push(&interval(&[("1:10", 1.0, Some(5))]));
        assert_eq!(history.delays("eth0", "1:10").collect::<Vec<_>>(), [Some(5)]);
        assert_eq!(history.delays("eth1", "1:10").count(), 0, "of another device");
        history.push(&interval(&[]));
        assert_eq!(history.delays("eth0", "1:10").count(), 0);
    }

    #[test]
    fn waiting_and_dropped_packets_are_activity() {
        let with = |figures| is_active(&QueueRow { figures, ..QueueRow::default() });
        assert!(with(Figures { qlen: 1, ..Figures::default() }));
        assert!(with(Figures { drops: 0.1, ..Figures::default() }));
        assert!(with(Figures { oldest_ns: Some(1), ..Figures::default() }));
        assert!(!with(Figures { rate_bps: Some(1e6), marks: Some(0.0), ..Figures::default() }));
    }
}
