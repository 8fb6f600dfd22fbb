//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// What waits at a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Something can be read, or the other end closed.
    pub is_readable: bool,
    /// An error waits: of a socket, in its error queue.
    pub has_error: bool,
}

/// Waits until one of `fds` can be read (or was closed at the other end), or `limit` has passed.
///
/// Returns one flag per descriptor, in order; all false when the time was up.
///
/// # Errors
/// Whatever `poll(2)` reports, except interruptions, which count as "nothing ready".
pub fn readable(fds: &[BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<bool>> {
    let is_any = |ready: Readiness| ready.is_readable || ready.has_error;
    Ok(ready(fds, limit)?.into_iter().map(is_any).collect())
}

/// As [`readable`], with errors apart: a caller that reads only what there is needs no call to find nothing.
///
/// # Errors
/// As [`readable`].
pub fn ready(fds: &[BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<Readiness>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    // The field's type differs between targets.
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos() as _,
    };
    match rustix::event::poll(&mut polled, Some(&limit)) {
        Ok(_) => Ok(polled.iter().map(|fd| readiness(fd.revents())).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![Readiness::default(); fds.len()]),
        Err(error) => Err(error.into()),
    }
}

fn readiness(found: PollFlags) -> Readiness {
    Readiness { is_readable: !(found - PollFlags::ERR).is_empty(), has_error: found.contains(PollFlags::ERR) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn an_error_and_a_datagram_are_told_apart() {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let closed = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("it has one");
        let looked = |limit| ready(&[near.as_fd()], Duration::from_millis(limit)).expect("it is a socket")[0];
        assert_eq!(looked(0), Readiness::default());
        far.send_to(b"one", near.local_addr().expect("it has one")).expect("it is sent");
        assert_eq!(looked(5000), Readiness { is_readable: true, has_error: false });
        near.recv(&mut [0; 8]).expect("it came");
        crate::stamped::note(&near, false, false).expect("it is a socket for datagrams");
        near.connect(closed).expect("a port need not be open for that");
        near.send(b"two").expect("it is sent");
        assert!(looked(5000).has_error);
    }
}
