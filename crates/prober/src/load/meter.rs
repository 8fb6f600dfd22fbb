//! A running load: bytes by step, the rate it may reach, and its threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A step of the counts, ns.
pub(super) const STEP: u64 = 100_000_000;
/// The rate at which loads begin, and the highest, bits per second.
pub(super) const FIRST: f64 = 256e3;
/// The most steps: longer loads need another request.
pub(super) const LONGEST: usize = 36_000;

/// Bytes by step.
#[derive(Debug)]
pub struct ByteMeter {
    pub(super) began: Instant,
    pub(super) steps: Mutex<Vec<u64>>,
}

impl ByteMeter {
    pub(super) fn new(began: Instant) -> ByteMeter {
        ByteMeter { began, steps: Mutex::default() }
    }

    pub(super) fn add(&self, bytes: u64) {
        let step =
            usize::try_from(self.began.elapsed().as_nanos() as u64 / STEP).unwrap_or(usize::MAX).min(LONGEST);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() <= step {
            steps.resize(step + 1, 0);
        }
        steps[step] += bytes;
    }

    /// Bytes between two moments, ns from the beginning; whole steps, a step that is only partly meant as far
    /// as it is.
    #[must_use]
    pub fn bytes(&self, from: u64, to: u64) -> u64 {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let part = |(n, bytes): (usize, &u64)| {
            let (begin, end) = (n as u64 * STEP, (n as u64 + 1) * STEP);
            let meant = to.min(end).saturating_sub(from.max(begin));
            (u128::from(*bytes) * u128::from(meant) / u128::from(STEP)) as u64
        };
        steps.iter().enumerate().map(part).sum()
    }

    /// Bits per second between two moments.
    #[must_use]
    pub fn rate(&self, from: u64, to: u64) -> f64 {
        tidegate_measure::bits_per_second(self.bytes(from, to), to.saturating_sub(from))
    }
}

/// A load at work; it ends when this is dropped.
#[derive(Debug)]
pub struct RunningLoad {
    /// What was carried, by step.
    pub meter: Arc<ByteMeter>,
    pub(super) shared: Arc<Shared>,
    pub(super) threads: Vec<JoinHandle<()>>,
}

/// The state that a load's threads share with its readers.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) over: AtomicBool,
    /// The line has been full.
    pub(super) full: AtomicBool,
    /// From now on only as much as is needed to know the rate.
    pub(super) level: AtomicBool,
    /// Why it stopped on its own.
    pub(super) problem: Mutex<Option<String>>,
}

impl Shared {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self, problem: impl Into<String>) {
        let mut guard = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        guard.get_or_insert(problem.into());
    }
}

impl RunningLoad {
    pub(super) fn new(began: Instant) -> RunningLoad {
        RunningLoad { meter: Arc::new(ByteMeter::new(began)), shared: Arc::default(), threads: Vec::new() }
    }

    pub(super) fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(&Shared, &ByteMeter) + Send + 'static,
    ) -> Result<(), crate::error::Error> {
        let (shared, meter) = (Arc::clone(&self.shared), Arc::clone(&self.meter));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared, &meter));
        self.threads.push(thread.map_err(crate::error::Error::io("start a thread"))?);
        Ok(())
    }

    /// Whether the line was full, as far as the load itself shows it.
    #[must_use]
    pub fn was_full(&self) -> bool {
        self.shared.full.load(Ordering::Acquire)
    }

    /// Only as much as is needed to know the rate, from now on.
    pub fn level(&self) {
        self.shared.level.store(true, Ordering::Release);
    }

    /// Why it stopped on its own, if it did.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// When the next packet is due, at a rate that changes: what was missed is sent at once, but no more than a
/// few milliseconds of it.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) due: Instant,
}

/// What is made up for at most.
pub(super) const MADE_UP: Duration = Duration::from_millis(5);
/// The shortest sleep that is worth it.
pub(super) const NAP: Duration = Duration::from_micros(100);

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { due: Instant::now() }
    }

    /// How many packets of this many bytes are due at this rate, until now.
    pub(super) fn due(&mut self, bytes: usize, bits_per_second: f64) -> u32 {
        let now = Instant::now();
        let gap = Duration::from_secs_f64(bytes as f64 * 8.0 / bits_per_second.max(1.0));
        self.due = self.due.max(now.checked_sub(MADE_UP.max(gap)).unwrap_or(now));
        let mut count = 0;
        while self.due <= now {
            self.due += gap;
            count += 1;
        }
        count
    }

    /// Sleeps until the next one is due, or the socket must be read.
    pub(super) fn rest(&self, at_most: Duration) {
        let left = self.due.saturating_duration_since(Instant::now()).min(at_most);
        if left >= NAP {
            std::thread::sleep(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_as_far_as_it_is_meant() {
        let meter = ByteMeter { began: Instant::now(), steps: Mutex::new(vec![1000, 2000, 4000]) };
        assert_eq!(meter.bytes(0, 300_000_000), 7000);
        assert_eq!(meter.bytes(50_000_000, 250_000_000), 500 + 2000 + 2000);
        assert_eq!(meter.rate(100_000_000, 200_000_000), 160_000.0);
        assert_eq!(meter.bytes(300_000_000, 100_000_000), 0);
    }
}
