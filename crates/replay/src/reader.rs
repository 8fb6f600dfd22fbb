//! A capture, read with as much memory as its longest block takes.

use std::fmt;
use std::io::{self, Read};
use tidegate_pcap::{Broken, CapturedPacket, Next, Parser};

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// A capture being read, pcap or pcapng, from whatever can be read.
///
/// ```
/// use tidegate_replay::CaptureReader;
///
/// let mut writer = tidegate_pcap::Writer::new("an example");
/// let link = tidegate_pcap::link::ETHERNET;
/// writer.interface(tidegate_pcap::Interface { name: "eth0", description: "", link });
/// writer.packet(&tidegate_pcap::Record { bytes: &[0; 60], length: 60, ..Default::default() });
/// let capture = writer.take();
/// let mut lengths = Vec::new();
/// let broken = CaptureReader::new(&capture[..]).each(|packet, _| {
///     lengths.push(packet.length);
///     Ok::<_, tidegate_replay::ReadCaptureError>(())
/// });
/// assert_eq!((broken.unwrap(), lengths), (None, vec![60]));
/// assert_eq!(CaptureReader::new(&capture[..]).format().unwrap(), "pcapng");
/// ```
pub struct CaptureReader<R> {
    from: R,
    parser: Parser,
    buffer: Vec<u8>,
    /// Of the buffer so many are used.
    used: usize,
}

/// Why a capture cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadCaptureError {
    /// What it is read from fails.
    Io(io::Error),
    /// It is damaged, or no capture, before its first packet.
    Broken(Broken),
}

impl fmt::Display for ReadCaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadCaptureError::Io(error) => error.fmt(f),
            ReadCaptureError::Broken(broken) => broken.fmt(f),
        }
    }
}

impl std::error::Error for ReadCaptureError {}

impl From<io::Error> for ReadCaptureError {
    fn from(error: io::Error) -> ReadCaptureError {
        ReadCaptureError::Io(error)
    }
}

impl<R: Read> CaptureReader<R> {
    /// At its beginning.
    pub fn new(from: R) -> CaptureReader<R> {
        CaptureReader { from, parser: Parser::new(), buffer: Vec::new(), used: 0 }
    }

    /// Shows each packet to `show`, with the bytes read so far. What comes back is where and why reading
    /// ended before the capture did.
    ///
    /// # Errors
    /// It cannot be read, is no capture, or `show` fails.
    pub fn each<E: From<ReadCaptureError>>(
        mut self,
        mut show: impl FnMut(CapturedPacket<'_>, u64) -> Result<(), E>,
    ) -> Result<Option<Broken>, E> {
        loop {
            let needs = match self.parser.next(&self.buffer[self.used..]) {
                Ok(Next::Packet(used, packet)) => {
                    show(packet, self.parser.offset())?;
                    self.used += used;
                    continue;
                }
                Ok(Next::Passed(used)) => {
                    self.used += used;
                    continue;
                }
                Ok(Next::Needs(bytes)) => bytes,
                Err(broken) => return Ok(known(broken).map(Some)?),
            };
            if !self.fill(needs).map_err(ReadCaptureError::Io)? {
                return match self.parser.end(self.buffer.len() - self.used) {
                    Ok(()) => Ok(None),
                    Err(broken) => Ok(known(broken).map(Some)?),
                };
            }
        }
    }

    /// `pcap`, `pcapng` or `no capture`, by how it begins.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn format(mut self) -> Result<&'static str, ReadCaptureError> {
        self.fill(1)?;
        while let Ok(Next::Passed(used)) = self.parser.next(&self.buffer[self.used..]) {
            self.used += used;
            if self.parser.format() != "no capture" {
                break;
            }
        }
        Ok(self.parser.format())
    }

    /// Reads until so many unused bytes are there; false if the file ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        self.buffer.drain(..self.used);
        self.used = 0;
        while self.buffer.len() < bytes {
            let room = (bytes - self.buffer.len()).max(PIECE) as u64;
            if (&mut self.from).take(room).read_to_end(&mut self.buffer)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What can be gone on with, because something was read before.
fn known(broken: Broken) -> Result<Broken, ReadCaptureError> {
    if broken.packets == 0 { Err(ReadCaptureError::Broken(broken)) } else { Ok(broken) }
}
