//! Random early detection (Floyd and Jacobson 1993; adaptive: Floyd, Gummadi and Shenker 2001), shared by
//! red, choke and sfq.
//!
//! The average queue length moves by 1/2^wlog of its distance to the present one with every arrival. Below
//! `min` packets pass, from `max` on all are marked. Between them the gap from one mark to the next is
//! uniform between 1 and the inverse of a probability that grows with the average ("method 2" of the paper).
//! While the queue was idle the average sinks as if small packets had been sent. Lengths are bytes or
//! packets, as the user counts; averages are scaled by 2^wlog.

use alloc::boxed::Box;
use tidegate_packet::{RandomSource, Time};
use tidegate_policy::{IdleTable, RedCurve};

/// A percent of the probability 2^32.
const PERCENT: u32 = 42_949_673;
const MOST_OF_P: u32 = 50 * PERCENT;

/// The parameters and the average by which packets are dropped or marked.
#[derive(Clone, Debug)]
pub struct Params {
    curve: RedCurve,
    /// Scaled.
    min: u64,
    /// Scaled.
    max: u64,
    /// `max - min`, at least 1; not scaled.
    width: u32,
    /// What `curve.max_p` comes to per unit of length, at least 1.
    p_per_unit: u32,
    idle: Option<Box<IdleTable>>,
}

/// What happens to a packet.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedVerdict {
    /// Nothing.
    Pass,
    /// It was its turn: mark it, or drop it.
    Mark,
    /// The average is beyond `max`.
    Hard,
}

/// The average and what goes with it.
#[derive(Clone, Debug)]
pub struct State {
    average: u64,
    /// Packets since the last mark; -1 outside the band.
    count: i32,
    /// The next mark is due when count times the average's height in the band reaches this.
    due: u32,
    idle_since: Option<Time>,
}

impl Params {
    /// `None` if the kernel would not take these.
    pub fn new(curve: RedCurve, idle: Option<Box<IdleTable>>) -> Option<Params> {
        let fits = |length: u32| 32 - length.leading_zeros() + u32::from(curve.wlog) < 32;
        let table_fits = idle.as_ref().is_none_or(|table| table.iter().all(|shift| *shift < 32));
        if !fits(curve.min)
            || !fits(curve.max)
            || curve.scell_log >= 32
            || curve.max < curve.min
            || !table_fits
        {
            return None;
        }
        let width = (curve.max - curve.min).max(1);
        let mut params = Params {
            min: u64::from(curve.min) << curve.wlog,
            max: u64::from(curve.max) << curve.wlog,
            width,
            p_per_unit: 1,
            curve,
            idle,
        };
        if params.curve.max_p == 0 {
            // tc passed kernels before 3.3 a power of two instead.
            let most = if params.curve.plog < 32 { u32::MAX >> params.curve.plog } else { u32::MAX };
            params.curve.max_p = most.wrapping_mul(width);
        }
        params.p_per_unit = (params.curve.max_p / width).max(1);
        Some(params)
    }

    /// As they are now: adaptation moves the probability.
    pub fn curve(&self) -> RedCurve {
        self.curve
    }

    /// Moves the probability so that the average comes to lie between 0.4 and 0.6 of the way from `min` to
    /// `max`.
    pub fn adapt(&mut self, state: &State, now: Time) {
        let average = state.idle_since.map_or(state.average, |since| state.after_idling(self, since, now));
        let average = average >> self.curve.wlog;
        let fifth = u64::from(self.width / 5);
        let low = u64::from(self.curve.min) + 2 * fifth;
        let p = &mut self.curve.max_p;
        if average > low + fifth && *p <= MOST_OF_P {
            *p += PERCENT.min(*p / 4);
        } else if average < low && *p >= PERCENT {
            *p = *p / 10 * 9;
        }
        let rounded = (u64::from(*p) + u64::from(self.width / 2)) / u64::from(self.width);
        self.p_per_unit = (rounded as u32).max(1);
    }

    fn draw(&self, random: &mut dyn RandomSource) -> u32 {
        random.u32() / self.p_per_unit
    }
}

impl Default for State {
    fn default() -> State {
        State { average: 0, count: -1, due: 0, idle_since: None }
    }
}

impl State {
    /// A packet meets a queue of this length.
    pub fn arrival(&mut self, params: &Params, length: u32, now: Time) {
        match self.idle_since.take() {
            Some(since) => self.average = self.after_idling(params, since, now),
            None => {
                self.average =
                    self.average.wrapping_add(u64::from(length)) - (self.average >> params.curve.wlog)
            }
        }
    }

    /// The queue has nothing to send.
    pub fn idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// New parameters: the average begins at nothing. A queue found empty is no longer taken for idle.
    pub fn forget(&mut self, empty: bool) {
        (self.average, self.count) = (0, -1);
        if empty {
            self.idle_since = None;
        }
    }

    /// The queue was emptied by force.
    pub fn restart(&mut self) {
        (self.idle_since, self.average, self.count) = (None, 0, -1);
    }

    /// What happens to the packet that arrived.
    pub fn decide(&mut self, params: &Params, random: &mut dyn RandomSource) -> RedVerdict {
        self.decide_beside(params, random, 0)
    }

    /// Decides for a queue where the averages of other queues count too (gred's WRED mode).
    pub fn decide_beside(
        &mut self,
        params: &Params,
        random: &mut dyn RandomSource,
        others: u64,
    ) -> RedVerdict {
        let average = self.average.wrapping_add(others);
        if average < params.min {
            self.pass();
            return RedVerdict::Pass;
        }
        if average >= params.max {
            self.pass();
            return RedVerdict::Hard;
        }
        if self.is_selected_at(params, random, average) { RedVerdict::Mark } else { RedVerdict::Pass }
    }

    /// The average, scaled.
    pub fn average(&self) -> u64 {
        self.average
    }

    /// Is the queue idle?
    pub fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    /// What the average has sunk to by now, not scaled.
    pub fn average_at(&self, params: &Params, now: Time) -> u64 {
        self.idle_since.map_or(self.average, |since| self.after_idling(params, since, now))
            >> params.curve.wlog
    }

    /// Takes another's average over, and its being idle.
    pub fn take_average_of(&mut self, other: &State) {
        (self.average, self.idle_since) = (other.average, other.idle_since);
    }

    /// The average is outside the band: no gap is being counted.
    pub fn pass(&mut self) {
        self.count = -1;
    }

    /// Inside the band: is it this packet's turn? The gap to the next is drawn then, and when the band is
    /// entered.
    pub fn is_selected(&mut self, params: &Params, random: &mut dyn RandomSource) -> bool {
        self.is_selected_at(params, random, self.average)
    }

    fn is_selected_at(&mut self, params: &Params, random: &mut dyn RandomSource, average: u64) -> bool {
        self.count = self.count.wrapping_add(1);
        if self.count != 0 {
            let height = average.wrapping_sub(params.min) >> params.curve.wlog;
            if height.wrapping_mul(self.count as u64) < u64::from(self.due) {
                return false;
            }
            self.count = 0;
            self.due = params.draw(random);
            return true;
        }
        self.due = params.draw(random);
        false
    }

    /// Is the average at most `min`?
    pub fn is_low(&self, params: &Params) -> bool {
        self.average <= params.min
    }

    /// Is the average beyond `max`?
    pub fn is_high(&self, params: &Params) -> bool {
        self.average > params.max
    }

    fn after_idling(&self, params: &Params, since: Time, now: Time) -> u64 {
        let cell = u32::from(params.curve.scell_log);
        let idle_us = (now.since(since).0 / 1000).min(u64::from(255_u32 << cell));
        let shift = params.idle.as_ref().map_or(0, |table| table[(idle_us >> cell) as usize & 255]);
        if shift > 0 {
            return self.average >> shift;
        }
        // At most half is gone, and of an odd average the lower half is left: recorded runs of choke draw
        // less than otherwise.
        let (sunk, half) = (self.average.wrapping_mul(idle_us) >> cell, self.average >> 1);
        if sunk < half { self.average - sunk } else { half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use tidegate_packet::{Nanos, Seeded};

    fn curve(max_p: u32) -> RedCurve {
        RedCurve { min: 5_000, max: 20_000, wlog: 4, plog: 0, scell_log: 10, max_p }
    }

    fn params(max_p: u32) -> Params {
        Params::new(curve(max_p), None).unwrap_or_else(|| unreachable!("the kernel takes these"))
    }

    /// A state whose average has come to rest at this length.
    fn settled(params: &Params, length: u32) -> State {
        let mut state = State::default();
        (0..500).for_each(|_| state.arrival(params, length, Time(0)));
        state
    }

    /// Tells a row of `docs/validation.md`.
    fn row(id: &str, what: &str, expected: &str, found: &str) {
        extern crate std;
        let group = "Queueing theory and hashing";
        std::println!(
            "validation: {group} | {id} | {what} | {expected} | {found} | within | Floyd and Jacobson 1993"
        );
    }

    /// V-E2: after a burst of 50 packets into an empty queue the average is L + 1 + ((1 - w)^(L+1) - 1) / w.
    #[test]
    fn a_burst_moves_the_average_as_in_the_paper() {
        // A weight of 1/512, and lengths in packets of 1,000 bytes.
        let curve = RedCurve { wlog: 9, ..curve(1 << 28) };
        let params = Params::new(curve, None).unwrap_or_else(|| unreachable!("the kernel takes these"));
        let mut state = State::default();
        (0..50).for_each(|packets| state.arrival(&params, (packets + 1) * 1000, Time(0)));
        let average = (state.average >> 9) as f64 / 1000.0;
        row(
            "V-E2",
            "RED: average after a burst of 50, weight 1/512",
            "2.413 ± 1 %",
            &alloc::format!("{average:.3}"),
        );
        assert!((average / 2.413 - 1.0).abs() <= 0.01, "{average}");
    }

    /// V-E1. Floyd and Jacobson 1993, method 2: the gaps are uniform on 1 to 1/p, whose mean is (1/p + 1)/2.
    #[test]
    fn gaps_between_marks_are_uniform() {
        let params = params((u32::MAX / 10) + 1);
        let mut state = settled(&params, 12_500);
        let mut random = Seeded::new(7);
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..200_000 {
            gap += 1;
            if state.decide(&params, &mut random) == RedVerdict::Mark {
                gaps.push(core::mem::take(&mut gap));
            }
        }
        // Half way up a band with a probability of 0.1: p = 0.05.
        let (most, mean) = (gaps.iter().max().copied(), gaps.iter().sum::<u32>() as f64 / gaps.len() as f64);
        assert!(most.is_some_and(|most| (19..=21).contains(&most)), "the longest gap is {most:?}");
        assert!((10.3..10.7).contains(&mean), "the mean gap is {mean}");
        row("V-E1", "RED: mean gap between marks, p = 0.05", "10.5 ± 2 %", &alloc::format!("{mean:.2}"));
    }

    #[test]
    fn outside_the_band_nothing_is_drawn() {
        let params = params(1 << 28);
        let mut random = Seeded::new(1);
        let verdict: Vec<RedVerdict> =
            [4_900, 20_100].map(|length| settled(&params, length).decide(&params, &mut random)).into();
        assert_eq!(verdict, vec![RedVerdict::Pass, RedVerdict::Hard]);
        assert_eq!(random.u32(), Seeded::new(1).u32());
    }

    /// While idle the average is halved for each step of the table; in the first cell it sinks in proportion,
    /// but not below half.
    #[test]
    fn an_idle_queue_lets_the_average_sink() {
        let mut table = Box::new([0; 256]);
        table[2] = 3;
        let params = Params::new(curve(1 << 28), Some(table))
            .unwrap_or_else(|| unreachable!("the kernel takes these"));
        let sunk = |us: u64| {
            let mut state = settled(&params, 16_000);
            let before = state.average;
            state.idle(Time(1_000));
            state.arrival(&params, 16_000, Time(1_000) + Nanos::micros(us));
            (before - state.average) * 1000 / before
        };
        assert_eq!([0, 256, 1023, 2048].map(sunk), [0, 250, 500, 875]);
    }

    /// Of 24 runs of choke with small packets, bursts and short idle times that a real Linux answered, three
    /// have one or two draws fewer than if an odd average left its upper half; with the lower half the draws
    /// of all 24 are the same.
    #[test]
    fn an_odd_average_leaves_its_lower_half() {
        let params = params(1 << 28);
        let left = |average: u64, us: u64| {
            let mut state = State { average, idle_since: Some(Time(0)), ..State::default() };
            state.arrival(&params, 0, Time(0) + Nanos::micros(us));
            state.average
        };
        // 512 us are half a cell.
        assert_eq!([left(16, 600), left(17, 600), left(17, 512), left(17, 100)], [8, 8, 8, 16]);
    }

    /// Floyd, Gummadi and Shenker 2001: the probability stays between 1 and 50 per cent.
    #[test]
    fn adaptation_stays_within_bounds() {
        let mut params = params(PERCENT * 10);
        for (length, least, most) in [(19_000, 0.50, 0.52), (5_500, 0.008, 0.01), (12_500, 0.008, 0.01)] {
            let state = settled(&params, length);
            (0..500).for_each(|_| params.adapt(&state, Time(0)));
            let p = f64::from(params.curve().max_p) / 4_294_967_296.0;
            assert!((least..=most).contains(&p), "at {length} the probability goes to {p}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let taken = |change: fn(&mut RedCurve)| {
            let mut curve = curve(1);
            change(&mut curve);
            Params::new(curve, None).is_some()
        };
        let table = [
            taken(|_| ()),
            taken(|c| c.max = 1 << 28),
            taken(|c| c.min = 30_000),
            taken(|c| c.scell_log = 32),
        ];
        assert_eq!(table, [true, false, false, false]);
        assert!(Params::new(curve(1), Some(Box::new([32; 256]))).is_none());
    }
}
