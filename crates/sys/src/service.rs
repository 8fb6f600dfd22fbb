//! What a background program needs: to be the only instance, to outlive the terminal, to report that it is
//! ready, to know its clients, and to drop privileges that it needs no more.

use std::env;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Where the service manager wants to hear from us (sd_notify(3)).
const NOTIFY: &str = "NOTIFY_SOCKET";
/// How long a message may wait for a service manager that reads none.
const NOTIFY_WAIT: Duration = Duration::from_secs(1);
/// How long the service manager waits for a sign of life, in microseconds, and of which process
/// (sd_watchdog_enabled(3)).
const WATCHDOG: [&str; 2] = ["WATCHDOG_USEC", "WATCHDOG_PID"];

/// What [`keep_only_network`] keeps.
const NEEDED: CapabilitySet =
    CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW).union(CapabilitySet::BPF);

/// The process at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// His process.
    pub pid: u32,
    /// The user he was when he connected.
    pub uid: u32,
}

/// The process at the other end, as the kernel reports it.
///
/// # Errors
/// What `getsockopt(2)` reports.
pub fn peer(socket: &UnixStream) -> io::Result<Peer> {
    let known = rustix::net::sockopt::socket_peercred(socket)?;
    Ok(Peer { pid: known.pid.as_raw_nonzero().get().unsigned_abs(), uid: known.uid.as_raw() })
}

/// A file that one process at a time has locked; the lock goes with it.
#[derive(Debug)]
pub struct Alone {
    file: File,
}

impl Alone {
    /// Takes the lock of a file, which is made if it does not exist; `None`: another process has it.
    ///
    /// # Errors
    /// The file cannot be opened, or is a link.
    pub fn take(path: &Path) -> io::Result<Option<Alone>> {
        // A process that can open a file can lock it, even for reading: other users must not.
        let how = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(how.bits() as i32)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Alone { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes into the file, for others to read, and keeps them from opening it for a lock of their own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn sign(&mut self, text: &str) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(0o600))?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

/// Makes the command's process leader of a session of its own: the terminal's end is not its end.
pub fn detached(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and makes one system call that is async-signal-safe; it
    // allocates nothing and touches no lock.
    unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) }
}

/// Tells the service manager something (`READY=1`, `STATUS=…`, `STOPPING=1`), if there is one.
///
/// # Errors
/// There is one, and it cannot be determined.
pub fn notify(state: &str) -> io::Result<()> {
    let Some(place) = env::var_os(NOTIFY) else { return Ok(()) };
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(OsStr::new(&place))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(NOTIFY_WAIT))?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// How long the service manager waits for `WATCHDOG=1` from this process before it restarts it; `None`: it
/// does not wait for this process.
pub fn watchdog() -> Option<Duration> {
    env::var_os(NOTIFY)?;
    let [timeout, pid] = WATCHDOG.map(|name| env::var(name).ok());
    watchdog_of(timeout.as_deref()?, pid.as_deref(), std::process::id())
}

fn watchdog_of(timeout_us: &str, pid: Option<&str>, own: u32) -> Option<Duration> {
    let is_meant = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let timeout_us = timeout_us.parse().ok().filter(|us| *us > 0 && is_meant)?;
    Some(Duration::from_micros(timeout_us))
}

/// Starts the command's process outside of the service manager's protocol: only this process reports to it.
pub fn without_manager(command: &mut Command) -> &mut Command {
    WATCHDOG.iter().fold(command.env_remove(NOTIFY), |command, name| command.env_remove(name))
}

/// Gives up every privilege of the calling thread and of those it starts, but for what a shaper continues to
/// need when its device comes back: to set up networks, to send raw frames and to load the programs that lead
/// packets to it (and, `realtime`, to go before others). Programs that are run from now on get none back.
///
/// # Errors
/// The kernel does not allow it.
pub fn keep_only_network(realtime: bool) -> io::Result<()> {
    let mut keep = NEEDED;
    keep.set(CapabilitySet::SYS_NICE, realtime);
    let have = rustix::thread::capabilities(None)?;
    let keep = have.permitted & keep;
    rustix::thread::set_no_new_privs(true)?;
    let sets = CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_is_alone() {
        let path = std::env::temp_dir().join(format!("tidegate-alone-{}", std::process::id()));
        let first = Alone::take(&path).expect("a file").expect("nobody has it");
        assert!(Alone::take(&path).expect("a file").is_none());
        drop(first);
        assert!(Alone::take(&path).expect("a file").is_some());
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn a_watchdog_is_for_the_process_that_it_names() {
        let second = Some(Duration::from_secs(1));
        for (timeout, pid, expected) in [
            ("1000000", None, second),
            ("1000000", Some("7"), second),
            ("1000000", Some("8"), None),
            ("1000000", Some(""), None),
            ("0", None, None),
            ("soon", Some("7"), None),
        ] {
            assert_eq!(watchdog_of(timeout, pid, 7), expected, "{timeout} {pid:?}");
        }
    }

    #[test]
    fn the_other_end_of_our_own_pair_is_us() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        assert_eq!(peer(&one).expect("we are there").pid, std::process::id());
    }

    #[test]
    fn what_is_given_up_is_gone_for_this_thread_only() {
        let before = rustix::thread::capabilities(None).expect("what we have").permitted;
        let kept = std::thread::spawn(|| {
            keep_only_network(false).expect("less is always allowed");
            rustix::thread::capabilities(None).expect("what is left").permitted
        });
        let kept = kept.join().expect("no panic");
        assert_eq!(kept, before & NEEDED);
        assert_eq!(rustix::thread::capabilities(None).expect("what we have").permitted, before);
    }
}
