//! R17: units that mean something else than they seem to.

use super::making::finding;
use crate::finding::{Edit, Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step, Word};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::{Nanos, Rate};
use tidegate_policy::spec::{OptionSpec, ValueKind};
use tidegate_policy::{Kind, Op};
use tidegate_syntax::units;

/// Figures in unexpected units. Several figures of one line are one error, and so is a value that several
/// lines have from the same place, or repeat.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    // What was made to see whether it can be, and is gone again, does no harm.
    let lasting = reading.lasting();
    let mut found: Vec<Unit<'_>> = Vec::new();
    let mut known: BTreeMap<(Meant, String), usize> = BTreeMap::new();
    for step in reading.steps.iter().filter(|step| lasting.range(step.ops.clone()).next().is_some()) {
        let first = found.len();
        for unit in units_of(step) {
            let key = (unit.meant, unit.value.text.clone());
            let same = known.get(&key).copied();
            let here =
                found.iter().skip(first).position(|other| other.meant == unit.meant).map(|at| at + first);
            match same.or(here) {
                Some(at) => {
                    known.insert(key, at);
                    found[at].joined.push(unit);
                }
                None => {
                    known.insert(key, found.len());
                    found.push(unit);
                }
            }
        }
    }
    let mut found: Vec<Finding> = found.iter().map(|unit| unit_finding(reading, unit)).collect();
    found.extend(of_speeds(reading, &lasting));
    found
}

/// One finding for each device whose speed rates are parts of.
fn of_speeds(reading: &PolicyModel, lasting: &BTreeSet<usize>) -> Vec<Finding> {
    let mut by_device: BTreeMap<&str, (Finding, Vec<String>)> = BTreeMap::new();
    for step in &reading.steps {
        let Some((dev, finding)) = of_speed(reading, step, lasting) else { continue };
        match by_device.get_mut(dev) {
            Some((_, lines)) => lines.extend(reading.line(step).filter(|line| !lines.contains(line))),
            None => drop(by_device.insert(dev, (finding, Vec::new()))),
        }
    }
    let finding_of = |(mut finding, lines): (Finding, Vec<String>)| {
        if !lines.is_empty() {
            finding.because.push_str(&format!("; so it is in {}", words::named(&lines)));
        }
        finding
    };
    by_device.into_values().map(finding_of).collect()
}

/// A rate that a command gives as a part of its device's speed.
struct PartOfSpeed<'r> {
    dev: &'r str,
    /// The option and its value.
    pair: &'r [Word],
    /// The speed that the device is assumed to have.
    whole: Rate,
}

/// The devices that have rates given in per cent, and the speeds that these are assumed to be parts of.
pub fn assumed_speeds(reading: &PolicyModel) -> BTreeMap<String, Rate> {
    let lasting = reading.lasting();
    let parts = reading.steps.iter().filter_map(|step| part_of_speed(reading, step, &lasting));
    parts.map(|part| (part.dev.to_owned(), part.whole)).collect()
}

fn part_of_speed<'r>(
    reading: &'r PolicyModel,
    step: &'r Step,
    lasting: &BTreeSet<usize>,
) -> Option<PartOfSpeed<'r>> {
    let op = *lasting.range(step.ops.clone()).next()?;
    let dev = match &reading.ops[op] {
        Op::Qdisc(op) => &op.dev,
        Op::Class(op) => &op.dev,
        _ => return None,
    };
    let is_part =
        |pair: &&[Word]| takes_rate(step, &pair[0].text) && units::parse_percent(&pair[1].text).is_some();
    let pair = step.words.windows(2).find(is_part)?;
    let speed = reading.gateway.spec(reading.gateway.device(dev)?).speed_mbit?;
    Some(PartOfSpeed { dev, pair, whole: Rate(u64::from(speed) * 125_000) })
}

/// A rate that is a part of the device's speed, which is not known here.
fn of_speed<'r>(
    reading: &'r PolicyModel,
    step: &'r Step,
    lasting: &BTreeSet<usize>,
) -> Option<(&'r str, Finding)> {
    let PartOfSpeed { dev, pair, whole } = part_of_speed(reading, step, lasting)?;
    let percent = units::parse_percent(&pair[1].text)?;
    let part = Rate((whole.0 as f64 * percent / 100.0) as u64);
    let (keyword, value) = (&pair[0].text, &pair[1].text);
    let what = format!(
        "{keyword} {value} is {} of {}, the speed that {dev} is assumed to have",
        words::rate(part),
        words::rate(whole)
    );
    let because = format!(
        "tc reads /sys/class/net/{dev}/speed when the command runs, and refuses it where that says none (a \
        modem, a link that is down); what is said of this policy's rates holds for this speed only"
    );
    let place = pair[1].place.clone().or_else(|| step.place.clone());
    let witness = format!("the engine takes it for {} bit/s", part.0 * 8);
    let mut finding = finding(Rule::Units, Level::Note, place, what, because, witness);
    finding.fix = Some(Fix { what: "say the rate itself".to_owned(), edits: Vec::new() });
    Some((dev, finding))
}

/// What was taken for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meant {
    /// Bits, where bytes are written.
    Bits,
    /// Thousands of bits, where bits are written.
    Kilobits,
    /// Milliseconds, where microseconds are written.
    Milliseconds,
}

impl Meant {
    const fn because(self) -> &'static str {
        match self {
            Meant::Bits => "in tc, bps are bytes per second",
            Meant::Kilobits => "in tc, a rate without a unit is in bits per second",
            Meant::Milliseconds => "in tc, a time without a unit is in microseconds",
        }
    }
}

/// A value and what it is taken for.
struct Unit<'r> {
    step: &'r Step,
    value: &'r Word,
    meant: Meant,
    /// `rate 500kbps is 4 Mbit/s`.
    what: String,
    /// What the engine takes it for.
    taken: String,
    /// The value as it was meant.
    text: String,
    /// The words of the remedy.
    remedy: String,
    /// Other places with the same error.
    joined: Vec<Unit<'r>>,
}

/// A value and all that is the same mistake, as one finding.
fn unit_finding(reading: &PolicyModel, unit: &Unit<'_>) -> Finding {
    let mut because = unit.meant.because().to_owned();
    // Each value once, however often it occurs.
    let mut values: BTreeSet<&str> = BTreeSet::from([unit.value.text.as_str()]);
    let other: Vec<&Unit<'_>> =
        unit.joined.iter().filter(|other| values.insert(other.value.text.as_str())).collect();
    let different: Vec<&str> = other.iter().map(|other| other.what.as_str()).collect();
    if !different.is_empty() {
        because.push_str(&format!("; {}", different.join(", ")));
    }
    // A value that several commands use is identified by its place.
    let apart = unit
        .joined
        .iter()
        .filter(|other| other.value.place.is_none() || other.value.place != unit.value.place);
    let mut lines: Vec<String> = apart.filter_map(|other| reading.line(other.step)).collect();
    let own = reading.line(unit.step);
    lines.retain(|line| Some(line) != own.as_ref());
    lines.dedup();
    if !lines.is_empty() {
        because.push_str(&format!("; so it is in {}", words::named(&lines)));
    }
    let all = || std::iter::once(unit).chain(&unit.joined);
    let is_written = |one: &&Unit<'_>| one.value.literal && one.value.place.is_some();
    let mut edits: Vec<Edit> = Vec::new();
    // The same mistake in several places: a policy in which some of them are fixed is a third one.
    let by_hand = all().find(|one| !is_written(one));
    for one in all().filter(|_| by_hand.is_none()) {
        let edit = one.value.place.clone().map(|place| Edit { place, text: one.text.clone() });
        edits.extend(edit.filter(|edit| !edits.contains(edit)));
    }
    let shown = by_hand.unwrap_or(unit);
    let remedies = std::iter::once(&unit.remedy).chain(other.iter().map(|other| &other.remedy));
    let remedies: Vec<&str> = remedies.map(String::as_str).collect();
    let place = unit.value.place.clone().or_else(|| unit.step.place.clone());
    let fix = Fix { what: super::making::or_by_hand(shown.value, remedies.join("; ")), edits };
    Finding {
        fix: Some(fix),
        ..finding(Rule::Units, Level::Warning, place, unit.what.clone(), because, unit.taken.clone())
    }
}

/// Is the unit of the value behind this word of a command unexpected?
pub(super) fn is_doubtful(step: &Step, keyword: &str) -> bool {
    let value = step.after(keyword);
    value.is_some_and(|value| units_of(step).iter().any(|unit| std::ptr::eq(unit.value, value)))
}

/// Rates and times in a command whose unit is unexpected.
fn units_of(step: &Step) -> Vec<Unit<'_>> {
    let pairs = step.words.windows(2);
    let given =
        pairs.filter_map(|pair| rate(step, &pair[0], &pair[1]).or_else(|| time(step, &pair[0], &pair[1])));
    // netem's delay may have a second time behind it, by which it varies.
    let varies =
        step.words.windows(3).filter(|words| words[0].text == "delay" && kind_of(step) == Some(Kind::Netem));
    given.chain(varies.filter_map(|words| in_micros(step, "delay's jitter", &words[2]))).collect()
}

fn rate<'r>(step: &'r Step, keyword: &Word, value: &'r Word) -> Option<Unit<'r>> {
    if !takes_rate(step, &keyword.text) {
        return None;
    }
    let parsed = units::parse_rate(&value.text)?;
    let lower = value.text.to_ascii_lowercase();
    let bytes = lower.ends_with("bps");
    let bare = lower.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let (meant, text) = if bytes {
        (Meant::Bits, lower.trim_end_matches("bps").to_owned() + "bit")
    } else if bare && parsed.0 > 0 && parsed.0 * 8 < 100_000 {
        (Meant::Kilobits, lower.clone() + "kbit")
    } else {
        return None;
    };
    Some(Unit {
        step,
        value,
        meant,
        what: format!("{} {} is {}", keyword.text, value.text, words::rate(parsed)),
        taken: format!("the engine takes it for {} bit/s", parsed.0 * 8),
        remedy: format!("write {text} if that is what is meant, or {} to be plain", plain(parsed)),
        text,
        joined: Vec::new(),
    })
}

/// A rate in bits, as tc takes it.
fn plain(rate: Rate) -> String {
    let bits = rate.0 * 8;
    if bits.is_multiple_of(1000) { format!("{}kbit", bits / 1000) } else { format!("{bits}bit") }
}

/// A time without a unit.
fn time<'r>(step: &'r Step, keyword: &Word, value: &'r Word) -> Option<Unit<'r>> {
    if takes_time(step, &keyword.text) { in_micros(step, &keyword.text, value) } else { None }
}

/// A bare number of microseconds where more was meant.
fn in_micros<'r>(step: &'r Step, what: &str, value: &'r Word) -> Option<Unit<'r>> {
    let bare = value.text.chars().all(|letter| letter.is_ascii_digit()) && !value.text.is_empty();
    if !bare {
        return None;
    }
    let micros: u64 = value.text.parse().ok()?;
    // Less than a millisecond is never meant; from there on microseconds may be meant.
    (1..1000).contains(&micros).then(|| Unit {
        step,
        value,
        meant: Meant::Milliseconds,
        what: format!("{what} {} is {}", value.text, words::time(Nanos::micros(micros))),
        taken: format!("the engine takes it for {micros} µs"),
        text: format!("{micros}ms"),
        remedy: format!("write {micros}ms if milliseconds are meant"),
        joined: Vec::new(),
    })
}

/// Whether the keyword takes a time whose bare number is microseconds. The kind's table has it, except where
/// a kind reads several words itself.
fn takes_time(step: &Step, keyword: &str) -> bool {
    match takes(step, keyword) {
        Some((_, ValueKind::Time | ValueKind::TimeOrPackets)) => true,
        Some((Kind::Netem, ValueKind::Words(_))) => keyword == "delay",
        Some((_, ValueKind::Curve)) => matches!(keyword, "dmax" | "d"),
        _ => false,
    }
}

/// Is it followed by a rate?
fn takes_rate(step: &Step, keyword: &str) -> bool {
    if step.words.iter().any(|word| word.text == "police") {
        return matches!(keyword, "rate" | "peakrate" | "avrate");
    }
    match takes(step, keyword) {
        Some((_, ValueKind::Rate | ValueKind::Rate32)) => true,
        Some((Kind::Netem, ValueKind::Words(_))) => keyword == "rate",
        Some((_, ValueKind::Curve)) => matches!(keyword, "m1" | "m2" | "rate"),
        _ => false,
    }
}

/// The kind that a command names, and the value of a keyword of it; a word inside a curve means the curve.
fn takes(step: &Step, keyword: &str) -> Option<(Kind, ValueKind)> {
    let kind = kind_of(step)?;
    let spec = kind.spec();
    let mut options = [spec.qdisc, spec.class].into_iter().flatten().flatten();
    let named = |option: &&OptionSpec| option.key == keyword || option.aliases.contains(&keyword);
    let curve = |option: &&OptionSpec| option.value == ValueKind::Curve;
    let option = options.clone().find(named).or_else(|| options.find(curve))?;
    Some((kind, option.value))
}

/// The kind of qdisc that a command names.
fn kind_of(step: &Step) -> Option<Kind> {
    step.words.iter().find_map(|word| Kind::ALL.iter().find(|kind| kind.name() == word.text).copied())
}
