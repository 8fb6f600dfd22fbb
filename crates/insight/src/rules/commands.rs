//! C1 and R17: commands that are refused, and units that mean something else than they seem to.

use super::finding;
use crate::finding::{Edit, Finding, Fix, Level, Rule, Witness};
use crate::reading::{Reading, Step, Word};
use crate::words;
use tidegate_lang::units;
use tidegate_packet::{Rate, Span};
use tidegate_policy::Kind;

/// Commands that are refused, and figures in unexpected units.
pub(super) fn check(reading: &mut Reading) -> Vec<Finding> {
    let refused = reading.steps.iter().filter(|step| !step.may_fail && !clears(step)).filter_map(refused);
    // What was made to see whether it can be, and is gone again, harms nobody.
    let lasting = reading.lasting();
    let lasts = |step: &&Step| lasting.range(step.ops.clone()).next().is_some();
    refused.chain(reading.steps.iter().filter(lasts).flat_map(units_of)).collect()
}

/// Does the command clear the way? Nothing is lost where nothing was.
fn clears(step: &Step) -> bool {
    step.words.iter().any(|word| ["del", "delete", "-X", "-D", "-F"].contains(&word.text.as_str()))
}

/// A command that the tool or the kernel refuses.
fn refused(step: &Step) -> Option<Finding> {
    let told = step.refused.as_deref()?;
    let prefix = format!("{}: ", step.tool);
    let mut lines = told.trim().lines();
    let reason = lines.next().unwrap_or("refused without a word");
    let reason = reason.strip_prefix(&prefix).unwrap_or(reason).trim_end_matches('.').to_owned();
    let remedy = lines.rev().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned);
    let blamed =
        step.words.iter().rev().find(|word| word.text.len() > 1 && reason.contains(&format!("\"{}\"", word.text)));
    Some(Finding {
        rule: Rule::Refused,
        level: Level::Error,
        place: blamed.and_then(|word| word.place.clone()).or_else(|| step.place.clone()),
        what: format!("{} refuses this: {reason}", step.tool),
        because: "what the command should have done is missing from the policy".into(),
        witness: Some(Witness::Number(told.lines().next().unwrap_or_default().to_owned())),
        fix: remedy.map(|what| Fix { what, edits: Vec::new() }),
    })
}

/// Words that name a rate.
const RATES: [&str; 9] = ["rate", "ceil", "peakrate", "m1", "m2", "bandwidth", "penalty_rate", "avgrate", "drain"];
/// Words that name a time whose bare number is microseconds.
const TIMES: [&str; 5] = ["latency", "target", "interval", "tupdate", "ce_threshold"];

/// Rates and times in a command whose unit is unexpected.
fn units_of(step: &Step) -> Vec<Finding> {
    let pairs = step.words.windows(2);
    pairs.filter_map(|pair| rate(step, &pair[0], &pair[1]).or_else(|| time(step, &pair[0], &pair[1]))).collect()
}

fn rate(step: &Step, keyword: &Word, value: &Word) -> Option<Finding> {
    if !RATES.contains(&keyword.text.as_str()) || keyword.text == "penalty_rate" {
        return None;
    }
    let parsed = units::parse_rate(&value.text)?;
    let lower = value.text.to_ascii_lowercase();
    let bytes = lower.ends_with("bps");
    let bare = lower.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let meant = if bytes { lower.trim_end_matches("bps").to_owned() + "bit" } else { lower.clone() + "kbit" };
    let because = if bytes {
        "in tc, bps are bytes per second".to_owned()
    } else if bare && parsed.0 * 8 < 100_000 {
        "in tc, a rate without a unit is in bits per second".to_owned()
    } else {
        return None;
    };
    Some(Finding {
        fix: literal(
            value,
            &meant,
            &format!("write {meant} if that is what is meant, or {} to be plain", plain(parsed)),
        ),
        ..finding(
            Rule::Units,
            Level::Warning,
            value.place.clone().or_else(|| step.place.clone()),
            format!("{} {} is {}", keyword.text, value.text, words::rate(parsed)),
            because,
            format!("the engine takes it for {} bit/s", parsed.0 * 8),
        )
    })
}

/// A rate in bits, as tc takes it.
fn plain(rate: Rate) -> String {
    let bits = rate.0 * 8;
    if bits.is_multiple_of(1000) { format!("{}kbit", bits / 1000) } else { format!("{bits}bit") }
}

/// A time without a unit.
fn time(step: &Step, keyword: &Word, value: &Word) -> Option<Finding> {
    let bare = value.text.chars().all(|letter| letter.is_ascii_digit()) && !value.text.is_empty();
    if !bare || !TIMES.contains(&keyword.text.as_str()) || !takes_time(step, &keyword.text) {
        return None;
    }
    let micros: u64 = value.text.parse().ok()?;
    // Nobody means less than a millisecond; from there on microseconds may be meant.
    (1..1000).contains(&micros).then(|| Finding {
        fix: literal(value, &format!("{micros}ms"), &format!("write {micros}ms if milliseconds are meant")),
        ..finding(
            Rule::Units,
            Level::Warning,
            value.place.clone().or_else(|| step.place.clone()),
            format!("{} {} is {}", keyword.text, value.text, words::time(Span::micros(micros))),
            "in tc, a time without a unit is in microseconds".into(),
            format!("the engine takes it for {micros} µs"),
        )
    })
}

/// Is the keyword a time of the kind that the command names? `target` of sfb is a number of packets.
fn takes_time(step: &Step, keyword: &str) -> bool {
    let kind = step.words.iter().find_map(|word| Kind::ALL.iter().find(|kind| kind.name() == word.text));
    match kind {
        Some(Kind::Tbf) => keyword == "latency",
        Some(Kind::Codel | Kind::FqCodel | Kind::Pie | Kind::FqPie | Kind::DualPi2) => true,
        _ => false,
    }
}

fn literal(value: &Word, text: &str, what: &str) -> Option<Fix> {
    let place = value.place.clone().filter(|_| value.literal);
    let edits = place.map(|place| Edit { place, text: text.to_owned() }).into_iter().collect();
    Some(Fix { what: what.to_owned(), edits })
}
