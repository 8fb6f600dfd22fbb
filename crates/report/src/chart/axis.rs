//! Axes: a scale and how its values are written.

use super::scale::Scale;

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

/// From this ratio of the largest to the smallest on, a scale is logarithmic.
pub const WIDE_RANGE: u64 = 30;

/// From so many base units on, that unit.
type Units = [(f64, f64, &'static str)];

const SPANS: &Units = &[(0.0, 1e6, "ms"), (4e9, 1e9, "s")];
const RATES: &Units =
    &[(0.0, 1.0, "bit/s"), (2e3, 1e3, "kbit/s"), (4e6, 1e6, "Mbit/s"), (4e9, 1e9, "Gbit/s")];
const SIZES: &Units = &[(0.0, 1.0, "bytes"), (2e3, 1e3, "kB"), (4e6, 1e6, "MB")];

fn fitting(units: &'static Units, high: f64) -> (f64, &'static str) {
    let unit = units.iter().rfind(|(from, ..)| high >= *from).unwrap_or(&units[0]);
    (unit.1, unit.2)
}

fn even(units: &'static Units, low: f64, high: f64, ticks: usize) -> Axis {
    let (per, unit) = fitting(units, high.max(-low));
    Axis { scale: Scale::even(low / per, high / per, ticks).times(per), per, unit, ticks }
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
        Axis { scale: Scale::log(low as f64, high as f64), per: 1e6, unit: "ms", ticks: 8 }
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

    /// Spans of ns from 0 to exactly the longest.
    pub fn spans_to(high: u64) -> Axis {
        let (per, unit) = fitting(SPANS, high as f64);
        Axis { scale: Scale::exact(0.0, high as f64), per, unit, ticks: 8 }
    }

    /// Bits per second from 0 to exactly the highest.
    pub fn rates_to(high: f64) -> Axis {
        let (per, unit) = fitting(RATES, high);
        Axis { scale: Scale::exact(0.0, high), per, unit, ticks: 4 }
    }

    /// Shares of one in percent, from 0 to what holds `high`.
    pub fn percent(high: f64, ticks: usize) -> Axis {
        Axis {
            scale: Scale::even(0.0, (high * 100.0).max(1.0), ticks).times(0.01),
            per: 0.01,
            unit: "%",
            ticks,
        }
    }

    /// Spans of ns that suit a sample: logarithmic where the longest is more than [`WIDE_RANGE`] times the
    /// shortest.
    pub fn fitting_spans(low: u64, high: u64, ticks: usize) -> Axis {
        if low > 0 && high / low >= WIDE_RANGE {
            Axis::log_spans(low, high)
        } else {
            Axis::spans(high, ticks)
        }
    }

    /// Numbers without a unit from 0.
    pub fn numbers(high: f64, ticks: usize) -> Axis {
        Axis { scale: Scale::even(0.0, high, ticks), per: 1.0, unit: "", ticks }
    }

    /// Shares of one in percent.
    pub fn shares() -> Axis {
        Axis { scale: Scale::exact(0.0, 1.0), per: 0.01, unit: "%", ticks: 4 }
    }

    /// Marked values and how they are written, without the unit.
    pub fn marked(&self) -> Vec<(f64, String)> {
        let values = self.scale.ticks(self.ticks);
        values.into_iter().map(|value| (value, self.written(value))).collect()
    }

    /// Marks for a horizontal axis, with units where they are needed: at the last figure, or, where a scale
    /// of durations goes from milliseconds to seconds, at the last of the milliseconds and at each of the
    /// seconds.
    pub fn marked_across(&self) -> Vec<(f64, String)> {
        let mut marked = self.marked();
        let (_, high) = self.scale.ends();
        let second = 1e9 * (1.0 - 1e-9);
        if self.unit == "ms" && high >= second {
            let short = marked.iter().filter(|(value, _)| *value < second).count();
            for (n, (value, text)) in marked.iter_mut().enumerate() {
                if n >= short {
                    *text = format!("{} s", (*value / 1e7).round() / 100.0);
                } else if n + 1 == short {
                    text.push_str(" ms");
                }
            }
        } else if let Some((_, text)) = marked.last_mut().filter(|_| !self.unit.is_empty()) {
            text.push(' ');
            text.push_str(self.unit);
        }
        marked
    }

    fn written(&self, value: f64) -> String {
        let number = value / self.per;
        // Three decimals, or as many as a logarithmic scale's small values need.
        let decimals = if number.abs() < 0.000_5 { 12 } else { 3 };
        let text = format!("{number:.decimals$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if let Some(rest) = text.strip_prefix('-') {
            return if rest == "0" { rest.to_owned() } else { format!("−{rest}") };
        }
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_on_axes() {
        let shown = |marked: Vec<(f64, String)>| {
            marked.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        const MS: u64 = 1_000_000;
        let rows = [
            shown(Axis::spans(1549 * MS, 5).marked()),
            shown(Axis::spans(0, 5).marked()),
            shown(Axis::rates(1.6e6, 5).marked()),
            shown(Axis::credit(-42_000_000, 8_000_000, 3).marked()),
            shown(Axis::count(1, "packets", 2).marked()),
            shown(Axis::time(65_000 * MS).marked_across()),
            shown(Axis::log_spans(15 * MS, 281 * MS).marked_across()),
            shown(Axis::log_spans(15 * MS, 1549 * MS).marked_across()),
            shown(Axis::log_spans(1_500 * MS, 14_000 * MS).marked_across()),
        ];
        let expected = [
            "0 500 1000 1500 2000",
            "0 0.2 0.4 0.6 0.8 1",
            "0 500 1000 1500 2000",
            "−60 −40 −20 0 20",
            "0 1 2",
            "0 10 20 30 40 50 60 s",
            "10 20 50 100 200 500 ms",
            "10 20 50 100 200 500 ms 1 s 2 s",
            "1 s 2 s 5 s 10 s 20 s",
        ];
        assert_eq!(rows, expected);
    }
}
