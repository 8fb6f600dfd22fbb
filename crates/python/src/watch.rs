//! Long work on a thread of its own, while Python's lock is free: Ctrl-C ends it, and its progress is
//! reported.

use crate::failure::Failure;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How often signals and progress are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long work that was stopped may take to end before it is left alone. What is left is a script in its
/// sandbox until its time limit; its result goes nowhere.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the work and its caller share.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Set once the work is to end.
    pub(crate) stop: AtomicBool,
    /// How much is done,
    pub(crate) done: AtomicU64,
    /// of how much; 0: not known.
    pub(crate) total: AtomicU64,
    ended: AtomicBool,
}

/// The end of work that was stopped where it cannot return.
struct Stopped;

impl Watch {
    /// So many more are done.
    pub(crate) fn add(&self, more: u64) {
        self.done.fetch_add(more, Ordering::Relaxed);
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.add(1);
    }

    /// One more is done; ends the thread if it is to stop.
    pub(crate) fn step_or_unwind(&self) {
        self.step();
        if self.stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// Wakes the caller when the work ends, however it does.
struct Wake(Arc<Watch>, Thread);

impl Drop for Wake {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.1.unpark();
    }
}

/// Does work on a thread of its own. `report` is called with how much is done and of how much.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    report: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let wake = Wake(watch.clone(), thread::current());
    let worker = thread::Builder::new().name("tidegate".into()).spawn(move || {
        let wake = wake;
        work(&wake.0)
    });
    let worker = worker
        .map_err(|error| Failure::input(format!("cannot start a thread: {error}")).into_exception(py))?;
    let mut reported = (0, 0);
    while !watch.ended.load(Ordering::Acquire) {
        py.detach(|| thread::park_timeout(TICK));
        let step = py.check_signals().and_then(|()| tell(report, &watch, &mut reported));
        if let Err(error) = step {
            watch.stop.store(true, Ordering::Relaxed);
            let until = Instant::now() + PATIENCE;
            py.detach(|| {
                while !watch.ended.load(Ordering::Acquire) && Instant::now() < until {
                    thread::park_timeout(TICK);
                }
            });
            return Err(error);
        }
    }
    let result = worker.join().unwrap_or_else(|_| Err(Failure::internal()));
    tell(report, &watch, &mut reported)?;
    result.map_err(|failure| failure.into_exception(py))
}

fn tell(report: Option<&Bound<'_, PyAny>>, watch: &Watch, before: &mut (u64, u64)) -> PyResult<()> {
    let now = (watch.done.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
    if let Some(report) = report.filter(|_| now != *before) {
        *before = now;
        report.call1(now)?;
    }
    Ok(())
}
