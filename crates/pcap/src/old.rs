//! pcap: a header of 24 bytes, then 16 before each packet.

use crate::broken::Cause;
use crate::packet::{CapturedPacket, Found, LONGEST, Next};
use crate::words::Words;

/// The fields of the file header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Old {
    big: bool,
    /// Times count nanoseconds beside seconds, not microseconds.
    nanoseconds: bool,
    link: u16,
    /// What is kept of a packet at most.
    snap: u32,
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// The major version that there is.
const VERSION: u16 = 2;
/// The most bytes of a packet that are accepted whatever the header says: libpcap's own limit.
const USUAL_MOST: u32 = 262_144;

impl Old {
    /// Bytes of the file's header.
    pub(crate) const HEADER: usize = 24;
    /// And of each packet's.
    const BEFORE: usize = 16;

    /// By the first four bytes.
    pub(crate) fn of_magic(magic: [u8; 4]) -> Option<Old> {
        let read = |word: u32, big: bool| {
            let nanoseconds = word == NANOSECONDS;
            (nanoseconds || word == MICROSECONDS).then_some(Old { big, nanoseconds, link: 0, snap: 0 })
        };
        read(u32::from_be_bytes(magic), true).or_else(|| read(u32::from_le_bytes(magic), false))
    }

    /// Takes the header in.
    pub(crate) fn begin(self, header: &[u8]) -> Result<Old, Cause> {
        let words = Words { bytes: header, big: self.big };
        match words.u16_at(4) {
            VERSION => {}
            other => return Err(Cause::Version(other)),
        }
        // The bits above the link type give the length of each frame's check sequence.
        Ok(Old { link: words.word(20) as u16, snap: words.word(16), ..self })
    }

    pub(crate) fn next<'b>(&mut self, data: &'b [u8]) -> Found<'b> {
        if data.len() < Old::BEFORE {
            return Ok(Next::Needs(Old::BEFORE));
        }
        let words = Words { bytes: data, big: self.big };
        let kept = words.word(8);
        if kept > self.snap.max(USUAL_MOST).min(LONGEST as u32) {
            return Err(Cause::TooLong(kept));
        }
        let whole = Old::BEFORE + kept as usize;
        let Some(packet) = data.get(Old::BEFORE..whole) else { return Ok(Next::Needs(whole)) };
        let part = u64::from(words.word(4)) * if self.nanoseconds { 1 } else { 1000 };
        let packet = CapturedPacket {
            number: 0,
            time: Some(u64::from(words.word(0)) * 1_000_000_000 + part),
            link: self.link,
            bytes: packet,
            length: words.word(12).max(kept),
            direction: None,
            interface: 0,
        };
        Ok(Next::Packet(whole, packet))
    }
}
