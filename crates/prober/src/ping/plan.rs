//! What is asked, and what was seen so far.

use super::message;
use crate::error::Error;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_measure::pinged::{Target, Way};

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
    pub(super) fn check(&self) -> Result<(), Error> {
        let root = tidegate_sys::process::effective_uid() == 0;
        let least = if root { SHORTEST_INTERVAL } else { LEAST_INTERVAL };
        if self.interval < least {
            let who = if root { "" } else { " (root may ask more often)" };
            return Err(Error::Wrong(format!(
                "the shortest interval is {} ms{who}",
                least.as_secs_f64() * 1e3
            )));
        }
        if self.size > message::MOST_DATA {
            return Err(Error::Wrong(format!("a request has at most {} bytes of data", message::MOST_DATA)));
        }
        Ok(())
    }
}

/// What the thread and whoever looks have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) seen: Mutex<Seen>,
    pub(super) stop: AtomicBool,
    pub(super) over: AtomicBool,
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

pub(super) fn lock(shared: &Shared) -> MutexGuard<'_, Seen> {
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
}
