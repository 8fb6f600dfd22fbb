//! What real hosts do: transfers, pings, datagrams, what people wait for, and programs. Each is a few threads in the hosts' namespaces, with real
//! sockets; what they saw is kept here and read while they go on.

mod datagrams;
mod door;
mod errand;
mod ping;
mod program;
mod transfer;

pub use datagrams::{Datagrams, DatagramsPlan, Pace};
pub(crate) use door::Doors;
pub use errand::{Errand, ErrandPlan, Go};
pub use ping::{Ping, PingPlan};
pub use program::{Fate, Program, ProgramPlan};
pub use transfer::{Flow, Transfer, TransferPlan};

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_sys::turn::{self, Turn};

/// The priority of who goes before usual programs: behind the network itself.
const URGENT: i32 = 40;
/// How often a thread that waits looks whether it shall end.
const LOOK: Duration = Duration::from_millis(100);

/// When things began, and whether they are over: the same for all that is going on.
#[derive(Clone, Debug)]
pub struct Clock {
    began: Instant,
    over: Arc<AtomicBool>,
    /// Who looks at it goes before usual programs.
    urgent: bool,
}

impl Clock {
    /// Times are counted from `began`. `urgent`: whoever looks at it goes before usual programs, as far as he may.
    pub fn new(began: Instant, urgent: bool) -> Clock {
        Clock { began, over: Arc::default(), urgent }
    }

    /// ns since the beginning.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Everybody shall end.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Shall everybody end?
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Until a time, as far as it lies ahead.
    fn until(&self, at: u64) -> Duration {
        Duration::from_nanos(at.saturating_sub(self.now()))
    }

    /// Sleeps until a time; false: all is over before.
    fn sleep_until(&self, at: u64) -> bool {
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
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All of a host's addresses, of the family of another one.
fn any_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A thread with a name that goes by a clock; it belongs to the namespace of the one that starts it.
fn spawn(clock: Clock, name: &str, work: impl FnOnce(&Clock) + Send + 'static) -> io::Result<()> {
    let work = move || {
        turn::wake_on_time();
        let mut turn = Turn::usual();
        if clock.urgent {
            // Whether we may, whoever asked for it has found out.
            let _ = turn.before_others(URGENT);
        }
        work(&clock);
    };
    std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work).map(drop)
}

/// Nothing was there to be read, or written, in time.
fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
