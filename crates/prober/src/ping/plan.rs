//! The schedule of a ping, and its progress.

use super::message;
use crate::error::Error;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_measure::pinged::{PingMethod, PingTarget};

/// The most targets at once.
pub const MOST_TARGETS: usize = 64;
/// The most requests that are kept, of all targets.
pub const MOST_REQUESTS: u64 = 4_000_000;
/// The shortest interval for other users than root.
pub const LEAST_INTERVAL: Duration = Duration::from_millis(2);
/// The shortest interval of all.
pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(100);
/// Bytes of data, where nothing is reported: as ping's.
pub const USUAL_SIZE: u16 = 56;

/// Whom to ask, how, and how often.
#[derive(Clone, Debug)]
pub struct PingSchedule {
    /// What it is called in results.
    pub id: String,
    /// The host as it was named.
    pub host: String,
    /// The target's address.
    pub address: IpAddr,
    /// The method.
    pub way: PingMethod,
    /// The DS field, with ECN.
    pub ds_field: u8,
    /// Bytes of data.
    pub size: u16,
    /// The hop at this distance is pinged, not the host.
    pub hop_limit: Option<u8>,
    /// From one request to the next.
    pub interval: Duration,
    /// How many requests; `None`: until it is stopped.
    pub count: Option<u64>,
}

impl PingSchedule {
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

/// The state that the thread shares with its readers.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) seen: Mutex<PingProgress>,
    pub(super) stop: AtomicBool,
    pub(super) over: AtomicBool,
}

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct PingProgress {
    /// Of each plan, in their order.
    pub targets: Vec<PingTarget>,
    /// How long it has gone on, ns.
    pub now_ns: u64,
    /// How often the wall clock was set meanwhile; answers of those moments have no stamps of the kernel.
    pub clock_steps: u32,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// Why it ended early, other than by being stopped.
    pub problem: Option<String>,
    /// Of the last answer of each target: the DS field it came with, where the kernel reports.
    pub answered_ds_field: Vec<Option<u8>>,
    /// Of each target's last reply: its sender.
    pub answered_by: Vec<Option<IpAddr>>,
}

pub(super) fn lock(shared: &Shared) -> MutexGuard<'_, PingProgress> {
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
}
