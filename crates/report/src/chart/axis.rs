//! Axes: a scale and how its values are written.

use super::Scale;

/// An axis: values are in `unit`, made from the base unit (ns, bit/s, bytes, …) by division.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// From lowest to highest, in the base unit.
    pub scale: Scale,
    /// How many of the base unit make one of the axis's unit.
    pub per: f64,
    /// The axis's unit, as written: `ms`.
    pub unit: &'static str,
    /// Ticks wanted.
    pub ticks: usize,
}

/// From so many base units on, that unit.
type Units = [(f64, f64, &'static str)];

const SPANS: &Units = &[(0.0, 1e6, "ms"), (4e9, 1e9, "s")];
const RATES: &Units = &[(0.0, 1.0, "bit/s"), (2e3, 1e3, "kbit/s"), (4e6, 1e6, "Mbit/s"), (4e9, 1e9, "Gbit/s")];
const SIZES: &Units = &[(0.0, 1.0, "bytes"), (2e3, 1e3, "kB"), (4e6, 1e6, "MB")];

fn fitting(units: &'static Units, high: f64) -> (f64, &'static str) {
    let unit = units.iter().rfind(|(from, ..)| high >= *from).unwrap_or(&units[0]);
    (unit.1, unit.2)
}

fn even(units: &'static Units, low: f64, high: f64, ticks: usize) -> Axis {
    let (per, unit) = fitting(units, high.max(-low));
    let scale = Scale::even(low / per, high / per, ticks);
    let (low, high) = scale.ends();
    Axis { scale: Scale::exact(low * per, high * per), per, unit, ticks }
}

impl Axis {
    /// Seconds of a run from its beginning, values in ns.
    pub fn time(end: u64) -> Axis {
        Axis { scale: Scale::exact(0.0, end as f64), per: 1e9, unit: "s", ticks: 7 }
    }

    /// Spans of ns from 0.
    pub fn spans(high: u64, ticks: usize) -> Axis {
        even(SPANS, 0.0, high as f64, ticks)
    }

    /// Spans of ns from the shortest to the longest, logarithmic.
    pub fn log_spans(low: u64, high: u64) -> Axis {
        Axis { scale: Scale::log(low as f64, high as f64), per: 1e6, unit: "ms", ticks: 7 }
    }

    /// Bits per second from 0.
    pub fn rates(high: f64, ticks: usize) -> Axis {
        even(RATES, 0.0, high, ticks)
    }

    /// Bytes from 0.
    pub fn sizes(high: u64, ticks: usize) -> Axis {
        even(SIZES, 0.0, high as f64, ticks)
    }

    /// Things counted from 0.
    pub fn count(high: u64, unit: &'static str, ticks: usize) -> Axis {
        Axis { scale: Scale::even(0.0, high.max(ticks as u64) as f64, ticks), per: 1.0, unit, ticks }
    }

    /// Credits and debts in ns.
    pub fn credit(low: i64, high: i64, ticks: usize) -> Axis {
        let (low, high) = (low.min(0) as f64, high.max(0) as f64);
        if low == high { even(SPANS, 0.0, 1e6, ticks) } else { even(SPANS, low, high, ticks) }
    }

    /// Shares of one in percent.
    pub fn shares() -> Axis {
        Axis { scale: Scale::exact(0.0, 1.0), per: 0.01, unit: "%", ticks: 4 }
    }

    /// Marked values and how they are written, without the unit.
    pub fn marked(&self) -> Vec<(f64, String)> {
        let (low, high) = self.scale.ends();
        let even = Scale::exact(low / self.per, high / self.per);
        let values = match self.scale == Scale::exact(low, high) {
            true => even.ticks(self.ticks).into_iter().map(|v| v * self.per).collect(),
            false => self.scale.ticks(self.ticks),
        };
        values.into_iter().map(|value| (value, self.written(value))).collect()
    }

    fn written(&self, value: f64) -> String {
        let text = format!("{:.3}", value / self.per);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if let Some(rest) = text.strip_prefix('-') {
            return if rest == "0" { rest.to_owned() } else { format!("−{rest}") };
        }
        text.to_owned()
    }
}
