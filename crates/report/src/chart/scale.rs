//! Scales: from values to a share of an axis, with ticks where people expect them.

/// A scale from a lowest to a highest value, even or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Even, with ticks this far apart if that is settled.
    Even(Option<f64>),
    Log,
}

/// Decades a logarithmic scale spans at most, so that a zero cannot stretch it without end.
const MAX_DECADES: i32 = 12;

impl Scale {
    /// An even scale from exactly `low` to exactly `high`.
    pub fn exact(low: f64, high: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, kind: Kind::Even(None) }
    }

    /// An even scale that holds `low` to `high` and ends on ticks of about `ticks`.
    pub fn even(low: f64, high: f64, ticks: usize) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        let step = step(high - low, ticks);
        Scale {
            low: (low / step).floor() * step,
            high: (high / step - 1e-9).ceil() * step,
            kind: Kind::Even(Some(step)),
        }
    }

    /// A logarithmic scale that holds `low` to `high` (both above 0) and ends on 1, 2 or 5 times a power of
    /// ten.
    pub fn log(low: f64, high: f64) -> Scale {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let floor = high / 10f64.powi(MAX_DECADES);
        let low = if low > 0.0 { low.max(floor) } else { high / 10.0 };
        let rounded = |value: f64, up: bool| {
            let decade = 10f64.powi(value.log10().floor() as i32);
            let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade);
            let slack = 1e-9 * value;
            if up {
                steps.into_iter().find(|&s| s >= value - slack)
            } else {
                steps.into_iter().rfind(|&s| s <= value + slack)
            }
        };
        let low = rounded(low, false).unwrap_or(low);
        let high = rounded(high, true).unwrap_or(high);
        Scale { low, high: if high > low { high } else { low * 10.0 }, kind: Kind::Log }
    }

    /// The scale in a unit of which `per` make one of this scale's.
    pub fn times(self, per: f64) -> Scale {
        let kind = match self.kind {
            Kind::Even(step) => Kind::Even(step.map(|step| step * per)),
            Kind::Log => Kind::Log,
        };
        Scale { low: self.low * per, high: self.high * per, kind }
    }

    /// Where a value lies: 0 at the lowest, 1 at the highest; what is beyond lies at the end.
    pub fn share(&self, value: f64) -> f64 {
        let share = if self.kind == Kind::Log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// The lowest and the highest value.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Values to mark, about `wanted` of them, both ends among them where the scale was made for them.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.kind {
            Kind::Log => self.log_ticks(wanted),
            Kind::Even(settled) => {
                self.even_ticks(settled.unwrap_or_else(|| step(self.high - self.low, wanted)))
            }
        }
    }

    fn even_ticks(&self, step: f64) -> Vec<f64> {
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let within = |&value: &f64| value >= self.low * (1.0 - 1e-9) && value <= self.high * (1.0 + 1e-9);
        let all = |mantissas: &'static [f64]| -> Vec<f64> {
            let decade = |d: i32| mantissas.iter().map(move |m| m * 10f64.powi(d));
            decades.clone().flat_map(decade).filter(within).collect()
        };
        let fine = all(&[1.0, 2.0, 5.0]);
        if fine.len() <= wanted.max(3) { fine } else { all(&[1.0]) }
    }
}

/// The distance between ticks: 1, 2 or 5 times a power of ten.
fn step(span: f64, wanted: usize) -> f64 {
    let raw = span / wanted.max(1) as f64;
    let decade = 10f64.powf(raw.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|m| m * decade >= raw * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_ticks() {
        let rows = [
            (Scale::even(0.0, 1549.0, 5), 5),
            (Scale::even(0.0, 0.0, 5), 5),
            (Scale::even(-42.0, 118.0, 4), 4),
            (Scale::exact(0.0, 65.0), 7),
            (Scale::log(16.2, 1549.0), 9),
            (Scale::log(0.0, 100.0), 5),
            (Scale::log(30.0, 31.0), 5),
            (Scale::log(0.5, 90_000.0), 7),
        ];
        let shown: Vec<String> =
            rows.iter().map(|(s, n)| format!("{:?} {:?}", s.ends(), s.ticks(*n))).collect();
        let expected = [
            "(0.0, 2000.0) [0.0, 500.0, 1000.0, 1500.0, 2000.0]",
            "(0.0, 1.0) [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]",
            "(-50.0, 150.0) [-50.0, 0.0, 50.0, 100.0, 150.0]",
            "(0.0, 65.0) [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]",
            "(10.0, 2000.0) [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]",
            "(10.0, 100.0) [10.0, 20.0, 50.0, 100.0]",
            "(20.0, 50.0) [20.0, 50.0]",
            "(0.5, 100000.0) [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0]",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn shares() {
        let (even, log) = (Scale::exact(10.0, 20.0), Scale::log(1.0, 100.0));
        let shown = [
            even.share(15.0),
            even.share(0.0),
            even.share(99.0),
            even.share(f64::NAN),
            log.share(10.0),
            log.share(0.0),
        ];
        assert_eq!(shown, [0.5, 0.0, 1.0, 0.0, 0.5, 0.0]);
    }
}
