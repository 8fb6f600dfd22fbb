//! COBALT: CoDel and BLUE together, CAKE's AQM for each flow (the CAKE paper, LANMAN 2018, section III.B; RFC
//! 8289).
//!
//! CoDel's law in nanoseconds with a reciprocal square root of 32 bits. Unlike the original it does not
//! forget an episode at once: while a flow keeps its delay, the count goes down by one for every interval of
//! the law that passes. BLUE runs beside it for flows that do not respond: a probability that rises when the
//! whole memory is full and this flow fills most of it, and sinks when its queue runs empty.

#[cfg(doc)]
use tidegate_packet::LinuxChange;
use tidegate_packet::Time;

/// BLUE's probability rises by 1/256 at a time, and sinks by 1/4096.
const RISE: u32 = 1 << 24;
const SINK: u32 = 1 << 20;

/// For counts below this the reciprocal square root is kept ready: Newton's method converges too slowly where
/// it changes most.
const READY: usize = 16;

/// `ROOTS[n]` = 2^32 / sqrt(n), as four steps of Newton's method from the one before give it.
static ROOTS: [u32; READY] = roots();

/// The same, with the exact values, rounded, of those that are off by more than rounding.
static EXACT: [u32; READY] = exact();

const fn exact() -> [u32; READY] {
    let mut all = roots();
    (all[2], all[3], all[6]) = (3_037_000_500, 2_479_700_525, 1_753_413_056);
    all
}

const fn roots() -> [u32; READY] {
    let mut all = [u32::MAX; READY];
    let (mut count, mut root) = (1, u32::MAX);
    while count < READY {
        let mut step = 0;
        while step < 4 {
            root = newton(root, count as u32);
            step += 1;
        }
        all[count] = root;
        count += 1;
    }
    all
}

/// One step of Newton's method towards 2^32 / sqrt(count).
const fn newton(root: u32, count: u32) -> u32 {
    let inverse = root as u64;
    let square = (inverse * inverse) >> 32;
    let value = (3_u64 << 32).wrapping_sub((count as u64).wrapping_mul(square)) >> 2;
    (value.wrapping_mul(inverse) >> (32 - 2 + 1)) as u32
}

/// The knobs of a tin. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Params {
    /// The sojourn time that is tolerated, ns.
    pub target: u64,
    /// How long the sojourn time must stay above the target before a flow gets signals, ns.
    pub interval: u64,
    /// How long the largest frame takes at the tin's rate, ns.
    pub frame_time: u64,
    /// Whether the reciprocal square roots are exact ([`LinuxChange::CakeRoots`]).
    pub exact: bool,
    /// Whether BLUE has no say about what is dropped already ([`LinuxChange::CakeBlue`]).
    pub blue_last: bool,
}

/// One flow's memory.
///
/// A fresh flow's root is 0, not 1: its first signal comes without the interval that others are given, as in
/// Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// When the next signal is due, ns; while there is no count, until when the flow counts as active.
    pub drop_next: u64,
    /// When BLUE's probability last changed, ns.
    pub blue_timer: u64,
    /// Signals in this episode, less those forgotten since.
    pub count: u32,
    /// 1/sqrt(count), in units of 2^-32.
    root: u32,
    /// BLUE's probability, 2^32 = 1.
    pub blue: u32,
    /// In a dropping episode?
    pub dropping: bool,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CobaltVerdict {
    /// It should be dropped.
    pub drop: bool,
    /// It was marked.
    pub marked: bool,
}

/// What the law needs of a packet and of the draws, in the order in which it needs them.
pub trait AqmQueue {
    /// Marks congestion; false when the packet cannot carry the mark.
    fn mark(&mut self) -> bool;
    /// 32 random bits.
    fn draw(&mut self) -> u32;
}

impl State {
    /// The whole memory is full and a packet of this flow makes space; returns whether the flow counts as
    /// unresponsive from now on.
    pub fn full(&mut self, params: &Params, now: Time) -> bool {
        let mut begins = false;
        if self.blue_is_due(params, now) {
            begins = self.blue == 0;
            self.blue = self.blue.saturating_add(RISE);
            self.blue_timer = now.0;
        }
        self.dropping = true;
        self.drop_next = now.0;
        self.count = self.count.max(1);
        begins
    }

    /// The flow's queue was found empty; returns whether it ceases to count as unresponsive.
    pub fn empty(&mut self, params: &Params, now: Time) -> bool {
        let mut ends = false;
        if self.blue > 0 && self.blue_is_due(params, now) {
            self.blue = self.blue.saturating_sub(SINK);
            self.blue_timer = now.0;
            ends = self.blue == 0;
        }
        self.dropping = false;
        if self.count > 0 && self.since_due(now) >= 0 {
            self.forget_one(params);
        }
        ends
    }

    /// Decides about a packet with a sojourn time of `sojourn` nanoseconds; `bulk` flows share the cost of
    /// drops (0: none).
    pub fn decide(
        &mut self,
        params: &Params,
        now: Time,
        sojourn: u64,
        bulk: u32,
        packet: &mut impl AqmQueue,
    ) -> CobaltVerdict {
        let mut since_due = self.since_due(now);
        let mut due = self.count > 0 && since_due >= 0;
        self.look_at(params, now, sojourn, bulk);
        let mut verdict = CobaltVerdict { drop: false, marked: false };
        if due && self.dropping {
            verdict.marked = packet.mark();
            verdict.drop = !verdict.marked;
            self.count = self.count.saturating_add(1);
            self.step(params);
            since_due = self.since_due(now);
        } else {
            while due {
                self.forget_one(params);
                since_due = self.since_due(now);
                due = self.count > 0 && since_due >= 0;
            }
        }
        if self.blue > 0 && !(params.blue_last && verdict.drop) {
            verdict.drop |= packet.draw() < self.blue;
        }
        if self.count == 0 {
            self.drop_next = now.0 + params.interval;
        } else if since_due > 0 && !verdict.drop {
            self.drop_next = now.0;
        }
        verdict
    }

    /// Is there anything about the flow that must not be forgotten yet?
    pub fn is_active(&self, now: Time) -> bool {
        self.blue > 0 || self.count > 0 || (now.0 as i64) < self.drop_next as i64
    }

    /// Begins or ends an episode by the delay of one packet.
    fn look_at(&mut self, params: &Params, now: Time, sojourn: u64, bulk: u32) {
        let frames = params.frame_time;
        let over = sojourn > params.target
            && sojourn > frames.wrapping_mul(u64::from(bulk) * 2)
            && sojourn > frames.wrapping_mul(4);
        if !over {
            self.dropping = false;
            return;
        }
        if !self.dropping {
            self.dropping = true;
            self.drop_next = self.law(now.0, params);
        }
        self.count = self.count.max(1);
    }

    fn blue_is_due(&self, params: &Params, now: Time) -> bool {
        now.0.wrapping_sub(self.blue_timer) as i64 > params.target as i64
    }

    /// Nanoseconds since the next signal was due; negative: until then.
    fn since_due(&self, now: Time) -> i64 {
        now.0.wrapping_sub(self.drop_next) as i64
    }

    fn forget_one(&mut self, params: &Params) {
        self.count -= 1;
        self.step(params);
    }

    /// The count has changed: the next signal is one interval of the law later.
    fn step(&mut self, params: &Params) {
        let ready = if params.exact { &EXACT } else { &ROOTS };
        self.root = match ready.get(self.count as usize) {
            Some(root) => *root,
            None => newton(self.root, self.count),
        };
        self.drop_next = self.law(self.drop_next, params);
    }

    /// The next signal after `t`: an interval divided by the square root of the count. The interval has 32
    /// bits there.
    fn law(&self, t: u64, params: &Params) -> u64 {
        t + ((u64::from(params.interval as u32) * u64::from(self.root)) >> 32)
    }
}
