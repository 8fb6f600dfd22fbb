//! Pings on a schedule, independent of losses and delays.
//!
//! ```text
//! plans ─▶ Pinger: one thread ── sends when due ──▶ sockets ──▶ receives replies, departures, errors ──▶ requests: the document's targets
//!                                                                                 look, stop, end ◀──┘
//! ```
//! Requests of several targets are spread over the interval, so that they do not wait for each other.

pub(crate) mod message;
mod plan;
mod requests;
mod run;
pub(crate) mod socket;

use crate::{AddressFamily, Error, addresses};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

pub use plan::{
    LEAST_INTERVAL, MOST_REQUESTS, MOST_TARGETS, PingProgress, PingSchedule, SHORTEST_INTERVAL, USUAL_SIZE,
};
pub use tidegate_measure::pinged::PingMethod;

use plan::{Shared, lock};

impl PingSchedule {
    /// Asks a host as ping does: five times a second, until it is stopped. Of its addresses the first that
    /// this computer knows a way to is taken.
    ///
    /// # Errors
    /// It has no address, or none that can be reached.
    pub fn new(host: &str, family: AddressFamily) -> Result<PingSchedule, Error> {
        let found = addresses(host, family)?;
        let address = found.iter().find(|address| socket::is_reached(**address)).or(found.first());
        let address = *address.ok_or_else(|| Error::Wrong(format!("`{host}` has no address")))?;
        Ok(PingSchedule {
            id: host.to_owned(),
            host: host.to_owned(),
            address,
            way: PingMethod::Icmp,
            ds_field: 0,
            size: USUAL_SIZE,
            hop_limit: None,
            interval: Duration::from_millis(200),
            count: None,
        })
    }
}

/// Pings at work, in a thread of their own.
#[derive(Debug)]
pub struct Pinger {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    began_ns: u64,
}

impl Pinger {
    /// Begins to ask.
    ///
    /// # Errors
    /// Too many targets, too short an interval, no permission, no route to a target.
    pub fn begin(plans: &[PingSchedule]) -> Result<Pinger, Error> {
        if plans.is_empty() || plans.len() > MOST_TARGETS {
            return Err(Error::Wrong(format!("from 1 to {MOST_TARGETS} targets can be asked at once")));
        }
        plans.iter().try_for_each(PingSchedule::check)?;
        let run = run::Run::new(plans)?;
        let began_ns = run.began_ns();
        let shared = Arc::new(Shared::default());
        *lock(&shared) = run.nothing_yet(plans);
        let theirs = Arc::clone(&shared);
        let work = move || {
            run.go(&theirs);
            theirs.over.store(true, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("ping".to_owned()).spawn(work);
        let thread = Some(thread.map_err(Error::io("start a thread"))?);
        Ok(Pinger { shared, thread, began_ns })
    }

    /// When it began, ns since 1970.
    pub fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// Reads the progress so far. A long read delays the handling of replies, though not their times.
    pub fn look<T>(&self, read: impl FnOnce(&PingProgress) -> T) -> T {
        read(&lock(&self.shared))
    }

    /// Are all answered, or abandoned?
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// Asks no more and gives what was seen. Requests that may still be answered are left out, unless all
    /// were sent and waited for.
    pub fn end(mut self) -> PingProgress {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        std::mem::take(&mut lock(&self.shared))
    }

    /// Waits until all are answered or abandoned, and gives what was seen.
    pub fn finish(mut self) -> PingProgress {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        std::mem::take(&mut lock(&self.shared))
    }
}

impl Drop for Pinger {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
