//! How fast to send so that a line is full, and not much more: for load without a helper at the line's remote
//! end.

use alloc::collections::VecDeque;

/// From one decision to the next, ns.
pub const STEP: u64 = 20_000_000;
/// What a rate grows by in a step while the line is not full: ninefold in a second.
const GROWTH: f64 = 1.045;
/// What comes back of what was sent, at least, while the line is not full.
const ALL: f64 = 0.85;
/// Above what comes back, so that the line stays full.
const FULL: f64 = 1.15;
/// Steps that are remembered.
const REMEMBERED: usize = 320;
/// So many steps decide, or more where they have less than [`EVIDENCE`].
const SURE: usize = 8;
/// What must have been sent in the steps that decide, bits: two dozen packets of 1,400 bytes. Of fewer, a
/// computer that was late for some would look like a line that is full.
const EVIDENCE: f64 = 24.0 * 11_200.0;
/// What comes back of what was sent when the line is not full after all: then [`FULL`] is not more than it
/// carries.
const NOT_FULL: f64 = 0.97;

/// For what comes back: the rate grows until not all of it does.
#[derive(Clone, Debug)]
pub struct Echoed {
    most: f64,
    /// What was offered in each step, the latest last.
    offered: VecDeque<f64>,
    /// What came back in the last steps, and what it is the answer to.
    recent: VecDeque<(f64, f64)>,
    /// What came back recently, if the line is full.
    full: Option<f64>,
}

impl Echoed {
    /// Begins at a rate, and never goes beyond `most`; bits per second.
    pub fn new(first: f64, most: f64) -> Echoed {
        Echoed { most, offered: [first.min(most)].into(), recent: VecDeque::new(), full: None }
    }

    /// What to send in the step that begins, bits per second.
    pub fn offered(&self) -> f64 {
        self.offered.back().copied().unwrap_or(self.most)
    }

    /// Is the line full, as far as the last steps show it?
    pub fn was_full(&self) -> bool {
        self.full.is_some()
    }

    /// What came back of what was sent, over the last steps; `None`: too little was sent to know.
    fn share(&self) -> Option<f64> {
        let (mut back, mut then, mut steps) = (0.0, 0.0, 0);
        for (came, offered) in self.recent.iter().rev() {
            if steps >= SURE && then * STEP as f64 / 1e9 >= EVIDENCE {
                break;
            }
            (back, then, steps) = (back + came, then + offered, steps + 1);
        }
        (steps >= SURE && then * STEP as f64 / 1e9 >= EVIDENCE).then(|| back / then)
    }

    /// A step is over: so much came back in it, of what was sent a round trip before.
    pub fn step(&mut self, back: f64, round_trip_ns: u64) {
        let steps = usize::try_from(round_trip_ns.div_ceil(STEP)).unwrap_or(usize::MAX);
        let then = self.offered.len().checked_sub(steps + 1).and_then(|at| self.offered.get(at)).copied();
        let now = self.offered();
        if let Some(then) = then {
            self.recent.push_back((back, then));
            if self.recent.len() > REMEMBERED {
                self.recent.pop_front();
            }
        }
        let share = self.share();
        // What went at a limit of our own and came back says nothing of the line's.
        if self.full.is_some() && share.is_some_and(|share| share >= NOT_FULL) {
            self.full = None;
            self.recent.clear();
        } else if self.full.is_none()
            && let Some(share) = share.filter(|share| *share < ALL)
        {
            self.full = Some(share * then.unwrap_or(now));
        }
        let next = match (&mut self.full, then) {
            (Some(full), _) => {
                *full += (back - *full) / 16.0;
                *full * FULL
            }
            (None, Some(then)) if back < ALL * then && then * STEP as f64 / 1e9 >= EVIDENCE / 24.0 => now,
            (None, Some(_)) => now * GROWTH,
            // Nothing can have come back yet.
            (None, None) => now,
        };
        self.offered.push_back(next.clamp(1.0, self.most));
        if self.offered.len() > REMEMBERED {
            self.offered.pop_front();
        }
    }
}

/// For traffic that does not come back: the additional delay of replies from behind the line shows whether it
/// is full. First the rate grows until they do, and stays so that the buffer fills; then the queue is kept at
/// half of what it was, so that it neither ends nor overflows and the line's rate is what was sent meanwhile.
#[derive(Clone, Debug)]
pub struct Delayed {
    most: f64,
    round_trip: f64,
    offered: f64,
    /// About what the line takes, once it has been full.
    about: f64,
    /// The longest that answers took more, and the last that did.
    longest: u64,
    last: u64,
    /// Where the queue is kept, ns.
    target: Option<u64>,
}

/// Answers that take so much longer have waited, ns.
const WAITED: u64 = 20_000_000;
/// How much of the rate a queue in the wrong place changes, at most: slow enough for the replies that show
/// it.
const PULL: f64 = 0.5;
/// How fast the rate that a line is believed to have follows what is seen.
const LEARN: f64 = 0.02;
/// What it is believed to be at most of what it was, while the buffer is full.
const OVERFLOWING: f64 = 0.5;

impl Delayed {
    /// Begins at a rate, and never goes beyond `most`; bits per second. `round_trip_ns`: of an answer on the
    /// idle line.
    pub fn new(first: f64, most: f64, round_trip_ns: u64) -> Delayed {
        Delayed {
            most,
            round_trip: round_trip_ns as f64,
            offered: first.min(most),
            about: 0.0,
            longest: 0,
            last: 0,
            target: None,
        }
    }

    /// What to send in the step that begins, bits per second.
    pub fn offered(&self) -> f64 {
        self.offered
    }

    /// Has the line been full?
    pub fn was_full(&self) -> bool {
        self.longest >= WAITED
    }

    /// From now on the queue is kept at half of what it was.
    pub fn level(&mut self) {
        self.target = Some((self.longest / 2).max(1));
    }

    /// A step is over, in which answers took so much longer than on the idle line; `None`: none came.
    pub fn step(&mut self, growth_ns: Option<u64>) {
        // A missing reply may be at the end of a full buffer.
        let Some(growth) = growth_ns else { return };
        let before = self.was_full();
        self.longest = self.longest.max(growth);
        self.offered = match self.target {
            Some(target) => {
                // A full buffer keeps what more is sent from showing.
                let seen = match growth > self.longest / 8 * 7 {
                    true => self.about * OVERFLOWING,
                    false => {
                        self.offered * STEP as f64 / (STEP as f64 + growth as f64 - self.last as f64).max(1.0)
                    }
                };
                self.about += LEARN * (seen - self.about).clamp(-self.about, self.about);
                let (target, growth) = (target as f64, growth as f64);
                let pull = PULL * target / (target + self.round_trip);
                self.about * (1.0 + pull * (1.0 - growth / target)).max(PULL)
            }
            None if before => self.offered,
            None if self.was_full() => {
                self.about = self.offered / GROWTH;
                self.offered
            }
            None => self.offered * GROWTH,
        }
        .clamp(1.0, self.most);
        self.last = growth;
    }
}

/// The rate of a line while its queue never ended: `bytes` were sent between two moments, each with the
/// additional delay of a reply requested then. What was sent in between was carried in between, later by its
/// queueing delay.
pub fn passed(bytes: u64, from: (u64, u64), to: (u64, u64)) -> Option<f64> {
    let took = (to.0 + to.1).checked_sub(from.0 + from.1)?;
    (took > 0).then(|| bytes as f64 * 8e9 / took as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A line with a buffer and a round trip, step by step.
    struct Line {
        bits: f64,
        buffer_bits: f64,
        queue_bits: f64,
        round_trip: u64,
    }

    impl Line {
        /// The bytes carried in a step, and the queueing delay of the last one.
        fn step(&mut self, offered: f64) -> (f64, u64) {
            let seconds = STEP as f64 / 1e9;
            let waiting = self.queue_bits + offered * seconds;
            let through = waiting.min(self.bits * seconds);
            self.queue_bits = (waiting - through).min(self.buffer_bits);
            (through / seconds, (self.queue_bits / self.bits * 1e9) as u64)
        }
    }

    fn line(bits: f64, buffer_ms: f64) -> Line {
        Line { bits, buffer_bits: bits * buffer_ms / 1e3, queue_bits: 0.0, round_trip: 40_000_000 }
    }

    #[test]
    fn echoes_fill_a_line_within_seconds() {
        for (bits, buffer_ms) in [(500e3, 2000.0), (5e6, 400.0), (50e6, 20.0), (500e6, 100.0)] {
            let (mut line, mut ramp, mut through) = (line(bits, buffer_ms), Echoed::new(256e3, 1e9), 0.0);
            for _ in 0..300 {
                let (passed, waited) = line.step(ramp.offered());
                ramp.step(passed, line.round_trip + waited);
                through = passed;
            }
            assert!(ramp.was_full() && through > 0.98 * bits, "{bits} with {buffer_ms} ms: {through}");
            assert!(ramp.offered() < 1.4 * bits, "{bits} with {buffer_ms} ms: {} offered", ramp.offered());
        }
    }

    /// A computer that stands still for 200 ms gets nothing back meanwhile, and all of it afterwards.
    #[test]
    fn a_computer_that_was_late_is_no_full_line() {
        for pause_at in [3, 10, 40, 80] {
            let (mut line, mut ramp, mut held) = (line(50e6, 200.0), Echoed::new(256e3, 1e9), 0.0);
            for step in 0..400 {
                let (passed, waited) = line.step(ramp.offered());
                let is_late = (pause_at..pause_at + 10).contains(&step);
                let back = if is_late { 0.0 } else { passed + core::mem::take(&mut held) };
                held += if is_late { passed } else { 0.0 };
                ramp.step(back, line.round_trip + waited);
            }
            assert!(ramp.was_full() && ramp.offered() > 45e6, "late at {pause_at}: {}", ramp.offered());
        }
    }

    /// One packet in eight steps, at the rate that loads begin with: whole packets come, or none.
    #[test]
    fn few_packets_are_no_evidence() {
        let (mut ramp, mut sent, mut came) = (Echoed::new(64e3, 1e9), 0.0, 0.0);
        for _ in 0..60 {
            sent += ramp.offered() * STEP as f64 / 1e9;
            let mut back = 0.0;
            while sent - came >= 11_200.0 {
                came += 11_200.0;
                back += 11_200.0;
            }
            ramp.step(back * 1e9 / STEP as f64, 40_000_000);
            assert!(!ramp.was_full(), "{} offered", ramp.offered());
        }
        assert!(ramp.offered() > 128e3, "{}", ramp.offered());
    }

    #[test]
    fn echoes_of_a_fast_line_stop_at_the_limit() {
        let (mut line, mut ramp) = (line(1e12, 1.0), Echoed::new(256e3, 80e6));
        for _ in 0..300 {
            let (passed, waited) = line.step(ramp.offered());
            ramp.step(passed, line.round_trip + waited);
        }
        assert_eq!((ramp.was_full(), ramp.offered()), (false, 80e6));
    }

    /// The estimated share of a reply's additional delay, after a buffer of 80 ms was full at 1 Mbit/s:
    /// beyond 7/8 of the buffer the estimate is at most half, below that it follows the queue's growth.
    #[test]
    fn a_buffer_full_to_seven_eighths_tells_of_too_high_a_rate() {
        let after = |growth_ms: u64| {
            let mut ramp = Delayed::new(1e6, 1e9, 40_000_000);
            ramp.step(Some(80_000_000));
            ramp.level();
            let before = ramp.about;
            ramp.last = growth_ms * 1_000_000;
            ramp.step(Some(growth_ms * 1_000_000));
            ramp.about / before
        };
        // A hundredth: LEARN times what half is less than the whole. The first step was at 1/1.045 of the
        // offer.
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-9;
        assert!(near(after(71), 0.99), "{}", after(71));
        assert!(
            [70, 60, 41, 1].map(after).iter().all(|found| near(*found, 1.0 + 0.02 * 0.045)),
            "{}",
            after(70)
        );
    }

    /// While no reply comes back nothing is decided; a rate that comes back to 85 per cent grows by 4.5 per
    /// cent a step. Eight steps decide, together, whether the line is full: a sixteenth of each later step is
    /// learnt, and once all of what is offered comes back the line is not full any more.
    #[test]
    fn eight_steps_decide_together() {
        let mut ramp = Echoed::new(10e6, 1e9);
        ramp.step(0.0, STEP);
        assert_eq!(ramp.offered(), 10e6, "nothing can have come back yet");
        ramp.step(8.5e6, STEP);
        assert!((ramp.offered() - 10.45e6).abs() < 1.0, "{}", ramp.offered());
        for _ in 0..6 {
            ramp.step(1.0, STEP);
            assert!(!ramp.was_full() && ramp.offered() < 10.46e6, "it neither grows nor decides");
        }
        ramp.step(1.0, STEP);
        assert!(ramp.was_full());
        let believed = ramp.offered() / FULL;
        ramp.step(2e6, STEP);
        let learnt = (believed + (2e6 - believed) / 16.0) * FULL;
        assert!((ramp.offered() - learnt).abs() < 1.0, "{} is not {learnt}", ramp.offered());
        for _ in 0..20 {
            ramp.step(ramp.offered() * 1.2, STEP);
        }
        assert!(!ramp.was_full() && ramp.offered() > learnt, "{}", ramp.offered());
        // A short step among good ones decides nothing.
        let mut ramp = Echoed::new(10e6, 1e9);
        for step in 0..64 {
            ramp.step(ramp.offered() * if step % 16 == 0 { 0.5 } else { 1.0 }, STEP);
        }
        assert!(!ramp.was_full());
    }

    /// Bytes over the time from when the first left to when the last did, each later by what it waited.
    #[test]
    fn passed_counts_waiting() {
        assert_eq!(passed(1000, (0, 5), (1_000_000, 5)), Some(8e6));
        assert_eq!(passed(1000, (0, 500_000), (1_000_000, 1_500_000)), Some(4e6));
        assert_eq!((passed(1000, (5, 5), (5, 5)), passed(1000, (5, 9), (5, 5))), (None, None));
    }

    /// The rate of a line that shows nothing but reply times, within two percent.
    #[test]
    fn a_queue_kept_at_half_tells_the_rate() {
        for (bits, buffer_ms) in [(500e3, 2000.0), (5e6, 400.0), (20e6, 120.0), (100e6, 60.0)] {
            let (mut line, mut ramp) = (line(bits, buffer_ms), Delayed::new(256e3, 1e9, 40_000_000));
            let (mut bytes, mut from, mut to) = (0.0, None, None);
            // When each request was sent, and how long it was queued: known once the reply is there.
            let mut seen = vec![(0, 0)];
            for now in (0..600).map(|step| step * STEP) {
                let heard =
                    seen.iter().rev().find(|(at, waited)| at + waited + line.round_trip <= now).copied();
                if now == 300 * STEP {
                    ramp.level();
                }
                if now >= 350 * STEP && from.is_none() {
                    from = seen.last().copied();
                }
                ramp.step(heard.map(|(_, waited)| waited));
                if from.is_some() {
                    bytes += ramp.offered() / 8.0 * STEP as f64 / 1e9;
                }
                seen.push((now + STEP, line.step(ramp.offered()).1));
                to = seen.last().copied();
            }
            let found =
                passed(bytes as u64, from.expect("step 70"), to.expect("120 steps")).expect("seconds");
            assert!((found / bits - 1.0).abs() < 0.02, "{bits} with {buffer_ms} ms: {found}");
        }
    }
}
