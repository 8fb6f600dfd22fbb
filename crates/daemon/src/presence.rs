//! The state of the daemons of devices: all are asked at once, each with a time limit, so that one that is
//! stopped delays no other.

use crate::client::{ANSWER, Client};
use crate::error::{Error, ErrorContext, Result};
use crate::runtime::RuntimeDir;
use serde_json::{Value, json};
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::time::Duration;
use tidegate_sys::process;

/// The most daemons that are asked at the same time; beyond that, the rest wait for the others' [`ANSWER`].
pub const MOST_AT_ONCE: usize = 64;

/// How long a daemon may take to send its policy: that may have a hundred thousand commands.
const POLICY: Duration = Duration::from_secs(10);

/// How the daemon of a device is.
#[derive(Clone, Debug, PartialEq)]
pub enum Daemon {
    /// There is none.
    Dead,
    /// There is one, and it does not answer.
    Silent(Silence),
    /// Its status.
    Answers(Value),
}

/// A daemon that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Its process; `None`: only root may know.
    pub pid: Option<u32>,
    why: String,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "the daemon (pid {pid}) does not answer: {}", self.why),
            None => write!(f, "the daemon (root may know its pid) does not answer: {}", self.why),
        }
    }
}

impl Silence {
    fn new(pid: Option<u32>, error: &Error) -> Silence {
        let stopped = pid.filter(|pid| process::state_of(*pid) == Some('T'));
        let why = match (stopped, error.io_kind()) {
            (Some(pid), _) => format!("it was stopped (SIGSTOP); `kill -CONT {pid}` lets it go on"),
            (None, Some(io::ErrorKind::TimedOut)) => format!("it said nothing for {} s", ANSWER.as_secs()),
            (None, _) => format!("{error:#}"),
        };
        Silence { pid, why }
    }
}

impl Daemon {
    /// That of a device.
    pub fn of(runtime: &RuntimeDir, dev: &str) -> Daemon {
        let result =
            Client::within(dev, ANSWER).and_then(|mut client| client.request(&json!({"ask": "status"})));
        match (result, RuntimeDir::holder(&runtime.lock(dev))) {
            (Ok(status), _) => Daemon::Answers(status),
            (Err(error), Some(pid)) => {
                Daemon::Silent(Silence::new(Some(pid).filter(|pid| *pid != 0), &error))
            }
            // Only root knows the owner of a lock; other users know whether the socket has a listener.
            (Err(error), None)
                if is_listening(&error)
                    && OpenOptions::new().write(true).open(runtime.lock(dev)).is_err() =>
            {
                Daemon::Silent(Silence::new(None, &error))
            }
            (Err(_), None) => Daemon::Dead,
        }
    }
}

/// The policy that the daemon of a device runs: its `commands`, word by word, and the options that it was
/// started with. `None`: there is no daemon.
///
/// # Errors
/// There is one, and it does not answer: it hangs, or the caller has no permission.
pub fn running_policy(runtime: &RuntimeDir, dev: &str) -> Result<Option<Value>> {
    if RuntimeDir::holder(&runtime.lock(dev)).is_none() {
        return Ok(None);
    }
    if let Daemon::Silent(silence) = Daemon::of(runtime, dev) {
        bail!(Daemon, "{silence}; `tidegate down {dev}` ends it");
    }
    let policy = Client::within(dev, POLICY)?.request(&json!({"ask": "policy"}));
    policy.map(Some).with_context(|| format!("the daemon of `{dev}` does not say what it runs"))
}

/// Does something for each, [`MOST_AT_ONCE`] at the same time: the result of it, in their order.
pub fn each<T: Sync, R: Send>(all: &[T], does: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut done = Vec::with_capacity(all.len());
    for some in all.chunks(MOST_AT_ONCE) {
        done.extend(std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|one| scope.spawn(|| does(one))).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect::<Vec<R>>()
        }));
    }
    done
}

/// Whether a process listens at the socket that this error is about.
fn is_listening(error: &Error) -> bool {
    !matches!(error.io_kind(), Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_done_in_their_order() {
        let all: Vec<usize> = (0..MOST_AT_ONCE * 2 + 1).collect();
        assert_eq!(each(&all, |one| one + 1), all.iter().map(|one| one + 1).collect::<Vec<_>>());
    }

    #[test]
    fn an_unanswered_request_names_the_process() {
        let timed_out = Error::from(io::Error::from(io::ErrorKind::TimedOut));
        let own = std::process::id();
        assert_eq!(
            Silence::new(Some(own), &timed_out).to_string(),
            format!("the daemon (pid {own}) does not answer: it said nothing for 2 s")
        );
        let unknown = Silence::new(None, &error!(Daemon, "too many are here")).to_string();
        assert_eq!(unknown, "the daemon (root may know its pid) does not answer: too many are here");
    }
}
