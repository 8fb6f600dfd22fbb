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
        let published = keys.read("published", amount)?;
        let within = within(&mut keys, published)?;
        let id = keys.read("id", text)?.map_or_else(|| number.to_string(), str::to_owned);
        all.push(Expectation {
            id,
            what: keys.read("what", text)?.unwrap_or(name).to_owned(),
            figure: FigureRef { name: name.to_owned(), policy, load, between, at: figure.span() },
            over,
            published,
            within,
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
fn within(keys: &mut Keys<'_>, published: Option<f64>) -> Result<(f64, f64), Diagnostic> {
    let bounds = keys.read("within", |value| match list(value)? {
        [low, high] => Ok((amount(low)?, amount(high)?)),
        _ => Err(Diagnostic::new(value.span(), "bounds are two", "write `[\"450ms\", \"950ms\"]`")),
    })?;
    let tolerance = match keys.get("tolerance") {
        Some(value) => {
            let share = amount(value)?;
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
    let below = keys.read("below", amount)?;
    let above = keys.read("above", amount)?;
    let (mut low, mut high) = bounds.or(tolerance).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    low = above.map_or(low, |above| low.max(above));
    high = below.map_or(high, |below| high.min(below));
    Ok((low, high))
}

/// A figure with its unit: seconds, bits per second, bytes, a share, or a number.
fn amount(value: TableValue<'_>) -> Result<f64, Diagnostic> {
    let text = plain(value)?;
    parse_amount(&text).ok_or_else(|| {
        let how = "write a number, or 720ms, 127kbit, 24kB, 6.7%";
        Diagnostic::new(value.span(), format!("`{text}` is not a figure"), how)
    })
}

/// `721ms` is 0.721, `127kbit` 127000, `24kB` 24000, `12%` 0.12.
fn parse_amount(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    if text.ends_with('%') {
        let (negative, size) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        return quantity::percent(size).map(|percent| if negative { -percent } else { percent } / 100.0);
    }
    let text = text.strip_suffix("bytes").unwrap_or(text).trim();
    if let Ok(number) = text.parse::<f64>() {
        return Some(number);
    }
    let (negative, size) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let found = if size.ends_with("bit/s") || size.ends_with("bit") {
        quantity::rate(size).ok().map(|bits| bits as f64)
    } else {
        match quantity::size_or_time(size) {
            Ok(SizeOrTime::Time(ns)) => Some(ns as f64 / 1e9),
            Ok(SizeOrTime::Size(bytes)) => Some(bytes as f64),
            Err(_) => None,
        }
    };
    found.map(|number| if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_in_their_units() {
        let lines = ["0.95", "721ms", "127kbit", "4 Mbit/s", "24kB", "12%", "-3", "-2ms", "fast", "1e999"];
        let found = lines.map(parse_amount);
        let expected = [0.95, 0.721, 127e3, 4e6, 24e3, 0.12, -3.0, -0.002].map(Some);
        assert_eq!((&found[..8], &found[8..]), (&expected[..], &[None, None][..]));
    }
}
