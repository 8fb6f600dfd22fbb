//! Controlled delay (Nichols and Jacobson; RFC 8289) in Linux's fixed-point arithmetic.
//!
//! CoDel decides by the time that packets wait (sojourn time), measured at dequeue. If it has been above
//! `target` for a whole `interval`, one packet is dropped (or marked), and then more at intervals that shrink
//! with the square root of their number, until the sojourn time falls below `target` again. Times are in
//! units of 1024 ns and wrap at 32 bits; the reciprocal square root is kept in 16 bits and improved by one
//! Newton step per drop, which makes the second spacing 50 ms where the formula gives 71.

use tidegate_packet::{LinuxChange, LinuxVersion};
use tidegate_policy::dump::CodelStats;

/// The knobs. Times in CoDel units (1024 ns).
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// The sojourn time that is tolerated, in units of the CoDel clock (1024 ns).
    pub target: u32,
    /// How long the sojourn time must stay above the target before packets are dropped.
    pub interval: u32,
    /// Packets that waited longer are marked; [`Params::OFF`]: none.
    pub ce_threshold: u32,
    /// Restricts `ce_threshold` to packets whose DS field under the mask has the value: (value, mask); mask 0
    /// = all.
    pub ce_selector: (u8, u8),
    /// Packets that can carry a CE mark get one instead of being dropped.
    pub ecn: bool,
    /// With no more than this waiting nothing is dropped, bytes.
    pub mtu: u32,
    /// The most packets that are dropped, or marked, before one leaves
    /// ([`LinuxChange::CodelBounded`]).
    pub most_drops: u32,
    /// The least time from one drop to the next ([`LinuxChange::CodelTick`]).
    pub least_wait: u32,
}

impl Params {
    /// `ce_threshold` that never holds.
    pub const OFF: u32 = i32::MAX as u32;

    /// Drops before a packet leaves, since there is a bound (asked: Linux 7.2).
    pub const MOST_DROPS: u32 = 256;

    /// target 5 ms, interval 100 ms, no marks, as a release of Linux bounds it.
    pub fn of(linux: LinuxVersion, mtu: u32) -> Params {
        let most_drops = if linux.has(LinuxChange::CodelBounded) { Params::MOST_DROPS } else { u32::MAX };
        let least_wait = u32::from(linux.has(LinuxChange::CodelTick));
        Params { most_drops, least_wait, ..Params::new(mtu) }
    }

    /// The same of Linux 6.1.
    pub fn new(mtu: u32) -> Params {
        Params {
            most_drops: u32::MAX,
            least_wait: 0,
            target: units(5_000),
            interval: units(100_000),
            ce_threshold: Params::OFF,
            ce_selector: (0, 0),
            ecn: false,
            mtu,
        }
    }
}

/// Microseconds to CoDel units.
pub fn units(us: u32) -> u32 {
    ((u64::from(us) * 1000) >> 10) as u32
}

/// CoDel units to microseconds.
pub fn micros(units: u32) -> u32 {
    ((u64::from(units) << 10) / 1000) as u32
}

/// What is remembered of one queue (RFC 8289). Times in CoDel units (1024 ns).
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Packets dropped in this dropping episode.
    pub count: u32,
    /// Packets dropped in the episode before.
    pub lastcount: u32,
    /// In a dropping episode?
    pub dropping: bool,
    /// 1/sqrt(count), in units of 2^-16.
    pub reciprocal: u16,
    /// When sojourn will have been above target for an interval; 0 = it is not above.
    pub first_above: u32,
    /// When the next drop is due.
    pub drop_next: u32,
    /// The last packet's sojourn time.
    pub ldelay: u32,
}

impl Default for State {
    /// As a queue begins. The reciprocal is 0 until the first episode sets it.
    fn default() -> State {
        State {
            count: 0,
            lastcount: 0,
            dropping: false,
            reciprocal: 0,
            first_above: 0,
            drop_next: 0,
            ldelay: 0,
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Packets marked because they waited longer than `ce_threshold`.
    pub ce_mark: u32,
}

/// The queue that the law is applied to.
pub trait CodelQueue {
    /// A packet taken out of it.
    type Packet;
    /// Takes the head.
    fn pop(&mut self) -> Option<Self::Packet>;
    /// Drops a packet that was taken.
    fn drop_packet(&mut self, packet: Self::Packet);
    /// Marks congestion; false when the packet cannot carry the mark.
    fn mark(&mut self, packet: &Self::Packet) -> bool;
    /// When the packet came, and its length in bytes.
    fn seen(&self, packet: &Self::Packet) -> (u32, u32);
    /// Its DS field.
    fn dsfield(&self, packet: &Self::Packet) -> u8;
    /// Bytes still waiting in the qdisc.
    fn backlog(&self) -> u64;
}

impl State {
    /// Takes the next packet that may leave; drops or marks packets by the control law.
    pub fn dequeue<Q: CodelQueue>(
        &mut self,
        params: &Params,
        counts: &mut Stats,
        now: u32,
        queue: &mut Q,
    ) -> Option<Q::Packet> {
        let Some(mut packet) = queue.pop() else {
            // An empty queue is not above target (RFC 8289, section 5.6).
            self.first_above = 0;
            self.dropping = false;
            return None;
        };
        let mut above = self.above(params, counts, now, queue, Some(&packet));
        if self.dropping {
            if !above {
                self.dropping = false;
            }
            let mut dropped = 0;
            while self.dropping && due(now, self.drop_next) && dropped < params.most_drops {
                dropped += 1;
                self.count = self.count.wrapping_add(1);
                self.newton();
                if params.ecn && queue.mark(&packet) {
                    counts.ecn_mark += 1;
                    self.drop_next = self.law(self.drop_next, params);
                    break;
                }
                queue.drop_packet(packet);
                let next = queue.pop();
                above = self.above(params, counts, now, queue, next.as_ref());
                if above {
                    self.drop_next = self.law(self.drop_next, params);
                } else {
                    self.dropping = false;
                }
                packet = next?;
            }
        } else if above {
            let mut head = Some(packet);
            if let Some(first) = head.take() {
                if params.ecn && queue.mark(&first) {
                    counts.ecn_mark += 1;
                    head = Some(first);
                } else {
                    queue.drop_packet(first);
                    head = queue.pop();
                    self.above(params, counts, now, queue, head.as_ref());
                }
            }
            self.enter(params, now);
            packet = head?;
        }
        self.threshold_mark(params, counts, queue, &packet);
        Some(packet)
    }

    /// Has the sojourn time been above target long enough? Also learns from the packet.
    fn above<Q: CodelQueue>(
        &mut self,
        params: &Params,
        counts: &mut Stats,
        now: u32,
        queue: &Q,
        packet: Option<&Q::Packet>,
    ) -> bool {
        let Some(packet) = packet else {
            self.first_above = 0;
            return false;
        };
        let (stamp, len) = queue.seen(packet);
        self.ldelay = now.wrapping_sub(stamp);
        counts.maxpacket = counts.maxpacket.max(len);
        if before(self.ldelay, params.target) || queue.backlog() <= u64::from(params.mtu) {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now.wrapping_add(params.interval);
            return false;
        }
        before(self.first_above, now)
    }

    /// Begins a dropping episode: soon after the last one, where that left off.
    fn enter(&mut self, params: &Params, now: u32) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.lastcount);
        if delta > 1 && before(now.wrapping_sub(self.drop_next), params.interval.wrapping_mul(16)) {
            self.count = delta;
            self.newton();
        } else {
            self.count = 1;
            self.reciprocal = u16::MAX;
        }
        self.lastcount = self.count;
        self.drop_next = self.law(now, params);
    }

    fn threshold_mark<Q: CodelQueue>(
        &self,
        params: &Params,
        counts: &mut Stats,
        queue: &mut Q,
        packet: &Q::Packet,
    ) {
        if !before(params.ce_threshold, self.ldelay) {
            return;
        }
        let (value, mask) = params.ce_selector;
        if (mask == 0 || queue.dsfield(packet) & mask == value) && queue.mark(packet) {
            counts.ce_mark += 1;
        }
    }

    /// One step of Newton's method towards 1/sqrt(count).
    fn newton(&mut self) {
        let inverse = u64::from(self.reciprocal) << 16;
        let square = (inverse * inverse) >> 32;
        let value = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.reciprocal = ((value.wrapping_mul(inverse) >> (32 - 2 + 1)) >> 16) as u16;
    }

    /// The next drop after `t`: an interval divided by the square root of the count.
    fn law(&self, t: u32, params: &Params) -> u32 {
        let wait = ((u64::from(params.interval) * (u64::from(self.reciprocal) << 16)) >> 32) as u32;
        t.wrapping_add(wait.max(params.least_wait))
    }

    /// As a dump brings it; `now` in CoDel units.
    pub fn stats(&self, now: u32) -> CodelStats {
        let delta = self.drop_next.wrapping_sub(now) as i32;
        let drop_next_us = match (self.dropping, delta >= 0) {
            (false, _) => 0,
            (true, true) => micros(delta as u32) as i32,
            (true, false) => -(micros(delta.unsigned_abs()) as i32),
        };
        CodelStats {
            count: self.count,
            lastcount: self.lastcount,
            ldelay_us: micros(self.ldelay),
            drop_next_us,
            dropping: self.dropping,
            ..CodelStats::default()
        }
    }
}

/// Is `a` before `b` on the wrapping clock?
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Has `at` come?
fn due(now: u32, at: u32) -> bool {
    now.wrapping_sub(at) as i32 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Packets that came at a time, with their lengths; the first leaves first.
    struct Line(Vec<(u32, u32)>);

    impl CodelQueue for Line {
        type Packet = (u32, u32);

        fn pop(&mut self) -> Option<(u32, u32)> {
            (!self.0.is_empty()).then(|| self.0.remove(0))
        }

        fn drop_packet(&mut self, _: (u32, u32)) {}

        fn mark(&mut self, _: &(u32, u32)) -> bool {
            true
        }

        fn seen(&self, packet: &(u32, u32)) -> (u32, u32) {
            *packet
        }

        fn dsfield(&self, _: &(u32, u32)) -> u8 {
            0
        }

        fn backlog(&self) -> u64 {
            self.0.iter().map(|(_, len)| u64::from(*len)).sum()
        }
    }

    /// Nothing is dropped where no more than one packet of the largest size waits (RFC 8289, section 5.4).
    #[test]
    fn a_last_packet_is_no_persistent_queue() {
        let params = Params::new(1514);
        let mut counts = Stats::default();
        let above = |backlog: u32| {
            let line = Line(Vec::from([(0, backlog)]));
            let mut state = State { first_above: 1, ..State::default() };
            state.above(&params, &mut counts, params.target + params.interval, &line, Some(&(0, 1514)))
        };
        assert_eq!([1513, 1514, 1515].map(above), [false, false, true]);
    }

    /// An episode that begins less than 16 intervals after the last drop was due continues at its rate; a
    /// later one begins again (Linux's reading of RFC 8289, section 5.5).
    #[test]
    fn an_episode_remembers_the_last_for_sixteen_intervals() {
        let params = Params::new(1514);
        let count_after = |intervals: u32, more: u32| {
            let mut state =
                State { count: 10, lastcount: 4, drop_next: 77, reciprocal: 20_000, ..State::default() };
            state.enter(&params, 77 + intervals * params.interval + more);
            (state.count, state.lastcount)
        };
        assert_eq!(count_after(1, 0), (6, 6));
        assert_eq!(count_after(15, params.interval - 1), (6, 6));
        assert_eq!(count_after(16, 0), (1, 1));
    }

    /// What waited longer than the threshold is marked, and what waited as long is not.
    #[test]
    fn the_threshold_itself_is_not_above_it() {
        let params = Params { ce_threshold: 500, ..Params::new(1514) };
        let marked = |waited: u32| {
            let mut queue = Line(Vec::from([(1000, 100)]));
            let mut counts = Stats::default();
            let _ = State::default().dequeue(&params, &mut counts, 1000 + waited, &mut queue);
            counts.ce_mark
        };
        assert_eq!([499, 500, 501].map(marked), [0, 0, 1]);
    }

    /// Row V-C0: the reciprocal square roots and spacings that the fixed point gives.
    #[test]
    fn spacings_of_the_control_law() {
        let mut state = State { count: 1, reciprocal: u16::MAX, ..State::default() };
        let mut table = Vec::new();
        for count in 1..=32 {
            if count > 1 {
                state.count = count;
                state.newton();
            }
            if [1, 2, 3, 4, 8, 16, 32].contains(&count) {
                table.push((count, state.reciprocal, state.law(0, &Params::new(1514))));
            }
        }
        assert_eq!(
            table,
            [
                (1, 65535, 97654),
                (2, 32769, 48829),
                (3, 36864, 54931),
                (4, 31968, 47635),
                (8, 23037, 34327),
                (16, 16360, 24378),
                (32, 11580, 17255)
            ]
        );
    }
}
