//! What is expected, and of which cases.

use crate::model::{Expectation, FigureRef, ScenarioLoad, ScenarioPolicy};
use crate::tables::{Diagnostic, Keys, TableValue, flag, list, plain, span, text};
use std::ops::Range;
use tidegate_packet::Nanos;
use tidegate_syntax::quantity::{self, SizeOrTime};

/// `[[case]]`; without any, all policies under all loads.
pub(crate) fn cases(
    value: Option<TableValue<'_>>,
    policies: &[ScenarioPolicy],
    loads: &[ScenarioLoad],
) -> Result<Vec<(usize, usize)>, Diagnostic> {
    let Some(value) = value else {
        return Ok((0..policies.len())
            .flat_map(|policy| (0..loads.len()).map(move |load| (policy, load)))
            .collect());
    };
    let mut cases = Vec::new();
    for entry in list(value)? {
        let mut keys = Keys::of(entry)?;
        let policy = keys.read("policy", |value| policy(text(value)?, value.span(), policies))?;
        let load = keys.read("load", |value| load(text(value)?, value.span(), loads))?;
        keys.finish()?;
        for p in 0..policies.len() {
            for l in 0..loads.len() {
                let meant = policy.is_none_or(|policy| policy == p) && load.is_none_or(|load| load == l);
                if meant && !cases.contains(&(p, l)) {
                    cases.push((p, l));
                }
            }
        }
    }
    cases.sort_unstable();
    Ok(cases)
}

fn policy(name: &str, at: Range<usize>, policies: &[ScenarioPolicy]) -> Result<usize, Diagnostic> {
    policies.iter().position(|policy| policy.name == name).ok_or_else(|| {
        let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        Diagnostic::new(at, format!("unknown policy `{name}`"), format!("there are {}", names.join(", ")))
    })
}

fn load(name: &str, at: Range<usize>, loads: &[ScenarioLoad]) -> Result<usize, Diagnostic> {
    loads.iter().position(|load| load.name == name).ok_or_else(|| {
        let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        Diagnostic::new(at, format!("unknown load `{name}`"), format!("there are {}", names.join(", ")))
    })
}

/// `[[expect]]`.
pub(crate) fn read(
    value: Option<TableValue<'_>>,
    policies: &[ScenarioPolicy],
    loads: &[ScenarioLoad],
    cases: &[(usize, usize)],
) -> Result<Vec<Expectation>, Diagnostic> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (number, entry) in (1..).zip(list(value)?) {
        let mut keys = Keys::of(entry)?;
        let figure = keys.need("figure", "missing figure: `figure = \"ping.mean\"`")?;
        let name = text(figure)?;
        let between = keys.read("between", window)?;
        let over_between = keys.read("over-between", window)?.or(between);
        let place = |words: &str, at: Range<usize>| -> Result<(usize, usize), Diagnostic> {
            let found = case(words, at.clone(), policies, loads)?;
            match cases.contains(&found) {
                true => Ok(found),
                false => Err(Diagnostic::new(
                    at,
                    "this case is not run",
                    "add it: `[[case]]` with its policy and load",
                )),
            }
        };
        let (policy, load) = match keys.get("of") {
            Some(value) => place(text(value)?, value.span())?,
            None if cases.len() == 1 => cases[0],
            None => {
                let how = "name the case: `of = \"POLICY/LOAD\"`";
                return Err(Diagnostic::new(figure.span(), "missing case", how));
            }
        };
        let over = match keys.get("over") {
            Some(value) => {
                let words = text(value)?;
                let (name, of) = words.split_once(" of ").unwrap_or((name, words));
                let (policy, load) = place(of, value.span())?;
                Some(FigureRef {
                    name: name.trim().to_owned(),
                    policy,
                    load,
                    between: over_between,
                    at: value.span(),
                })
            }
            None => None,
        };
        let mut units = Vec::new();
        let published = keys.read("published", amount)?.map(|amount| amount.noted(&mut units));
        let within = within(&mut keys, published, &mut units)?;
        let id = keys.read("id", text)?.map_or_else(|| number.to_string(), str::to_owned);
        all.push(Expectation {
            id,
            what: keys.read("what", text)?.unwrap_or(name).to_owned(),
            figure: FigureRef { name: name.to_owned(), policy, load, between, at: figure.span() },
            over,
            published,
            within,
            units,
            gate: keys.read("gate", flag)?.unwrap_or(true),
            why: keys.read("why", text)?.map(str::to_owned),
        });
        keys.finish()?;
    }
    Ok(all)
}

/// `none/upload`.
fn case(
    text: &str,
    at: Range<usize>,
    policies: &[ScenarioPolicy],
    loads: &[ScenarioLoad],
) -> Result<(usize, usize), Diagnostic> {
    match text.split_once('/') {
        Some((p, l)) => Ok((policy(p.trim(), at.clone(), policies)?, load(l.trim(), at, loads)?)),
        None if loads.len() == 1 => Ok((policy(text.trim(), at, policies)?, 0)),
        None => Err(Diagnostic::new(at, "missing case", "write POLICY/LOAD: `none/upload`")),
    }
}

/// `["30s", "60s"]`.
fn window(value: TableValue<'_>) -> Result<(Nanos, Nanos), Diagnostic> {
    match list(value)? {
        [from, to] => {
            let window = (span(from)?, span(to)?);
            match window.0 < window.1 {
                true => Ok(window),
                false => Err(Diagnostic::new(
                    value.span(),
                    "its end is before its beginning",
                    "both count from the beginning of the run",
                )),
            }
        }
        _ => Err(Diagnostic::new(
            value.span(),
            "a window has a beginning and an end",
            "write `[\"30s\", \"60s\"]`",
        )),
    }
}

/// The bounds: `within`, `tolerance`, `below`, `above`; none of them: anything, and nothing is required.
fn within(
    keys: &mut Keys<'_>,
    published: Option<f64>,
    units: &mut Vec<(&'static str, Range<usize>)>,
) -> Result<(f64, f64), Diagnostic> {
    let bounds = keys.read("within", |value| match list(value)? {
        [low, high] => Ok((amount(low)?.noted(units), amount(high)?.noted(units))),
        _ => Err(Diagnostic::new(value.span(), "bounds are two", "write `[\"450ms\", \"950ms\"]`")),
    })?;
    let tolerance = match keys.get("tolerance") {
        Some(value) => {
            let share = amount(value)?.value;
            let Some(middle) = published else {
                return Err(Diagnostic::new(
                    value.span(),
                    "of what?",
                    "a tolerance is one of `published = …`",
                ));
            };
            Some((middle - (middle * share).abs(), middle + (middle * share).abs()))
        }
        None => None,
    };
    let below = keys.read("below", amount)?.map(|amount| amount.noted(units));
    let above = keys.read("above", amount)?.map(|amount| amount.noted(units));
    let (mut low, mut high) = bounds.or(tolerance).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    low = above.map_or(low, |above| low.max(above));
    high = below.map_or(high, |below| high.min(below));
    Ok((low, high))
}

/// A figure's value, in SI units.
struct Amount {
    value: f64,
    /// The unit that was written, in the words of [`tidegate_measure::experiment::Quantity`], or `%`.
    unit: Option<&'static str>,
    at: Range<usize>,
}

impl Amount {
    /// The value; its unit, if it has one, is noted.
    fn noted(self, units: &mut Vec<(&'static str, Range<usize>)>) -> f64 {
        units.extend(self.unit.map(|unit| (unit, self.at)));
        self.value
    }
}

/// A figure with its unit: seconds, bits per second, bytes, a share, or a number.
fn amount(value: TableValue<'_>) -> Result<Amount, Diagnostic> {
    let text = plain(value)?;
    let at = value.span();
    match parse_amount(&text) {
        Some((value, unit)) => Ok(Amount { value, unit, at }),
        None => {
            let how = "write a number, or 720ms, 127kbit, 24kB, 6.7%";
            Err(Diagnostic::new(at, format!("`{text}` is not a figure"), how))
        }
    }
}

/// `721ms` is 0.721, `127kbit` 127000, `24kB` 24000, `12%` 0.12; with its unit.
fn parse_amount(text: &str) -> Option<(f64, Option<&'static str>)> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, None));
    }
    let (negative, size) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let signed = |number: f64| if negative { -number } else { number };
    if size.ends_with('%') {
        return quantity::percent(size).map(|percent| (signed(percent) / 100.0, Some("%")));
    }
    let size = size.strip_suffix("bytes").unwrap_or(size).trim();
    if let Ok(number) = size.parse::<f64>() {
        return Some((signed(number), Some("bytes")));
    }
    let (number, unit) = if size.ends_with("bit/s") || size.ends_with("bit") {
        (quantity::rate(size).ok()? as f64, "bit/s")
    } else {
        match quantity::size_or_time(size).ok()? {
            SizeOrTime::Time(ns) => (ns as f64 / 1e9, "s"),
            SizeOrTime::Size(bytes) => (bytes as f64, "bytes"),
        }
    };
    Some((signed(number), Some(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_in_their_units() {
        let table = [
            ("0.95", Some((0.95, None))),
            ("721ms", Some((0.721, Some("s")))),
            ("127kbit", Some((127e3, Some("bit/s")))),
            ("4 Mbit/s", Some((4e6, Some("bit/s")))),
            ("24kB", Some((24e3, Some("bytes")))),
            ("300 bytes", Some((300.0, Some("bytes")))),
            ("12%", Some((0.12, Some("%")))),
            ("-3", Some((-3.0, None))),
            ("-2ms", Some((-0.002, Some("s")))),
            ("fast", None),
            ("1e999", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_amount(text), expected, "{text}");
        }
    }
}
