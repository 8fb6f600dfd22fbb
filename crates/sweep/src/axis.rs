//! A parameter and its values: `home.rtt=10..160ms:log5`, `target=1ms,5ms,20ms`.

use std::error::Error;
use std::fmt;
use tidegate_syntax::quantity;

/// The most values of one axis.
pub const MAX_VALUES: usize = 100_000;

/// A parameter of a scenario that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepAxis {
    /// The path of what is set, as [`tidegate_scenario::settings::Setting`] has it.
    pub path: String,
    /// Its values.
    pub values: AxisValues,
}

/// The values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisValues {
    /// Each as it is written in a scenario.
    List(Vec<String>),
    /// All between two ends, from which a Latin hypercube takes as many as it has samples.
    Range(ValueRange),
}

/// Numbers with a unit between two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRange {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// What is written behind each number: `mbit`, `ms`, `%`, or nothing.
    pub unit: String,
    /// Equal steps are equal ratios.
    pub log: bool,
}

/// What is wrong with an axis, in words with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAxis(pub String);

impl fmt::Display for BadAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadAxis {}

impl SweepAxis {
    /// Reads `PATH=VALUES`.
    ///
    /// # Errors
    /// What is no path with values.
    ///
    /// ```
    /// use tidegate_sweep::{SweepAxis, AxisValues};
    ///
    /// let axis = SweepAxis::parse("home.rtt=10..160ms:log5").unwrap();
    /// let values = ["10ms", "20ms", "40ms", "80ms", "160ms"].map(str::to_owned).into();
    /// assert_eq!((axis.path.as_str(), axis.values), ("home.rtt", AxisValues::List(values)));
    /// ```
    pub fn parse(text: &str) -> Result<SweepAxis, BadAxis> {
        let (path, values) = text.split_once('=').ok_or_else(|| {
            BadAxis(format!("`{text}` sets nothing: write PATH=VALUES, such as home.rtt=10..160ms:log5"))
        })?;
        let parts: Vec<&str> = values.split(',').map(str::trim).collect();
        SweepAxis::of(path.trim(), &parts)
    }

    /// Of a path and the values written for it, each a value or a range.
    ///
    /// # Errors
    /// No values, too many, or a range that is none.
    pub fn of(path: &str, parts: &[&str]) -> Result<SweepAxis, BadAxis> {
        if path.is_empty() || parts.is_empty() || parts.iter().any(|part| part.is_empty()) {
            return Err(BadAxis(format!(
                "`{path}` has an empty value: write values with commas between them"
            )));
        }
        let mut list = Vec::new();
        for part in parts {
            match range(part)? {
                None => list.push((*part).to_owned()),
                Some((range, Some(count))) => {
                    list.extend((0..count).map(|n| range.at(n as f64 / (count - 1) as f64)))
                }
                Some((range, None)) if parts.len() == 1 => {
                    return Ok(SweepAxis { path: path.to_owned(), values: AxisValues::Range(range) });
                }
                Some((_, None)) => {
                    return Err(BadAxis(format!("`{part}` needs the number of its values: {part}:lin5")));
                }
            }
        }
        let same =
            |a: &str, b: &str| a == b || matches!((number_of(a), number_of(b)), (Some(a), Some(b)) if a == b);
        let mut sorted: Vec<&String> = list.iter().collect();
        sorted.sort_by(|a, b| match (number_of(a), number_of(b)) {
            (Some((a, _)), Some((b, _))) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        if let Some(twice) = sorted.windows(2).find(|pair| same(pair[0], pair[1])) {
            return Err(BadAxis(format!("`{path}` has the value {} twice", twice[1])));
        }
        if list.len() > MAX_VALUES {
            return Err(BadAxis(format!("`{path}` has {} values; {MAX_VALUES} are the most", list.len())));
        }
        Ok(SweepAxis { path: path.to_owned(), values: AxisValues::List(list) })
    }
}

impl ValueRange {
    /// The value at this share of the way, 0 to 1, as it is written: to six digits.
    #[must_use]
    pub fn at(&self, share: f64) -> String {
        let ValueRange { low, high, unit, log } = self;
        let number = if *log { low * libm::pow(high / low, share) } else { low + (high - low) * share };
        format!("{}{unit}", rounded(number))
    }
}

/// To six digits: what is added up or multiplied is seldom exact, and file names and tables are read by
/// people.
fn rounded(number: f64) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    let digits = 5 - libm::floor(libm::log10(libm::fabs(number))) as i32;
    // A power of ten that is a whole number divides exactly.
    let scale = libm::pow(10.0, f64::from(digits.abs()));
    if digits >= 0 { libm::round(number * scale) / scale } else { libm::round(number / scale) * scale }
}

/// `A..B`, and how many values of it: `:lin5`, `:log5`, `:5`, or `:log` alone. `None`: this is a value.
fn range(text: &str) -> Result<Option<(ValueRange, Option<usize>)>, BadAxis> {
    let Some((low, rest)) = text.split_once("..") else { return Ok(None) };
    let (high, how) = rest.split_once(':').map_or((rest, ""), |(high, how)| (high, how));
    let (Some((low, low_unit)), Some((high, unit))) = (number(low), number(high)) else {
        return match how {
            // A path such as `../traces/x` is a value.
            "" => Ok(None),
            _ => Err(BadAxis(format!("`{text}`: the ends of a range are numbers: 1..100mbit:log8"))),
        };
    };
    if !low_unit.is_empty() && low_unit != unit {
        return Err(BadAxis(format!("`{text}`: write both ends in one unit: 100..1000kbit")));
    }
    let (log, count) = match how.strip_prefix("log") {
        Some(count) => (true, count),
        None => (false, how.strip_prefix("lin").unwrap_or(how)),
    };
    let count = match count {
        "" => None,
        digits => Some(digits.parse().ok().filter(|n| (2..=MAX_VALUES).contains(n)).ok_or_else(|| {
            BadAxis(format!("`{how}` is no number of values from 2 to {MAX_VALUES}: write :lin5 or :log5"))
        })?),
    };
    let rises = if log { low > 0.0 && high > low } else { high > low };
    if !rises || !high.is_finite() {
        let least = if log { ", and logarithmic ones above 0" } else { "" };
        return Err(BadAxis(format!("`{text}`: ranges go upwards{least}")));
    }
    Ok(Some((ValueRange { low, high, unit: unit.to_owned(), log }, count)))
}

/// A number and what stands behind it.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let length = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let end = text.len() - digits.len() + length;
    let unit = &text[end..];
    let is_unit = unit.chars().all(|c| c.is_ascii_alphabetic() || "%/".contains(c));
    Some((text[..end].parse().ok().filter(|_| is_unit)?, unit))
}

impl SweepAxis {
    /// The basic unit of its values, where all are quantities of one kind.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        match &self.values {
            AxisValues::List(list) => one_unit(list.iter().map(String::as_str)),
            AxisValues::Range(range) => number_of(&range.at(0.0)).map(|(_, unit)| unit),
        }
    }
}

/// The axis of this path, or the one whose path ends with this key; `None`: there is none. The error names
/// several that end so.
pub(crate) fn named_axis<'a>(
    name: &str,
    paths: impl Iterator<Item = &'a str> + Clone,
) -> Result<Option<&'a str>, BadAxis> {
    if let Some(path) = paths.clone().find(|path| *path == name) {
        return Ok(Some(path));
    }
    let ends = |path: &&str| path.rsplit('.').next() == Some(name);
    let all: Vec<&str> = paths.filter(ends).collect();
    match all.as_slice() {
        [] => Ok(None),
        [path] => Ok(Some(path)),
        _ => Err(BadAxis(format!("`{name}` is several: write {}", all.join(" or ")))),
    }
}

/// The basic unit that all of these values have.
pub(crate) fn one_unit<'v>(values: impl Iterator<Item = &'v str>) -> Option<&'static str> {
    let mut units = values.map(|value| number_of(value).map(|(_, unit)| unit));
    let first = units.next()??;
    units.all(|unit| unit == Some(first)).then_some(first)
}

/// A value as a number in its basic unit, and that unit: `s`, `bit/s`, `bytes`, or nothing. `None`: it is a
/// word.
///
/// ```
/// use tidegate_sweep::number_of;
///
/// assert_eq!(number_of("20ms"), Some((0.02, "s")));
/// assert_eq!(number_of("1.5mbit"), Some((1.5e6, "bit/s")));
/// assert_eq!(number_of("5%"), Some((0.05, "")));
/// assert_eq!(number_of("cubic"), None);
/// ```
#[must_use]
pub fn number_of(text: &str) -> Option<(f64, &'static str)> {
    let (plain, unit) = number(text)?;
    if unit.is_empty() {
        return Some((plain, ""));
    }
    if unit == "%" {
        return Some((plain / 100.0, ""));
    }
    if let Ok(ns) = quantity::time(text) {
        return Some((ns as f64 / 1e9, "s"));
    }
    if unit.contains("bit") || unit.contains("bps") || unit.ends_with("/s") {
        return quantity::rate(text).ok().map(|bits| (bits as f64, "bit/s"));
    }
    quantity::size(text).ok().map(|bytes| (bytes as f64, "bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> String {
        match SweepAxis::parse(text).map(|axis| axis.values) {
            Ok(AxisValues::List(list)) => list.join(" "),
            Ok(AxisValues::Range(range)) => format!("{range:?}"),
            Err(wrong) => format!("! {wrong}"),
        }
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(list("a=1,2mbit, cubic"), "1 2mbit cubic");
        assert_eq!(list("a=1..100mbit:log5"), "1mbit 3.16228mbit 10mbit 31.6228mbit 100mbit");
        assert_eq!(list("a=0..1%:lin5"), "0% 0.25% 0.5% 0.75% 1%");
        assert_eq!(list("a=0.1..0.3:3,0.9"), "0.1 0.2 0.3 0.9");
        assert_eq!(list("a=1..3s:lin3"), "1s 2s 3s");
        assert_eq!(list("a=100000..3000000:2"), "100000 3000000");
        assert_eq!(list("a=-5..5ms:3"), "-5ms 0ms 5ms");
        assert!(list("a=-5..50ms").starts_with("ValueRange { low: -5.0, high: 50.0, unit: \"ms\""));
        assert!(
            list("a=1..100mbit:log")
                .starts_with("ValueRange { low: 1.0, high: 100.0, unit: \"mbit\", log: true")
        );
        assert_eq!(list("a=../traces/x"), "../traces/x");
    }

    #[test]
    fn what_is_none_is_said() {
        assert!(list("a").contains("sets nothing"));
        assert!(list("a=").contains("an empty value"));
        assert!(list("a=1,,2").contains("an empty value"));
        assert!(list("a=1kbit..2mbit:3").contains("both ends in one unit"));
        assert!(list("a=0..2:log3").contains("logarithmic ones above 0"));
        assert!(list("a=2..1:lin3").contains("go upwards"));
        assert!(list("a=-1..2:log3").contains("logarithmic ones above 0"));
        assert!(list("a=1..2:lin1").contains("no number of values"));
        assert!(list("a=1..2,5").contains("needs the number of its values"));
        assert!(list("a=x..1:log3").contains("the ends of a range are numbers"));
        assert_eq!(list("a=1mbit,2mbit,1000kbit"), "! `a` has the value 1000kbit twice");
        assert!(list("a=x,y,x").contains("has the value x twice"));
    }
}
