//! What is expected of the line while a program runs behind it: `rtt p95 < 50ms`, `down >= 90%`.

use super::measured::{LineMeasured, WayMeasured, share};
use std::cmp::Ordering;
use tidegate_sweep::number_of;

/// An expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct LineExpectation {
    /// As it was written.
    pub text: String,
    figure: LineFigure,
    /// How the figure is to be beside the limit.
    side: Side,
    limit: Limit,
}

/// How a figure is to be beside a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    /// Above it; else below.
    least: bool,
    /// The limit itself is too little, or too much.
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// In the figure's unit.
    Value(f64),
    /// This share of what the line could carry.
    OfCapacity(f64),
}

/// A figure of the line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LineFigure {
    Rtt(RttStatistic),
    Rate(Way),
    Loss(Way),
    Drops(Way),
    /// How long the program ran.
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RttStatistic {
    Min,
    Mean,
    Percentile(f64),
    Max,
    Loss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// How an expectation came out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpectationOutcome {
    /// Whether it holds.
    pub(super) holds: bool,
    /// The figure; `None`: it has no value.
    pub(super) measured: Option<f64>,
    /// The limit, in the same unit.
    pub(super) limit: f64,
    /// `s`, `bit/s`, or nothing.
    pub(super) unit: &'static str,
    /// In words.
    pub(super) words: String,
}

const SIGNS: [(&str, Side); 4] = [
    (">=", Side { least: true, strict: false }),
    ("<=", Side { least: false, strict: false }),
    (">", Side { least: true, strict: true }),
    ("<", Side { least: false, strict: true }),
];

impl LineExpectation {
    /// Reads `rtt p95 < 50ms`.
    ///
    /// # Errors
    /// No figure, no sign, no value, or one in another unit; in words with a remedy.
    pub(crate) fn parse(text: &str) -> Result<LineExpectation, String> {
        let found = SIGNS.iter().find_map(|(sign, side)| Some((text.split_once(sign)?, *side)));
        let Some(((name, value), side)) = found else {
            return Err(format!("`{text}` compares nothing: write FIGURE < VALUE, such as 'rtt p95 < 50ms'"));
        };
        let figure = LineFigure::parse(name)?;
        let value = value.trim();
        let number = number_of(value).filter(|(number, _)| number.is_finite() && *number >= 0.0);
        let (number, unit) =
            number.ok_or_else(|| format!("`{value}` is no value: write one such as 50ms, 9mbit or 90%"))?;
        let is_share = value.ends_with('%');
        let limit = match figure {
            LineFigure::Rate(_) if is_share => Limit::OfCapacity(number),
            _ if unit == figure.unit() && is_share == figure.is_share() => Limit::Value(number),
            _ => {
                return Err(format!(
                    "`{}` is compared with {}, not with {value}",
                    name.trim(),
                    figure.example()
                ));
            }
        };
        Ok(LineExpectation { text: text.trim().to_owned(), figure, side, limit })
    }

    /// How it came out.
    pub(super) fn outcome(&self, measured: &LineMeasured) -> ExpectationOutcome {
        let value = self.figure.value(measured);
        let limit = match self.limit {
            Limit::Value(value) => value,
            Limit::OfCapacity(share) => share * self.figure.way(measured).map_or(0.0, WayMeasured::capacity),
        };
        let holds = value.is_some_and(|value| {
            let order = value.total_cmp(&limit);
            order == if self.side.least { Ordering::Greater } else { Ordering::Less }
                || (order == Ordering::Equal && !self.side.strict)
        });
        let shown = |value: f64| self.figure.shown(value);
        let words = match value {
            None => format!("{}: not measured: {}", self.text, self.figure.missing()),
            Some(value) if holds => format!("{}: {}", self.text, shown(value)),
            Some(value) => {
                let (off, which) =
                    (shown((value - limit).abs()), if self.side.least { "little" } else { "much" });
                // What is a share of something is said as that, too.
                let of = match self.limit {
                    Limit::OfCapacity(_) => format!(" (that is {})", shown(limit)),
                    Limit::Value(_) => String::new(),
                };
                match value == limit {
                    true => format!("{}{of}: it is {} exactly", self.text, shown(value)),
                    false => format!("{}{of}: it is {}, {off} too {which}", self.text, shown(value)),
                }
            }
        };
        ExpectationOutcome { holds, measured: value, limit, unit: self.figure.unit(), words }
    }
}

impl LineFigure {
    fn parse(text: &str) -> Result<LineFigure, String> {
        let normal = text.replace('.', " ");
        let words: Vec<&str> = normal.split_whitespace().collect();
        let unknown = || {
            format!(
                "`{}` is no figure of a line: there are rtt min, rtt mean, rtt median, rtt p95 (any pN), rtt max, rtt \
                loss, up, down, up loss, down loss, up drops, down drops and time",
                text.trim()
            )
        };
        let way = |word: &str| match word {
            "up" => Some(Way::Up),
            "down" => Some(Way::Down),
            _ => None,
        };
        match words.as_slice() {
            ["time"] => Ok(LineFigure::Time),
            [one] => way(one).map(LineFigure::Rate).ok_or_else(unknown),
            ["rtt", statistic] | [statistic, "rtt"] => {
                RttStatistic::parse(statistic).map(LineFigure::Rtt).ok_or_else(unknown)
            }
            [way_word, what] => {
                let (way, what) = match (way(way_word), way(what)) {
                    (Some(way), _) => (way, *what),
                    (None, Some(way)) => (way, *way_word),
                    (None, None) => return Err(unknown()),
                };
                match what {
                    "rate" => Ok(LineFigure::Rate(way)),
                    "loss" => Ok(LineFigure::Loss(way)),
                    "drops" => Ok(LineFigure::Drops(way)),
                    _ => Err(unknown()),
                }
            }
            _ => Err(unknown()),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            LineFigure::Rtt(RttStatistic::Loss) | LineFigure::Loss(_) | LineFigure::Drops(_) => "",
            LineFigure::Rtt(_) | LineFigure::Time => "s",
            LineFigure::Rate(_) => "bit/s",
        }
    }

    /// Is it a share, to be compared with one?
    fn is_share(self) -> bool {
        matches!(self, LineFigure::Rtt(RttStatistic::Loss) | LineFigure::Loss(_))
    }

    fn example(self) -> &'static str {
        match self {
            LineFigure::Rate(_) => "a rate (9mbit), or a share of what the line could carry (90%)",
            LineFigure::Drops(_) => "a number of packets (0)",
            _ if self.is_share() => "a share (1%)",
            _ => "a time (50ms)",
        }
    }

    /// Why it has no value.
    fn missing(self) -> &'static str {
        match self {
            LineFigure::Rtt(_) => "no ping was answered, or none had the time to be",
            LineFigure::Loss(_) => "no packet was sent that way",
            _ => "the program did not end",
        }
    }

    /// A value with its unit.
    fn shown(self, value: f64) -> String {
        match (self, self.unit()) {
            (LineFigure::Drops(_), _) => format!("{value}"),
            (_, "s") => tidegate_report::format_duration((value * 1e9) as u64),
            (_, "bit/s") => tidegate_report::rate(value),
            _ => share(value),
        }
    }

    fn way(self, measured: &LineMeasured) -> Option<&WayMeasured> {
        match self {
            LineFigure::Rate(way) | LineFigure::Loss(way) | LineFigure::Drops(way) => {
                Some(if way == Way::Up { &measured.up } else { &measured.down })
            }
            _ => None,
        }
    }

    fn value(self, measured: &LineMeasured) -> Option<f64> {
        match self {
            LineFigure::Time => Some(measured.seconds),
            LineFigure::Rtt(statistic) => {
                let (rtt, seconds) = (&measured.rtt, |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9));
                match statistic {
                    RttStatistic::Min => seconds(rtt.min()),
                    RttStatistic::Mean => seconds(rtt.mean()),
                    RttStatistic::Percentile(p) => seconds(rtt.percentile(p)),
                    RttStatistic::Max => seconds(rtt.max()),
                    RttStatistic::Loss => measured.rtt_loss(),
                }
            }
            LineFigure::Rate(_) => self.way(measured).map(WayMeasured::rate),
            LineFigure::Loss(_) => self.way(measured).and_then(WayMeasured::loss),
            LineFigure::Drops(_) => self.way(measured).map(|way| way.dropped as f64),
        }
    }
}

impl RttStatistic {
    fn parse(word: &str) -> Option<RttStatistic> {
        Some(match word {
            "min" => RttStatistic::Min,
            "mean" => RttStatistic::Mean,
            "median" => RttStatistic::Percentile(50.0),
            "max" => RttStatistic::Max,
            "loss" => RttStatistic::Loss,
            _ => {
                let percentile = word.strip_prefix('p')?;
                let is_number =
                    percentile.bytes().all(|byte| byte.is_ascii_digit()) && !percentile.is_empty();
                let percentile =
                    percentile.parse().ok().filter(|p| is_number && (1.0..=100.0).contains(p))?;
                RttStatistic::Percentile(percentile)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::Durations;

    fn measured() -> LineMeasured {
        LineMeasured {
            seconds: 10.0,
            up: WayMeasured {
                seconds: 10.0,
                carried: 1_000_000,
                could: 1_250_000,
                sent: 200,
                lost: 2,
                ..WayMeasured::default()
            },
            rtt: Durations::new((1..=100).map(|ms| ms * 1_000_000).collect()),
            rtt_sent: 125,
            rtt_lost: 25,
            ..LineMeasured::default()
        }
    }

    #[test]
    fn expectations_come_out() {
        let words = |text: &str| {
            let outcome =
                LineExpectation::parse(text).unwrap_or_else(|why| panic!("{why}")).outcome(&measured());
            (outcome.holds, outcome.words)
        };
        for (text, holds, said) in [
            ("rtt p95 < 96ms", true, "rtt p95 < 96ms: 95.0 ms"),
            ("rtt p95 < 95ms", false, "rtt p95 < 95ms: it is 95.0 ms exactly"),
            ("rtt.p95 <= 95ms", true, "rtt.p95 <= 95ms: 95.0 ms"),
            ("p50 rtt <= 20ms", false, "p50 rtt <= 20ms: it is 50.0 ms, 30.0 ms too much"),
            ("rtt min >= 1ms", true, "rtt min >= 1ms: 1.00 ms"),
            ("rtt loss <= 10%", false, "rtt loss <= 10%: it is 20 %, 10 % too much"),
            ("up >= 90%", false, "up >= 90% (that is 900 kbit/s): it is 800 kbit/s, 100 kbit/s too little"),
            ("up >= 0.7mbit", true, "up >= 0.7mbit: 800 kbit/s"),
            ("up loss <= 1%", true, "up loss <= 1%: 1 %"),
            ("down loss <= 1%", false, "down loss <= 1%: not measured: no packet was sent that way"),
            ("down drops <= 0", true, "down drops <= 0: 0"),
            ("time < 9s", false, "time < 9s: it is 10.0 s, 1.00 s too much"),
        ] {
            assert_eq!(words(text), (holds, said.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, why) in [
            ("rtt p95", "compares nothing"),
            ("rtt < 3ms", "no figure of a line"),
            ("rtt p0 < 3ms", "no figure of a line"),
            ("rtt p101 < 3ms", "no figure of a line"),
            ("up p95 < 3ms", "no figure of a line"),
            ("x < 3", "no figure of a line"),
            ("up >= much", "`much` is no value"),
            ("up >= -3mbit", "`-3mbit` is no value"),
            ("up >= 3ms", "`up` is compared with a rate (9mbit)"),
            ("rtt p95 < 50", "`rtt p95` is compared with a time (50ms), not with 50"),
            ("rtt p95 < 50%", "is compared with a time"),
            ("rtt loss < 1", "`rtt loss` is compared with a share (1%), not with 1"),
            ("up drops < 1%", "`up drops` is compared with a number of packets (0), not with 1%"),
        ] {
            let wrong = LineExpectation::parse(text).expect_err(text);
            assert!(wrong.contains(why), "{text}: {wrong}");
        }
    }
}
