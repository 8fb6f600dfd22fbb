//! Waiting for many descriptors, repeatedly: they are named once, and nothing is allocated per wait.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// Descriptors that are reported at once; others are reported by the next call.
const AT_ONCE: usize = 32;

/// What is waited for.
pub struct Waiter {
    set: OwnedFd,
    ready: Vec<Event>,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("set", &self.set).finish_non_exhaustive()
    }
}

impl Waiter {
    /// Nothing yet.
    ///
    /// # Errors
    /// What `epoll_create1(2)` reports.
    pub fn new() -> io::Result<Waiter> {
        Ok(Waiter { set: epoll::create(CreateFlags::CLOEXEC)?, ready: Vec::with_capacity(AT_ONCE) })
    }

    /// Waits for this one too, until it is closed; `number` identifies it.
    ///
    /// # Errors
    /// What `epoll_ctl(2)` reports.
    pub fn add(&self, fd: impl AsFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.set, fd, EventData::new_u64(number), EventFlags::IN)?)
    }

    /// Waits until one of them can be read or was closed at its other end, or a time has passed (`None`:
    /// however long it takes). The numbers of those.
    ///
    /// # Errors
    /// What `epoll_wait(2)` reports, except interruptions, which count as nothing ready.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<impl Iterator<Item = u64>> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos() as _,
        });
        self.ready.clear();
        match epoll::wait(&self.set, spare_capacity(&mut self.ready), limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(self.ready.iter().map(|event| event.data.u64())),
            Err(error) => Err(error.into()),
        }
    }
}
