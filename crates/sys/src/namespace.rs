//! Which network namespace the calling thread is in.
//!
//! The number that `/proc/PID/ns/net` shows (an inode of the kernel's one nsfs, so its device adds nothing)
//! is given to another namespace once the first is gone. The namespace's cookie is given once only until the
//! machine restarts; `SO_NETNS_COOKIE` reads it from a socket of that namespace (Linux 5.14; socket(7) does
//! not have it yet).

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::sockopt;

/// The calling thread's namespace, and that of the machine's first process.
const OWN: &str = "/proc/thread-self/ns/net";
const FIRST: &str = "/proc/1/ns/net";

/// A network namespace of this run of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkNamespace {
    /// The number that `ip netns`, `lsns` and `/proc` show. No two namespaces have the same at one time.
    pub inode: u64,
    /// What no other namespace has or had since the machine was started; `None`: before Linux 5.14.
    pub cookie: Option<u64>,
}

impl NetworkNamespace {
    /// That of the calling thread.
    ///
    /// # Errors
    /// There is no `/proc`, or no socket can be had.
    pub fn current() -> io::Result<NetworkNamespace> {
        Ok(NetworkNamespace { inode: inode(OWN)?, cookie: cookie()? })
    }

    /// Is the calling thread in the network namespace of process 1? No, if that cannot be known.
    #[must_use]
    pub fn is_first() -> bool {
        matches!((inode(OWN), inode(FIRST)), (Ok(own), Ok(first)) if own == first)
    }
}

/// `INODE-COOKIE`, or `INODE` where there is no cookie.
impl fmt::Display for NetworkNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cookie {
            Some(cookie) => write!(f, "{}-{cookie}", self.inode),
            None => write!(f, "{}", self.inode),
        }
    }
}

fn inode(path: &str) -> io::Result<u64> {
    Ok(std::fs::metadata(Path::new(path))?.ino())
}

fn cookie() -> io::Result<Option<u64>> {
    let socket = UnixDatagram::unbound()?;
    let mut value = [0; size_of::<u64>()];
    match sockopt::get(&socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, &mut value) {
        Ok(_) => Ok(Some(u64::from_ne_bytes(value))),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace_thread::NamespaceThread;

    /// Namespaces that are made in a test until one has a number that another had.
    const MOST: usize = 200;

    #[test]
    fn a_namespace_is_shown_with_all_that_is_known_of_it() {
        let own = NetworkNamespace::current().expect("/proc is there");
        assert_eq!(own, NetworkNamespace::current().expect("/proc is there"));
        let shown = |cookie| NetworkNamespace { inode: 7, cookie }.to_string();
        assert_eq!([shown(Some(5)), shown(None)], ["7-5", "7"]);
    }

    #[test]
    fn a_number_may_come_again_and_a_cookie_does_not() {
        let made = || -> io::Result<NetworkNamespace> {
            NamespaceThread::new("made")?.go(NetworkNamespace::current)?
        };
        let mut seen: Vec<NetworkNamespace> = Vec::new();
        for _ in 0..MOST {
            let one = match made() {
                Ok(one) => one,
                Err(error) => return println!("SKIPPED: no network namespace can be made here ({error})"),
            };
            let Some(cookie) = one.cookie else {
                return println!("SKIPPED: this kernel has no SO_NETNS_COOKIE");
            };
            assert!(seen.iter().all(|other| other.cookie != Some(cookie)), "{one} {seen:?}");
            if let Some(other) = seen.iter().find(|other| other.inode == one.inode) {
                assert_ne!(*other, one);
                return println!("{other} came again as {one}");
            }
            seen.push(one);
        }
        println!("left out: {MOST} namespaces had a number each");
    }
}
