//! Streams with a deadline: a peer that sends or takes a byte now and then blocks its other end no longer
//! than that.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A stream whose reads and writes have timeouts (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
pub trait Timeouts {
    /// Sets the timeout of the following reads.
    ///
    /// # Errors
    /// It is zero, or what `setsockopt(2)` reports.
    fn read_timeout(&self, timeout: Duration) -> io::Result<()>;

    /// Sets the timeout of the following writes.
    ///
    /// # Errors
    /// As for [`Timeouts::read_timeout`].
    fn write_timeout(&self, timeout: Duration) -> io::Result<()>;
}

impl Timeouts for UnixStream {
    fn read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))
    }

    fn write_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(timeout))
    }
}

impl Timeouts for TcpStream {
    fn read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))
    }

    fn write_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(timeout))
    }
}

impl<S: Timeouts> Timeouts for &S {
    fn read_timeout(&self, timeout: Duration) -> io::Result<()> {
        (**self).read_timeout(timeout)
    }

    fn write_timeout(&self, timeout: Duration) -> io::Result<()> {
        (**self).write_timeout(timeout)
    }
}

/// A stream with a deadline for all its reads and writes together.
#[derive(Debug)]
pub struct Until<S> {
    stream: S,
    end: Instant,
}

impl<S> Until<S> {
    /// The stream, to be used until `end`.
    pub fn new(stream: S, end: Instant) -> Until<S> {
        Until { stream, end }
    }

    /// Sets another deadline.
    pub fn set_end(&mut self, end: Instant) {
        self.end = end;
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A socket whose timeout is over reports that it would block.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

/// [`io::ErrorKind::TimedOut`] once the deadline has passed.
impl<S: Read + Timeouts> Read for Until<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.stream.read_timeout(self.left()?)?;
        self.stream.read(room).map_err(timed_out)
    }
}

/// [`io::ErrorKind::TimedOut`] once the deadline has passed.
impl<S: Write + Timeouts> Write for Until<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_until_its_deadline_whatever_is_sent() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (&ours).write_all(b"{}").expect("it is taken");
        let mut until = Until::new(&theirs, Instant::now() + Duration::from_secs(60));
        let mut byte = [0];
        assert_eq!(until.read(&mut byte).expect("it is there"), 1);
        until.set_end(Instant::now());
        let over = until.read(&mut byte).expect_err("the deadline has passed");
        assert_eq!(over.kind(), io::ErrorKind::TimedOut);
        assert_eq!(until.write(b"{}").expect_err("it has").kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_peer_that_sends_nothing_is_waited_for_until_the_deadline() {
        let (_ours, theirs) = UnixStream::pair().expect("a pair");
        let mut until = Until::new(theirs, Instant::now() + Duration::from_millis(10));
        let over = until.read(&mut [0]).expect_err("nothing comes");
        assert_eq!(over.kind(), io::ErrorKind::TimedOut);
    }
}
