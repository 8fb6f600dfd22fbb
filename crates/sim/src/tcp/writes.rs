//! What an application writes into a connection: messages, each beginning a segment of its own, as bytes and
//! as segments.

use alloc::vec::Vec;

/// The segments of an endless message, short of the largest sequence number.
const ENDLESS: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Message {
    /// Its first segment.
    first: u32,
    /// One past its last segment.
    end: u32,
    /// Payload bytes before it.
    at: u64,
    /// Its payload bytes.
    bytes: u64,
}

/// The messages of one direction of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    mss: u64,
    messages: Vec<Message>,
    /// One past the segment that carries FIN.
    end: Option<u32>,
}

impl Writes {
    /// Nothing written yet, in segments of at most `mss` payload bytes.
    pub(crate) fn new(mss: u32) -> Writes {
        Writes { mss: u64::from(mss.max(1)), messages: Vec::new(), end: None }
    }

    /// Nothing more is written: of `total` segments the last one carries FIN, with payload or without.
    pub(crate) fn close(&mut self, total: u32) {
        self.end = Some(total);
    }

    /// Whether everything before segment `seq` is sent, FIN included.
    pub(crate) fn is_over(&self, seq: u32) -> bool {
        self.end.is_some_and(|end| seq >= end)
    }

    /// The sequence number (RFC 9293) of segment `seq`: SYN and FIN have one each.
    pub(crate) fn number(&self, seq: u32) -> u32 {
        (self.offset(seq) as u32).wrapping_add(1 + u32::from(self.is_over(seq)))
    }

    /// Writes a message, `None`: one without an end; returns the segments there are to send in all.
    pub(crate) fn write(&mut self, bytes: Option<u64>) -> u32 {
        let (first, at) = self.messages.last().map_or((0, 0), |last| (last.end, last.at + last.bytes));
        let segments = bytes.map_or(ENDLESS, |bytes| bytes.div_ceil(self.mss).min(u64::from(ENDLESS)) as u32);
        let end = first.saturating_add(segments);
        let bytes = bytes.unwrap_or(u64::from(ENDLESS) * self.mss);
        self.messages.push(Message { first, end, at, bytes });
        end
    }

    /// Payload bytes before segment `seq`.
    pub(crate) fn offset(&self, seq: u32) -> u64 {
        let at = self.messages.partition_point(|message| message.end <= seq);
        match self.messages.get(at) {
            Some(message) => message.at + u64::from(seq - message.first) * self.mss,
            None => self.messages.last().map_or(0, |last| last.at + last.bytes),
        }
    }

    /// Payload bytes of segment `seq`.
    pub(crate) fn payload(&self, seq: u32) -> u32 {
        (self.offset(seq.saturating_add(1)) - self.offset(seq)) as u32
    }

    /// Messages that lie wholly before segment `next`.
    pub(crate) fn complete(&self, next: u32) -> usize {
        self.messages.partition_point(|message| message.end <= next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_begin_segments_of_their_own() {
        let mut writes = Writes::new(1000);
        let ends = [writes.write(Some(2500)), writes.write(Some(1000)), writes.write(Some(1))];
        assert_eq!(ends, [3, 4, 5]);
        let rows: Vec<_> =
            (0..6).map(|seq| (writes.offset(seq), writes.payload(seq), writes.complete(seq))).collect();
        let expected =
            [(0, 1000, 0), (1000, 1000, 0), (2000, 500, 0), (2500, 1000, 1), (3500, 1, 2), (3501, 0, 3)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn an_endless_message_goes_on() {
        let mut writes = Writes::new(1448);
        assert_eq!(writes.write(None), u32::MAX);
        assert_eq!((writes.offset(3_000_000), writes.payload(7)), (3_000_000 * 1448, 1448));
    }
}
