//! Hosts asked again and again: on schedule, whatever is lost or late.
//!
//! ```text
//! plans ─▶ Pinger: one thread ── sends when due ──▶ sockets ──▶ hears answers, departures, errors ──▶ book: the document's targets
//!                                                                                 look, stop, end ◀──┘
//! ```
//! Requests of several targets are spread over the interval, so that they do not wait for each other.

mod book;
pub(crate) mod message;
mod run;
pub(crate) mod socket;

use crate::{Error, Family, addresses};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegate_measure::pinged::Target;

pub use tidegate_measure::pinged::Way;

/// The most targets at once.
pub const MOST_TARGETS: usize = 64;
/// The most requests that are kept, of all targets.
pub const MOST_REQUESTS: u64 = 4_000_000;
/// Whoever is not root asks no more often.
pub const LEAST_INTERVAL: Duration = Duration::from_millis(2);
/// Nobody asks more often.
pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(100);
/// Octets of data, where nothing is said: as ping's.
pub const USUAL_SIZE: u16 = 56;

/// Whom to ask, how, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is called in results.
    pub id: String,
    /// The host as it was named.
    pub host: String,
    /// Its address.
    pub address: IpAddr,
    /// How.
    pub way: Way,
    /// The DS field, with ECN.
    pub ds_field: u8,
    /// Octets of data.
    pub size: u16,
    /// Whoever stands at this hop is asked, not the host.
    pub hop_limit: Option<u8>,
    /// From one request to the next.
    pub interval: Duration,
    /// How many requests; `None`: until it is stopped.
    pub count: Option<u64>,
}

impl Plan {
    /// Asks a host as ping does: five times a second, until it is stopped. Of its addresses the first that this computer knows a way to is taken.
    ///
    /// # Errors
    /// It has no address, or none that can be reached.
    pub fn new(host: &str, family: Family) -> Result<Plan, Error> {
        let found = addresses(host, family)?;
        let address = found.iter().find(|address| socket::is_reached(**address)).or(found.first());
        let address = *address.ok_or_else(|| Error::Wrong(format!("`{host}` has no address")))?;
        Ok(Plan {
            id: host.to_owned(),
            host: host.to_owned(),
            address,
            way: Way::Icmp,
            ds_field: 0,
            size: USUAL_SIZE,
            hop_limit: None,
            interval: Duration::from_millis(200),
            count: None,
        })
    }

    fn check(&self) -> Result<(), Error> {
        let root = tidegate_sys::process::effective_uid() == 0;
        let least = if root { SHORTEST_INTERVAL } else { LEAST_INTERVAL };
        if self.interval < least {
            let who = if root { "" } else { " (root may ask more often)" };
            return Err(Error::Wrong(format!("the shortest interval is {} ms{who}", least.as_secs_f64() * 1e3)));
        }
        if self.size > message::MOST_DATA {
            return Err(Error::Wrong(format!("a request has at most {} octets of data", message::MOST_DATA)));
        }
        Ok(())
    }
}

/// Pings at work, in a thread of their own.
#[derive(Debug)]
pub struct Pinger {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    began_ns: u64,
}

/// What the thread and whoever looks have in common.
#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    stop: AtomicBool,
    over: AtomicBool,
}

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of each plan, in their order.
    pub targets: Vec<Target>,
    /// How long it has gone on, ns.
    pub now_ns: u64,
    /// How often the wall clock was set meanwhile; answers of those moments have no stamps of the kernel.
    pub clock_steps: u32,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// Why it ended early, other than by being stopped.
    pub trouble: Option<String>,
    /// Of the last answer of each target: the DS field it came with, where the kernel tells.
    pub answered_ds_field: Vec<Option<u8>>,
    /// Who sent it.
    pub answered_by: Vec<Option<IpAddr>>,
}

impl Pinger {
    /// Begins to ask.
    ///
    /// # Errors
    /// Too many targets, too short an interval, no permission, no way to somebody.
    pub fn begin(plans: &[Plan]) -> Result<Pinger, Error> {
        if plans.is_empty() || plans.len() > MOST_TARGETS {
            return Err(Error::Wrong(format!("from 1 to {MOST_TARGETS} targets can be asked at once")));
        }
        plans.iter().try_for_each(Plan::check)?;
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

    /// Looks at what was seen so far. Whoever looks long keeps answers waiting, though not their times.
    pub fn look<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        read(&lock(&self.shared))
    }

    /// Are all answered, or given up?
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// Asks no more and gives what was seen. Requests that may still be answered are left out, unless all were sent and waited for.
    pub fn end(mut self) -> Seen {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        std::mem::take(&mut lock(&self.shared))
    }

    /// Waits until all are answered or given up, and gives what was seen.
    pub fn finish(mut self) -> Seen {
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

fn lock(shared: &Shared) -> MutexGuard<'_, Seen> {
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
}
