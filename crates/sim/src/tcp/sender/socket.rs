//! The sender's socket: how much its application can write ahead of what is acknowledged.
//!
//! The application writes as much as there is room for, waits until a third of the memory is free, and writes again.
//! The memory follows the window, up to a limit (`net.ipv4.tcp_wmem`). All figures are of a recorded Linux: with a
//! limit of 200,000, 400,000 and 1,600,000 bytes 74, 147 and 587 segments of 1448 bytes were out after each write, and
//! 48, 97 and 391 before it; a new connection wrote 17, then 8, 11, 14. Behind a hole they wrote on: 158 to 190
//! segments were out for windows of 105 to 125, as if what SACK has reported took its payload alone.

use alloc::collections::VecDeque;

/// What a segment takes of the memory beside its payload.
const OVERHEAD: u64 = 1280;
/// What the memory follows the window by, per segment: as if it took so much,
const PER_SEGMENT: u64 = 2304;
/// twice, so that there is enough for a window while another is repaired; three times for a model, which sends more.
const WINDOWS: u64 = 2;
const MODEL_WINDOWS: u64 = 3;

/// Room for what is written and not acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    /// Of one segment.
    each: u64,
    /// Memory per segment of the window.
    per_window: u64,
    memory: u64,
    most: u64,
    /// The segment with which ends what is written.
    pub(super) end: u32,
    /// Where writes end that have not been sent, in order. Bounded by the memory: each is a third of it.
    ends: VecDeque<u32>,
}

impl Socket {
    /// With so much memory at most, for segments of `mss` bytes; `models`: the congestion control is a model.
    pub(super) fn new(most: u64, mss: u32, models: bool, window: u32) -> Socket {
        let per_window = PER_SEGMENT * if models { MODEL_WINDOWS } else { WINDOWS };
        let memory = (per_window * u64::from(window)).min(most);
        Socket { each: u64::from(mss) + OVERHEAD, per_window, memory, most, end: 0, ends: VecDeque::new() }
    }

    /// The application writes if a third of the memory is free; that has followed the window by then. `sacked`: of what
    /// is not acknowledged in order, so many segments have arrived.
    pub(super) fn write(&mut self, una: u32, sacked: u32, window: u32) {
        self.memory = self.memory.max((self.per_window * u64::from(window)).min(self.most));
        let segments = u64::from(self.end.saturating_sub(una));
        let held = segments * self.each - u64::from(sacked).min(segments) * OVERHEAD;
        if segments > 0 && held * 3 > self.memory * 2 {
            return;
        }
        let room = (self.memory - held.min(self.memory)).div_ceil(self.each).clamp(1, 1 << 24) as u32;
        self.end = self.end.max(una).saturating_add(room);
        self.ends.push_back(self.end);
    }

    /// Segment `seq` is sent. Tells whether a write ended with it: then it carries PSH.
    pub(super) fn ends_with(&mut self, seq: u32) -> bool {
        let ends = self.ends.front() == Some(&(seq + 1));
        if ends {
            self.ends.pop_front();
        }
        ends
    }

    /// The segment just sent was refused, and with it the end of a write.
    pub(super) fn take_back(&mut self, seq: u32) {
        self.ends.push_front(seq + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Memory of 400,000 bytes, as recorded: 147 segments after a write, and no more than 97 before it.
    #[test]
    fn writes_when_a_third_is_free() {
        let mut socket = Socket::new(400_000, 1448, false, 1000);
        let mut seen = [0; 3];
        socket.write(0, 0, 1000);
        seen[0] = socket.end;
        socket.write(147 - 98, 0, 1000);
        seen[1] = socket.end;
        socket.write(147 - 97, 0, 1000);
        seen[2] = socket.end;
        assert_eq!(seen, [147, 147, 50 + 147]);
    }

    /// A new connection's writes beside a recorded one's.
    #[test]
    fn memory_follows_the_window() {
        let mut socket = Socket::new(4 << 20, 1448, false, 10);
        let mut ends = Vec::new();
        for una in 0..40 {
            socket.write(una, 0, 10 + una);
            if ends.last() != Some(&socket.end) {
                ends.push(socket.end);
            }
        }
        assert_eq!(ends, [17, 25, 36, 50, 68, 90, 120]);
    }

    /// With sixty segments reported behind a hole there is room again.
    #[test]
    fn what_sack_reports_takes_its_payload_alone() {
        let mut socket = Socket::new(400_000, 1448, false, 1000);
        socket.write(0, 0, 1000);
        socket.write(10, 60, 1000);
        let before = socket.end;
        socket.write(10, 84, 1000);
        assert!(before == 147 && socket.end > 190, "{before} {}", socket.end);
    }
}
