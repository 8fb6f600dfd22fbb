//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// Waits until one of `fds` can be read (or was closed at the other end), or `limit` has passed.
///
/// Returns one flag per descriptor, in order; all false when the time was up.
///
/// # Errors
/// Whatever `poll(2)` reports, except interruptions, which count as "nothing ready".
pub fn readable(fds: &[BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    // The field's type differs between targets.
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos() as _,
    };
    match rustix::event::poll(&mut polled, Some(&limit)) {
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}
