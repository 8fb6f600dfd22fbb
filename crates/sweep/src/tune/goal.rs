//! What a search is for: a figure as small or large as possible, while others keep within bounds.

use crate::axis::number_of;
use crate::harm::more_is_better;
use core::cmp::Ordering;
use std::error::Error;
use std::fmt;

/// Why an objective or a bound is none, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadGoal(pub String);

impl fmt::Display for BadGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadGoal {}

/// The figure that is to be as small or large as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneGoal {
    /// Its name: `voip.p99`.
    pub figure: String,
    /// Whether it is to be large; `None`: by its unit (rates large; delays, durations and losses small).
    pub large: Option<bool>,
}

/// A bound that a figure keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneBound {
    /// The figure's name.
    pub figure: String,
    /// It is a least value; else the most.
    pub least: bool,
    /// The value.
    pub limit: TuneLimit,
}

/// Where a bound is.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneLimit {
    /// There, in this unit.
    Value(f64, &'static str),
    /// At this share of what the figure is with the scenario's own values; of figures without a unit, there.
    Share(f64),
}

/// How good a point is: of two the one that breaks its bounds less, then the one with the better objective.
/// (Deb, "An efficient constraint handling method for genetic algorithms", 2000.)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneRank {
    /// By which share of their values bounds are broken, together; 0: none is. Infinite: a figure has no
    /// value.
    pub broken: f64,
    /// The objective, smaller being better.
    pub cost: f64,
}

impl TuneRank {
    /// The better of two is the smaller.
    #[must_use]
    pub fn compare(&self, other: &TuneRank) -> Ordering {
        self.broken.total_cmp(&other.broken).then(self.cost.total_cmp(&other.cost))
    }

    /// Does it keep all bounds?
    #[must_use]
    pub fn is_feasible(&self) -> bool {
        self.broken == 0.0 && self.cost.is_finite()
    }
}

impl TuneGoal {
    /// Reads `voip.p99`, `p99 voip`, `max upload.rate`.
    ///
    /// # Errors
    /// It names no figure.
    ///
    /// ```
    /// use tidegate_sweep::TuneGoal;
    ///
    /// let goal = TuneGoal::parse("p99 voip").unwrap();
    /// assert_eq!((goal.figure.as_str(), goal.large), ("voip.p99", None));
    /// ```
    pub fn parse(text: &str) -> Result<TuneGoal, BadGoal> {
        let text = text.trim();
        let (large, rest) = match text.split_once(' ') {
            Some(("min", rest)) => (Some(false), rest),
            Some(("max", rest)) => (Some(true), rest),
            _ => (None, text),
        };
        Ok(TuneGoal { figure: figure(rest)?, large })
    }

    /// Whether it is to be large, now that its unit is known.
    ///
    /// # Errors
    /// Neither its text nor its unit says so.
    pub fn is_large(&self, unit: &str) -> Result<bool, BadGoal> {
        self.large.or_else(|| more_is_better(&self.figure, unit)).ok_or_else(|| {
            BadGoal(format!("is {0} to be small or large? Write `min {0}` or `max {0}`", self.figure))
        })
    }
}

impl TuneBound {
    /// Reads `upload >= 90%`, `upload.rate >= 9mbit`, `ping.p95 <= 30ms`. A name alone is the rate of
    /// transfers.
    ///
    /// # Errors
    /// No `>=` or `<=`, no figure, no value.
    pub fn parse(text: &str) -> Result<TuneBound, BadGoal> {
        let found = [(">=", true), ("<=", false)].iter().find_map(|(sign, least)| {
            text.split_once(sign).map(|(name, value)| (name, value.trim(), *least))
        });
        let none =
            || BadGoal(format!("`{text}` is no bound: write FIGURE >= VALUE, such as upload.rate >= 90%"));
        let (name, value, least) = found.ok_or_else(none)?;
        let (number, unit) = number_of(value).filter(|(number, _)| number.is_finite()).ok_or_else(none)?;
        let limit =
            if value.ends_with('%') { TuneLimit::Share(number) } else { TuneLimit::Value(number, unit) };
        Ok(TuneBound { figure: figure(name)?, least, limit })
    }

    /// The bound as a number, of a figure that is `now` in this unit with the scenario's own values.
    ///
    /// # Errors
    /// It has another unit.
    pub fn limit(&self, now: f64, unit: &str) -> Result<f64, BadGoal> {
        match &self.limit {
            TuneLimit::Share(share) if unit.is_empty() => Ok(*share),
            TuneLimit::Share(share) => Ok(share * now),
            TuneLimit::Value(value, of) if *of == unit => Ok(*value),
            TuneLimit::Value(_, of) => {
                let named = |unit: &str| if unit.is_empty() { "no unit".to_owned() } else { unit.to_owned() };
                Err(BadGoal(format!("{} has {}, its bound {}", self.figure, named(unit), named(of))))
            }
        }
    }

    /// By which share of the limit a value breaks it; 0: not.
    #[must_use]
    pub fn broken(&self, value: f64, limit: f64) -> f64 {
        let over = if self.least { limit - value } else { value - limit };
        let of = if limit == 0.0 { 1.0 } else { libm::fabs(limit) };
        (over / of).max(0.0)
    }
}

/// `voip.p99`, `p99 voip`; a name alone is the rate of transfers.
fn figure(text: &str) -> Result<String, BadGoal> {
    let text = text.trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [] => Err(BadGoal("a figure is missing: write voip.p99, or p99 voip".into())),
        _ if text.contains('.') => Ok(text.to_owned()),
        [id] => Ok(format!("{id}.rate")),
        [statistic, id] => Ok(format!("{id}.{statistic}")),
        _ => Err(BadGoal(format!("`{text}` is no figure: write voip.p99, or p99 voip"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read() {
        let of = |text: &str| TuneGoal::parse(text).map(|goal| (goal.figure, goal.large));
        assert_eq!(of("p99 voip"), Ok(("voip.p99".into(), None)));
        assert_eq!(of("max link dsl up.utilisation"), Ok(("link dsl up.utilisation".into(), Some(true))));
        assert_eq!(of("upload"), Ok(("upload.rate".into(), None)));
        assert!(of("").is_err() && of("min ").is_ok_and(|goal| goal.0 == "min.rate") && of("a b c").is_err());
        let direction = |text: &str, unit: &str| TuneGoal::parse(text).and_then(|goal| goal.is_large(unit));
        assert_eq!((direction("p99 voip", "s"), direction("upload", "bit/s")), (Ok(false), Ok(true)));
        assert_eq!(direction("max voip.p99", "s"), Ok(true));
        assert!(
            direction("upload.fairness", "").is_err_and(|wrong| wrong.0.contains("`max upload.fairness`"))
        );
    }

    #[test]
    fn bounds_are_read() {
        let bound = |text: &str| TuneBound::parse(text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let rate = bound("upload >= 90%");
        assert_eq!((rate.figure.as_str(), rate.limit(10e6, "bit/s")), ("upload.rate", Ok(9e6)));
        assert!((rate.broken(8.1e6, 9e6) - 0.1).abs() < 1e-12 && rate.broken(9.5e6, 9e6) == 0.0);
        let delay = bound("ping.p95 <= 30ms");
        assert_eq!(
            (delay.limit(1.0, "s"), delay.broken(0.06, 0.03), delay.broken(0.01, 0.03)),
            (Ok(0.03), 1.0, 0.0)
        );
        assert_eq!(bound("upload.fairness >= 90%").limit(0.5, ""), Ok(0.9), "of shares, there");
        assert_eq!(bound("ping.loss <= 0").broken(0.02, 0.0), 0.02);
        assert!(delay.limit(1.0, "bit/s").is_err_and(|wrong| wrong.0 == "ping.p95 has bit/s, its bound s"));
        for wrong in ["upload", "upload > 3", ">= 3", "upload >= much"] {
            assert!(TuneBound::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_count_before_the_objective() {
        let rank = |broken: f64, cost: f64| TuneRank { broken, cost };
        assert_eq!(rank(0.0, 9.0).compare(&rank(0.1, 1.0)), Ordering::Less);
        assert_eq!(rank(0.1, 9.0).compare(&rank(0.2, 1.0)), Ordering::Less);
        assert_eq!(rank(0.0, 2.0).compare(&rank(0.0, 1.0)), Ordering::Greater);
        assert!(rank(0.0, 2.0).is_feasible() && !rank(f64::INFINITY, f64::INFINITY).is_feasible());
    }
}
