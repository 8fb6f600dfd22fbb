//! The clock that all loads go by, and threads that look at it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_sys::scheduling::{self, SchedulingGuard};

/// The priority of threads before usual programs: behind the network itself.
pub(super) const URGENT: i32 = 40;
/// How often a thread that waits looks whether it shall end.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// When things began, and whether they are over: the same for all that is going on.
#[derive(Clone, Debug)]
pub struct LoadClock {
    pub(super) began: Instant,
    pub(super) over: Arc<AtomicBool>,
    /// A thread with this clock runs before usual programs.
    pub(super) urgent: bool,
}

impl LoadClock {
    /// Times are counted from `began`. `urgent`: threads with this clock run before usual programs, if
    /// permitted.
    pub fn new(began: Instant, urgent: bool) -> LoadClock {
        LoadClock { began, over: Arc::default(), urgent }
    }

    /// ns since the beginning.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Everybody shall end.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Shall everyone end?
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Until a time, as far as it lies ahead.
    pub(super) fn until(&self, at: u64) -> Duration {
        Duration::from_nanos(at.saturating_sub(self.now()))
    }

    /// Sleeps until a time; false: all is over before.
    pub(super) fn sleep_until(&self, at: u64) -> bool {
        loop {
            let left = self.until(at);
            if self.is_over() {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

/// What several threads write; a thread that panicked while it wrote leaves what it had written.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All of a host's addresses, of the family of another one.
pub(super) fn any_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A thread with a name that goes by a clock; it belongs to the namespace of the one that starts it.
pub(super) fn spawn(
    clock: LoadClock,
    name: &str,
    work: impl FnOnce(&LoadClock) + Send + 'static,
) -> io::Result<()> {
    let work = move || {
        scheduling::wake_on_time();
        let mut turn = SchedulingGuard::usual();
        if clock.urgent {
            // Whether that is permitted was found out when it was requested.
            let _ = turn.before_others(URGENT);
        }
        work(&clock);
    };
    std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work).map(drop)
}

/// Nothing was there to be read, or written, in time.
pub(super) fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
