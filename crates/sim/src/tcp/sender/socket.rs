//! The sender's socket: how much its application can write ahead of what is acknowledged.
//!
//! The application writes as much as there is space for, waits until a third of the memory is free, and
//! writes again. The memory follows the window, up to a limit (`net.ipv4.tcp_wmem`). All figures are of a
//! recorded Linux: with a limit of 200,000, 400,000 and 1,600,000 bytes 74, 147 and 587 segments of 1448
//! bytes were out after each write, and 48, 97 and 391 before it; a new connection wrote 17, then 8, 11, 14.
//! Behind a hole they wrote on: 158 to 190 segments were out for windows of 105 to 125, as if what SACK has
//! reported took its payload alone.

use alloc::collections::VecDeque;

/// What a segment takes of the memory beside its payload.
const OVERHEAD: u64 = 1280;
/// What the memory follows the window by, per segment: as if it took so much,
const PER_SEGMENT: u64 = 2304;
/// twice, so that there is enough for a window while another is repaired; three times for a model, which
/// sends more.
const WINDOWS: u64 = 2;
const MODEL_WINDOWS: u64 = 3;

/// Space for what is written and not acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    /// Of one segment.
    each: u64,
    /// Memory per segment of the window.
    per_window: u64,
    memory: u64,
    most: u64,
    /// The application was woken because there is space, and has not written yet.
    woken: bool,
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
        let each = u64::from(mss) + OVERHEAD;
        let mut socket =
            Socket { each, per_window, memory, most, woken: false, end: 0, ends: VecDeque::new() };
        socket.write(0, 0);
        socket
    }

    /// After an acknowledgement: the memory follows the window, and the application is woken if a third is
    /// free. From then on until it has written nothing changes. `sacked`: of what is not acknowledged in
    /// order, so many segments have arrived. Returns whether it is woken now.
    pub(super) fn look(&mut self, una: u32, sacked: u32, window: u32) -> bool {
        if self.woken {
            return false;
        }
        self.memory = self.memory.max((self.per_window * u64::from(window)).min(self.most));
        self.woken = self.charged_bytes(una, sacked) * 3 <= self.memory * 2;
        self.woken
    }

    fn charged_bytes(&self, una: u32, sacked: u32) -> u64 {
        let segments = u64::from(self.end.saturating_sub(una));
        segments * self.each - u64::from(sacked).min(segments) * OVERHEAD
    }

    /// The application writes all there is space for.
    pub(super) fn write(&mut self, una: u32, sacked: u32) {
        self.woken = false;
        let waiting = self.charged_bytes(una, sacked);
        if waiting >= self.memory {
            return;
        }
        let room = (self.memory - waiting.min(self.memory)).div_ceil(self.each).clamp(1, 1 << 24) as u32;
        self.end = self.end.max(una).saturating_add(room);
        self.ends.push_back(self.end);
    }

    /// Segment `seq` is sent. Returns whether a write ended with it: then it carries PSH.
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
    extern crate std;
    use super::*;
    use alloc::vec::Vec;

    /// An acknowledgement, and the application at once: where writing ends.
    fn served(socket: &mut Socket, una: u32, sacked: u32, window: u32) -> u32 {
        if socket.look(una, sacked, window) {
            socket.write(una, sacked);
        }
        socket.end
    }

    /// Memory of 400,000 bytes, as recorded: 147 segments after a write, and no more than 97 before it.
    #[test]
    fn writes_when_a_third_is_free() {
        let mut socket = Socket::new(400_000, 1448, false, 1000);
        let seen = [0, 147 - 98, 147 - 97].map(|una| served(&mut socket, una, 0, 1000));
        assert_eq!(seen, [147, 147, 50 + 147]);
    }

    /// A new connection's writes beside a recorded one's.
    #[test]
    fn memory_follows_the_window() {
        let mut socket = Socket::new(4 << 20, 1448, false, 10);
        let mut ends = std::vec![socket.end];
        for una in 0..40 {
            let end = served(&mut socket, una, 0, 10 + una);
            if ends.last() != Some(&end) {
                ends.push(end);
            }
        }
        assert_eq!(ends, [17, 25, 36, 50, 68, 90, 120]);
    }

    /// Ten acknowledgements come at once, behind a token bucket: the third wakes the application, which
    /// writes after all of them, with the memory of then. The oracle's flow wrote 17 segments, then 15, not
    /// 8.
    #[test]
    fn the_application_writes_when_all_that_came_is_taken_in() {
        let mut socket = Socket::new(4 << 20, 1448, false, 10);
        let woken = (1..=10).filter(|&una| socket.look(una, 0, 10 + una)).collect::<Vec<u32>>();
        socket.write(10, 0);
        assert_eq!((woken, socket.end), (std::vec![3], 32));
    }

    /// With sixty segments reported behind a hole there is space again.
    #[test]
    fn what_sack_reports_takes_its_payload_alone() {
        let mut socket = Socket::new(400_000, 1448, false, 1000);
        let before = served(&mut socket, 10, 60, 1000);
        let after = served(&mut socket, 10, 84, 1000);
        assert!(before == 147 && after > 190, "{before} {after}");
    }
}
