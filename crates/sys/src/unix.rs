//! Connecting to a Unix socket whose owner may not be there to accept.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// How often it is tried while the listen queue is full.
const AGAIN: Duration = Duration::from_millis(20);

/// Connects to the socket at a path. `connect(2)` blocks while the listen queue is full and the owner accepts
/// no connection; this gives up after `patience`.
///
/// # Errors
/// What `socket(2)` and `connect(2)` report; [`io::ErrorKind::TimedOut`].
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let begun = Instant::now();
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) if begun.elapsed() < patience => std::thread::sleep(AGAIN),
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_server_that_accepts_no_connection_times_out() {
        let path = std::env::temp_dir().join(format!("tidegate-unix-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        assert!(connect(&path, Duration::ZERO).is_ok());
        // The queue has an end.
        let waiting: Vec<_> =
            std::iter::from_fn(|| connect(&path, Duration::ZERO).ok()).take(100_000).collect();
        let full = connect(&path, Duration::ZERO).expect_err("the queue is full");
        assert_eq!(full.kind(), io::ErrorKind::TimedOut, "after {}", waiting.len());
        drop(listener);
        assert_eq!(
            connect(&path, Duration::ZERO).expect_err("gone").kind(),
            io::ErrorKind::ConnectionRefused
        );
        std::fs::remove_file(&path).expect("it is there");
    }
}
