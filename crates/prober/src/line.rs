//! A TCP connection that messages go over.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use tidegate_probe_wire::{ControlMessage, Malformed, Role, Seal, SessionKey, TAG};

/// Bytes read at once.
const CHUNK: usize = 16 << 10;
/// How long the other side's kernel may take to accept a message: beyond that it counts as gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came over a line.
#[derive(Debug)]
pub(crate) enum Came {
    /// A message.
    Message(ControlMessage),
    /// Nothing yet.
    Nothing,
    /// Something that is no message.
    Garbage(Malformed),
    /// The other side has closed it.
    End,
}

/// A connection with its framing.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    /// What was read and not understood yet.
    heard: Vec<u8>,
    /// Once there is a key: the seals for both directions.
    seals: Option<(Seal, Seal)>,
}

impl Line {
    /// Over a connected stream.
    ///
    /// # Errors
    /// What the kernel reports.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Line> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Line { stream, heard: Vec::new(), seals: None })
    }

    /// Says something.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn send(&mut self, message: &ControlMessage) -> io::Result<()> {
        let bytes = match &mut self.seals {
            Some((ours, _)) => message.encode_sealed(ours),
            None => message.encode(),
        };
        self.stream.write_all(&bytes)
    }

    /// From here on both sides seal their messages; `side` is ours.
    pub(crate) fn seal(&mut self, key: &SessionKey, side: Role) {
        self.seals = Some((key.seal(side), key.seal(side.other())));
    }

    /// Waits for a message of at most this many bytes, not longer than `limit`.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn receive(&mut self, most: usize, limit: Duration) -> io::Result<Came> {
        if let Some(came) = self.understood(most) {
            return Ok(came);
        }
        // A limit of nothing would be none at all.
        self.stream.set_read_timeout(Some(limit.max(Duration::from_micros(1))))?;
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Ok(Came::End),
            Ok(bytes) => self.heard.extend_from_slice(&chunk[..bytes]),
            Err(error) if is_patience(&error) => return Ok(Came::Nothing),
            Err(error) => return Err(error),
        }
        Ok(self.understood(most).unwrap_or(Came::Nothing))
    }

    /// The first message among what was read, if it is there as a whole.
    fn understood(&mut self, most: usize) -> Option<Came> {
        let (front, rest) = self.heard.split_first_chunk::<4>()?;
        let most = if self.seals.is_some() { most + TAG } else { most };
        let length = match ControlMessage::length(*front, most) {
            Ok(length) => length,
            Err(malformed) => return Some(Came::Garbage(malformed)),
        };
        let body = rest.get(..length)?;
        let message = match &mut self.seals {
            Some((_, theirs)) => ControlMessage::decode_sealed(body, theirs),
            None => ControlMessage::decode(body),
        };
        let came = match message {
            Ok(message) => Came::Message(message),
            Err(malformed) => Came::Garbage(malformed),
        };
        self.heard.drain(..4 + length);
        Some(came)
    }

    /// The stream, and what was read of it beyond the messages.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.heard)
    }

    /// Is something there that was read and not looked at?
    pub(crate) fn has_more(&self) -> bool {
        self.heard.len() >= 4
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Nothing was there to be read, or written, in time.
pub(crate) fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
