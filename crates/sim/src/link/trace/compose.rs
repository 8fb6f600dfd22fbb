//! Traces made of traces: parts of them, one after the other, several times, begun elsewhere.
//!
//! A trace begins again at its end; what is taken of it is a window on that endless line.

use super::{Capacity, LONGEST, MILLISECOND, OPPORTUNITY, Steps, Trace, length_ms};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tidegate_packet::Nanos;

/// The most steps of what is made.
const MAX_STEPS: usize = 5_000_000;

/// A time of a composition is longer than that.
const TOO_LONG: &str = "this is more than a year of recording";

impl<T: Copy + PartialEq> Steps<T> {
    /// What holds from one time to another, the recording beginning again at its end.
    fn window(&self, from: Nanos, to: Nanos) -> Result<Vec<(Nanos, T)>, String> {
        let length = self.length().0;
        let mut found: Vec<(Nanos, T)> = Vec::new();
        let (mut round, mut at) = (from.0 / length, from.0);
        let mut step = self.0.partition_point(|(end, _)| end.0 <= from.0 % length);
        while at < to.0 {
            let (end, value) = self.0[step];
            let until = round.saturating_mul(length).saturating_add(end.0).min(to.0);
            if found.len() == MAX_STEPS {
                return Err(format!("it would have more than {MAX_STEPS} steps: take less of it"));
            }
            found.push((Nanos(until - at), value));
            at = until;
            step += 1;
            if step == self.0.len() {
                (step, round) = (0, round + 1);
            }
        }
        Ok(found)
    }
}

/// The rates, delays and losses of a window.
#[derive(Default)]
struct Parts {
    rates: Option<Vec<(Nanos, u64)>>,
    delays: Option<Vec<(Nanos, Nanos)>>,
    losses: Option<Vec<(Nanos, u32)>>,
}

impl Parts {
    fn extend(&mut self, more: Parts) {
        fn both<T>(all: &mut Option<Vec<T>>, more: Option<Vec<T>>) {
            match (all.as_mut(), more) {
                (Some(all), Some(more)) => all.extend(more),
                (None, more) => *all = more,
                (Some(_), None) => {}
            }
        }
        both(&mut self.rates, more.rates);
        both(&mut self.delays, more.delays);
        both(&mut self.losses, more.losses);
    }

    fn steps(&self) -> usize {
        let count = |steps: Option<usize>| steps.unwrap_or(0);
        count(self.rates.as_ref().map(Vec::len))
            + count(self.delays.as_ref().map(Vec::len))
            + count(self.losses.as_ref().map(Vec::len))
    }

    fn trace(self) -> Result<Trace, String> {
        let said = |(_, why): (usize, String)| why;
        let mut trace = match self.rates {
            Some(rates) => Trace::rates(rates).map_err(said)?,
            None => Trace::nothing(),
        };
        if let Some(delays) = self.delays {
            trace = trace.with_delays(delays).map_err(said)?;
        }
        if let Some(losses) = self.losses {
            trace = trace.with_losses(losses).map_err(said)?;
        }
        Ok(trace)
    }
}

impl Trace {
    /// How long it is until it begins again: that of its rates, else of its delays, else of its losses; 0 of
    /// nothing.
    pub fn length(&self) -> Nanos {
        match &self.capacity {
            Some(Capacity::Opportunities(at_ms)) => Nanos(length_ms(at_ms).saturating_mul(MILLISECOND)),
            Some(Capacity::Rates(rates)) => rates.steps.length(),
            None => match (&self.delays, &self.losses) {
                (Some(delays), _) => delays.length(),
                (None, Some(losses)) => losses.length(),
                (None, None) => Nanos(0),
            },
        }
    }

    /// The same with opportunities as rates: what each millisecond carries. What has rates already stays as
    /// it is.
    ///
    /// # Errors
    /// More than 5,000,000 milliseconds.
    pub fn with_rates(self) -> Result<Trace, String> {
        let Some(Capacity::Opportunities(at_ms)) = &self.capacity else { return Ok(self) };
        let length = length_ms(at_ms);
        if length > MAX_STEPS as u64 {
            return Err(format!("it is longer than {MAX_STEPS} ms: cut the file"));
        }
        let mut bits: Vec<u64> = alloc::vec![0; length as usize];
        for at in at_ms.iter() {
            // The opportunity at 5 ms is what the millisecond before it carries.
            bits[at.saturating_sub(1) as usize] += u64::from(OPPORTUNITY) * 8;
        }
        let rates = bits.into_iter().map(|bits| (Nanos(MILLISECOND), bits * 1000));
        let rates = Trace::rates(rates).map_err(|(_, why)| why)?;
        Ok(Trace { delays: self.delays, losses: self.losses, ..rates })
    }

    fn window(&self, from: Nanos, to: Nanos) -> Result<Parts, String> {
        let rates = match &self.capacity {
            None => None,
            Some(Capacity::Rates(rates)) => Some(rates.steps.window(from, to)?),
            Some(Capacity::Opportunities(_)) => return self.clone().with_rates()?.window(from, to),
        };
        let delays = self.delays.as_ref().map(|delays| delays.window(from, to)).transpose()?;
        let losses = self.losses.as_ref().map(|losses| losses.window(from, to)).transpose()?;
        Ok(Parts { rates, delays, losses })
    }

    /// A part of it, as a trace that begins again at its own end: from a time on, for a length, or to the
    /// end.
    ///
    /// # Errors
    /// Nothing is left, or it is more than can be kept.
    ///
    /// ```
    /// use tidegate_packet::Nanos;
    /// use tidegate_sim::Trace;
    ///
    /// let second = Nanos::secs(1);
    /// let trace = Trace::rates([(second, 1_000_000), (second, 3_000_000)]).unwrap();
    /// let late = trace.part(second, None).unwrap();
    /// assert_eq!((late.mean_rate(), late.length()), (Some(3_000_000), second));
    /// assert!(trace.part(Nanos::secs(2), None).is_err());
    /// ```
    pub fn part(&self, from: Nanos, length: Option<Nanos>) -> Result<Trace, String> {
        let whole = self.length();
        if from >= whole {
            return Err(format!("it is {} s long: nothing of it is left", whole.0 as f64 / 1e9));
        }
        let to = length.map_or(whole.0, |length| from.0.saturating_add(length.0).min(whole.0));
        self.window(from, Nanos(to))?.trace()
    }

    /// The same line begun later: what comes before that time follows at the end.
    ///
    /// # Errors
    /// It is more than can be kept.
    pub fn begun_at(&self, time: Nanos) -> Result<Trace, String> {
        let length = self.length().0.max(1);
        let from = time.0 % length;
        self.window(Nanos(from), Nanos(from + length))?.trace()
    }

    /// The same line so many times, one after the other.
    ///
    /// # Errors
    /// More than a year, or more steps than can be kept.
    pub fn repeated(&self, times: u32) -> Result<Trace, String> {
        let to = self.length().0.saturating_mul(u64::from(times.max(1)));
        if to > LONGEST.0 {
            return Err(TOO_LONG.to_string());
        }
        self.window(Nanos(0), Nanos(to))?.trace()
    }

    /// The same line, which does not begin again: what holds at its end holds from then on (for a year).
    ///
    /// # Errors
    /// It is more than can be kept.
    pub fn lasting(&self) -> Result<Trace, String> {
        fn last<T: Copy>(steps: &mut Option<Vec<(Nanos, T)>>, more: Nanos) {
            if let Some((_, value)) = steps.as_ref().and_then(|steps| steps.last()).copied()
                && let Some(steps) = steps
            {
                steps.push((more, value));
            }
        }
        let length = self.length();
        let mut parts = self.window(Nanos(0), length)?;
        let more = Nanos(LONGEST.0.saturating_sub(length.0));
        if more > Nanos(0) {
            last(&mut parts.rates, more);
            last(&mut parts.delays, more);
            last(&mut parts.losses, more);
        }
        parts.trace()
    }

    /// Lines one after the other. All of them must say the same: rates, delays. One without losses loses
    /// nothing where others have some.
    ///
    /// # Errors
    /// The place of the part (from 0), and what is wrong with it: it says more or less than the first, or it
    /// is more than can be kept, or more than a year.
    ///
    /// ```
    /// use tidegate_packet::Nanos;
    /// use tidegate_sim::Trace;
    ///
    /// let rate = |rate| Trace::rates([(Nanos::secs(1), rate)]).unwrap();
    /// let joined = Trace::joined(&[rate(1_000_000), rate(3_000_000)]).unwrap();
    /// assert_eq!((joined.mean_rate(), joined.length()), (Some(2_000_000), Nanos::secs(2)));
    /// assert_eq!(Trace::joined(&[rate(1), Trace::nothing()]).unwrap_err().0, 1);
    /// ```
    pub fn joined(parts: &[Trace]) -> Result<Trace, (usize, String)> {
        let says = |trace: &Trace| [trace.has_rates(), trace.has_delays()];
        let with_losses = parts.iter().any(Trace::has_losses);
        let mut all = Parts::default();
        let mut length = 0u64;
        for (place, part) in parts.iter().enumerate() {
            let at = |why: String| (place, why);
            for ((name, first), own) in ["rates", "delays"].into_iter().zip(says(&parts[0])).zip(says(part)) {
                if first != own {
                    let [this, that] = if own { ["has", "has none"] } else { ["has no", "has"] };
                    return Err(at(format!("it {this} {name}, and the first {that}")));
                }
            }
            length = length.saturating_add(part.length().0);
            if length > LONGEST.0 {
                return Err(at(TOO_LONG.to_string()));
            }
            let mut window = part.window(Nanos(0), part.length()).map_err(at)?;
            if with_losses {
                window.losses.get_or_insert_with(|| [(part.length(), 0)].into());
            }
            all.extend(window);
            if all.steps() > MAX_STEPS {
                return Err(at(format!("it would have more than {MAX_STEPS} steps: take less of it")));
            }
        }
        all.trace().map_err(|why| (0, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const SECOND: Nanos = Nanos::secs(1);

    /// Rates of a second each, delays of the same number of ms, and losses of so many of a million.
    fn line(rates: &[u64]) -> Trace {
        let trace = Trace::rates(rates.iter().map(|rate| (SECOND, *rate * 1_000_000))).expect("rates");
        let trace = trace.with_delays(rates.iter().map(|ms| (SECOND, Nanos::millis(*ms)))).expect("delays");
        trace.with_losses(rates.iter().map(|lost| (SECOND, *lost as u32))).expect("losses")
    }

    #[test]
    fn windows_are_parts_of_an_endless_line() {
        let one = line(&[1, 2, 3]);
        assert_eq!(one.length(), Nanos::secs(3));
        assert_eq!(one.part(SECOND, None), Ok(line(&[2, 3])));
        assert_eq!(one.part(SECOND, Some(SECOND)), Ok(line(&[2])));
        assert_eq!(one.part(SECOND, Some(Nanos::secs(9))), Ok(line(&[2, 3])));
        assert_eq!(one.part(Nanos::secs(3), None), Err("it is 3 s long: nothing of it is left".into()));
        assert_eq!(one.begun_at(Nanos::secs(4)), Ok(line(&[2, 3, 1])));
        assert_eq!(one.repeated(2), Ok(line(&[1, 2, 3, 1, 2, 3])));
        assert_eq!(Trace::joined(&[one.clone(), line(&[7])]), Ok(line(&[1, 2, 3, 7])));
        let lossless = Trace { losses: None, ..line(&[7]) };
        let zero = [(Nanos::secs(1), 0)];
        let losses = one.losses.as_ref().map(|steps| steps.window(Nanos(0), one.length()));
        let losses = losses.expect("losses").expect("steps").into_iter().chain(zero);
        let expected = Trace { losses: None, ..line(&[1, 2, 3, 7]) }.with_losses(losses).expect("losses");
        assert_eq!(Trace::joined(&[one.clone(), lossless]), Ok(expected), "nothing is lost there");
        let late = one.begun_at(Nanos::millis(500)).expect("a trace");
        assert_eq!(late.carries(Nanos(0), Nanos::millis(500)), Some(62_500));
        assert_eq!(late.length(), Nanos::secs(3));
    }

    #[test]
    fn a_line_that_lasts_does_not_begin_again() {
        let lasting = line(&[8, 16]).lasting().expect("a trace");
        assert_eq!(lasting.carries(Nanos::secs(2), Nanos::secs(3)), Some(2_000_000));
        assert_eq!(lasting.carries(Nanos::secs(1000), Nanos::secs(1001)), Some(2_000_000));
        assert_eq!(lasting.length(), LONGEST);
    }

    #[test]
    fn what_cannot_be_composed_is_refused() {
        let (rates, delays) = (
            Trace::rates([(SECOND, 5_000)]).expect("rates"),
            Trace::nothing().with_delays([(SECOND, SECOND)]).expect("delays"),
        );
        assert_eq!(
            Trace::joined(&[rates.clone(), line(&[1])]),
            Err((1, "it has delays, and the first has none".into()))
        );
        assert_eq!(
            Trace::joined(&[rates.clone(), delays]),
            Err((1, "it has no rates, and the first has".into()))
        );
        let lossy = Trace::nothing().with_losses([(SECOND, 7)]).expect("losses");
        assert!(Trace::joined(&[lossy, Trace::nothing()]).is_err(), "nothing has no length");
        assert_eq!(rates.repeated(u32::MAX), Err(TOO_LONG.into()));
        let fine = Trace::rates((0..1000).map(|n| (Nanos(1000), n * 1_000_000))).expect("rates");
        assert!(fine.repeated(6000).is_err_and(|why| why.contains("more than 5000000 steps")));
        assert_eq!(Trace::joined(&[]), Ok(Trace::nothing()));
    }

    #[test]
    fn opportunities_become_what_a_millisecond_carries() {
        // 0 counts to the first millisecond.
        let trace = Trace::parse("0\n1\n3\n3\n5\n").expect("a trace").with_rates().expect("rates");
        let each: Vec<Option<u64>> =
            (0..6).map(|ms| trace.carries(Nanos::millis(ms), Nanos::millis(ms + 1))).collect();
        assert_eq!(each, vec![Some(3000), Some(0), Some(3000), Some(0), Some(1500), Some(3000)]);
        assert_eq!(trace.length(), Nanos::millis(5));
        let parsed = Trace::parse("2\n4\n").expect("a trace");
        assert_eq!(parsed.part(Nanos::millis(2), None).map(|trace| trace.length()), Ok(Nanos::millis(2)));
        assert!(Trace::parse("6000000\n").expect("a trace").with_rates().is_err());
    }
}
