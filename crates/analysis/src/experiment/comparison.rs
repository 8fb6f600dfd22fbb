//! What was published or demanded, and what was found, in words: the same in every view.

use super::show::written;
use tidegate_measure::experiment::Comparison;
use tidegate_measure::numbers::{USUAL, significant};

const NOTHING: &str = "–";
/// Digits that figures have at least, and at most.
const DIGITS: core::ops::RangeInclusive<usize> = 3..=7;

/// A comparison in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonText {
    /// What was published, a dash for nothing.
    pub published: String,
    /// What was found: the median of the repeats.
    pub found: String,
    /// From the least to the most of the repeats, where they differ.
    pub spread: Option<String>,
    /// What it must lie within: `450 ms to 950 ms`, `at most 200 ms`; empty without bounds.
    pub bounds: String,
    /// `ok`, `FAILED`, or `info` where nothing is required.
    pub verdict: &'static str,
}

/// A comparison in words, with as many digits as distinguish the figure from its bounds and from the
/// published one.
pub fn comparison_text(c: &Comparison) -> ComparisonText {
    let (low, high) = c.within;
    let bounds = [low, high].into_iter().filter(|bound| bound.is_finite());
    let numbers: Vec<f64> = c.found.into_iter().chain(c.published).chain(bounds).collect();
    let are_told_apart = |digits: usize| {
        let differ = |a: f64, b: f64| a == b || in_digits(c, a, digits) != in_digits(c, b, digits);
        numbers.iter().all(|a| numbers.iter().all(|b| differ(*a, *b)))
    };
    let digits = DIGITS.into_iter().find(|digits| are_told_apart(*digits)).unwrap_or(*DIGITS.end());
    let shown = |number: f64| in_digits(c, number, digits);
    let or_nothing = |number: Option<f64>| number.map_or_else(|| NOTHING.to_owned(), shown);
    let bounds = match (low.is_finite(), high.is_finite()) {
        (true, true) if low == high => shown(low),
        (true, true) => format!("{} to {}", shown(low), shown(high)),
        (true, false) => format!("at least {}", shown(low)),
        (false, true) => format!("at most {}", shown(high)),
        (false, false) => String::new(),
    };
    let verdict = match (c.held, c.gated) {
        (true, true) => "ok",
        (false, true) => "FAILED",
        (_, false) => "info",
    };
    let spread = c.spread.filter(|(least, most)| least != most);
    let spread = spread.map(|(least, most)| format!("{} – {}", shown(least), shown(most)));
    ComparisonText { published: or_nothing(c.published), found: or_nothing(c.found), spread, bounds, verdict }
}

/// A figure in words; its name (`ping.loss`) distinguishes shares from counts.
pub fn in_words(name: &str, number: f64, unit: &str) -> String {
    written(name, number, unit, USUAL)
}

/// A figure with so many significant digits; ratios as plain numbers.
fn in_digits(c: &Comparison, number: f64, digits: usize) -> String {
    if c.figure.contains(" over ") {
        return significant(number, digits);
    }
    // The figure that a comparison begins with: `ping.loss` of `ping.loss of none/up`.
    let name = c.figure.split(" of ").next().unwrap_or(&c.figure);
    written(name, number, &c.unit, digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(figure: &str, unit: &str, found: f64, within: (f64, f64)) -> ComparisonText {
        let (figure, unit) = (figure.to_owned(), unit.to_owned());
        comparison_text(&Comparison {
            figure,
            unit,
            found: Some(found),
            within,
            held: true,
            gated: true,
            ..Comparison::default()
        })
    }

    #[test]
    fn digits_tell_figures_apart() {
        let cases = [
            comparison("class 1:10.rate of limit/page", "bit/s", 200_000.0, (199_800.0, 200_200.0)),
            comparison("ping.mean of none/up", "s", 0.7531, (0.45, 0.95)),
            comparison("link out up.drops of codel/flood", "", 231.0, (231.0, 231.0)),
            comparison("ping.loss of a/b", "", 0.0025, (0.002499, 0.002501)),
            comparison("ping.mean of a/b over c/d", "", 9.0972, (6.0, f64::INFINITY)),
        ];
        let texts: Vec<(String, String)> = cases.into_iter().map(|text| (text.found, text.bounds)).collect();
        let expected = [
            ("200.0 kbit/s", "199.8 kbit/s to 200.2 kbit/s"),
            ("753 ms", "450 ms to 950 ms"),
            ("231", "231"),
            ("0.2500 %", "0.2499 % to 0.2501 %"),
            ("9.10", "at least 6.00"),
        ];
        assert_eq!(texts, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
