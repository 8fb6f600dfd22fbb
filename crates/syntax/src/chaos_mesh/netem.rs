//! What netem and tbf are given.

use crate::kubernetes::Findings;
use crate::nft::Span;
use crate::yaml::{YamlEntry, YamlNode};

/// The units of rates that Chaos Mesh takes.
const RATE_UNITS: [&str; 10] = ["kbit", "mbit", "gbit", "tbit", "tbps", "gbps", "mbps", "kbps", "bps", "bit"];

/// netem with its options, in the daemon's order.
pub(super) fn netem(spec: &YamlNode, action: Span, found: &mut Findings) -> Option<String> {
    let before = found.problems.len();
    let follow = ["loss", "duplicate", "corrupt", "rate"].iter().any(|key| spec.get(key).is_some());
    let mut words = spec.entry("delay").map(|entry| delay(entry, follow, found)).unwrap_or_default();
    for key in ["loss", "duplicate", "corrupt"] {
        let Some(entry) = spec.entry(key) else { continue };
        found.keys(entry, &[key, "correlation"]);
        let chance = found.needed(entry, key);
        let chance = chance.and_then(|(text, span)| percent(key, text, span, found));
        words += &chance_words(key, chance, correlation(&entry.node, found), found);
    }
    if let Some(entry) = spec.entry("rate") {
        found.keys(entry, &["rate"]);
        if let Some(rate) = rate(entry, found) {
            words += &format!(" rate {rate}");
        }
    }
    if found.problems.len() != before {
        return None;
    }
    if words.is_empty() {
        let what = "netem is left without any option, and tc refuses what Chaos Mesh then writes";
        let remedy = "give delay, loss, duplicate, corrupt or rate a value that is not 0";
        found.wrong(action, what, remedy);
        return None;
    }
    Some(format!("netem{words}"))
}

/// `delay`, with what hangs on it.
fn delay(entry: &YamlEntry, others_follow: bool, found: &mut Findings) -> String {
    let node = &entry.node;
    found.keys(entry, &["latency", "jitter", "correlation", "reorder"]);
    let latency = found.needed(entry, "latency");
    let latency = latency.and_then(|(text, span)| time(text, span, others_follow, found));
    let jitter = found.text(node, "jitter").filter(|(text, _)| !text.is_empty());
    let jitter = jitter.and_then(|(text, span)| time(text, span, others_follow, found));
    let correlation = correlation(node, found);
    let reorder = node.entry("reorder").map(|entry| reorder(entry, found)).unwrap_or_default();
    let Some(latency) = latency else {
        if !reorder.is_empty() || jitter.is_some() {
            found.note(
                entry.span,
                "without a latency nothing of `delay` is put on",
                "give latency, if it is wanted",
            );
        }
        return String::new();
    };
    let mut words = format!(" delay {latency}");
    match (jitter, correlation.filter(|(value, _)| *value > 0.0)) {
        (Some(jitter), None) => words += &format!(" {jitter}"),
        (Some(jitter), Some((value, _))) => words += &format!(" {jitter} {value:.6}"),
        (None, Some((_, span))) => {
            found.note(
                span,
                "`correlation` of a delay without jitter is left out",
                "give jitter, if it is wanted",
            );
        }
        (None, None) => {}
    }
    words + &reorder
}

fn reorder(entry: &YamlEntry, found: &mut Findings) -> String {
    found.keys(entry, &["reorder", "correlation", "gap"]);
    let chance = found.needed(entry, "reorder");
    let chance = chance.and_then(|(text, span)| percent("reorder", text, span, found));
    if entry.node.get("gap").is_none() {
        found.wrong(entry.span, "`reorder` without `gap`, so Kubernetes refuses the file", "write gap: 1");
    }
    let gap = found.whole(&entry.node, "gap", u32::MAX.into()).map_or(0, |(gap, _)| gap);
    let mut words = chance_words("reorder", chance, correlation(&entry.node, found), found);
    if gap > 0 && !words.is_empty() {
        words += &format!(" gap {gap}");
    }
    words
}

/// The words of a chance in per cent, if it is not 0.
fn chance_words(
    key: &str,
    chance: Option<(f32, Span)>,
    correlation: Option<(f32, Span)>,
    found: &mut Findings,
) -> String {
    let Some((chance, span)) = chance else { return String::new() };
    if chance <= 0.0 {
        found.note(span, format!("`{key}` is 0, and left out"), "give another value, if it is wanted");
        return String::new();
    }
    match correlation.filter(|(value, _)| *value > 0.0) {
        Some((value, _)) => format!(" {key} {chance:.6} {value:.6}"),
        None => format!(" {key} {chance:.6}"),
    }
}

fn correlation(node: &YamlNode, found: &mut Findings) -> Option<(f32, Span)> {
    let (text, span) = found.text(node, "correlation").filter(|(text, _)| !text.is_empty())?;
    percent("correlation", text, span, found)
}

/// A number of per cent, which the daemon holds in 32 bits and writes with six places.
fn percent(key: &str, text: &str, span: Span, found: &mut Findings) -> Option<(f32, Span)> {
    let is_plain = text.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let value = text.parse::<f32>().ok().filter(|value| is_plain && (0.0..=100.0).contains(value));
    if value.is_none() {
        let what = format!("`{key}` is {text}, which is no number from 0 to 100");
        found.wrong(span, what, format!("write per cent without a sign, in quotes: {key}: \"2.5\""));
    }
    Some((value?, span))
}

/// A time as tc takes it; `None`: it is no time, or is left out.
fn time<'t>(text: &'t str, span: Span, others_follow: bool, found: &mut Findings) -> Option<&'t str> {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let number = text.strip_suffix(unit).unwrap_or_default();
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = [whole, part]
        .iter()
        .all(|digits| !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit()));
    if !is_number || !["ns", "us", "ms", "s", "m", "h"].contains(&unit) {
        let what = format!("{text} is no time that Chaos Mesh takes");
        found.wrong(span, what, "write a number and its unit: 90ms, 0.5s, 250us");
        return None;
    }
    if ["m", "h"].contains(&unit) {
        let what = format!("tc has no unit {unit} for a time, and refuses {text}: nothing is put on");
        found.wrong(span, what, "write seconds: 60s");
        return None;
    }
    // The daemon compares texts, not times.
    let is_nothing = number.chars().all(|letter| letter == '0' || letter == '.');
    if text <= "0ms" || is_nothing && others_follow {
        if !is_nothing {
            let what =
                format!("{text} is left out: Chaos Mesh 2.8 compares it as text with 0ms (2.7 took it)");
            found.note(span, what, "write it in a smaller unit: 500us");
        }
        return None;
    }
    Some(text)
}

/// tbf with its options.
pub(super) fn bandwidth(spec: &YamlEntry, found: &mut Findings) -> Option<String> {
    let Some(entry) = spec.node.entry("bandwidth") else {
        let what = "action: bandwidth without `bandwidth`";
        found.wrong(spec.span, what, "write bandwidth: with rate, limit and buffer");
        return None;
    };
    found.keys(entry, &["rate", "limit", "buffer", "peakrate", "minburst"]);
    let rate = rate(entry, found);
    let mut size = |key: &str| {
        let size = found.whole(&entry.node, key, u32::MAX.into());
        let is_there = entry.node.get(key).is_some();
        if !is_there || matches!(size, Some((0, _))) {
            let span = size.map_or(entry.span, |(_, span)| span);
            found.wrong(
                span,
                format!("`bandwidth` needs a `{key}` of at least 1"),
                format!("write {key}: 10000 (bytes)"),
            );
        }
        size.filter(|(size, _)| *size > 0)
    };
    let (limit, buffer) = (size("limit"), size("buffer"));
    let peak = found.whole(&entry.node, "peakrate", u64::MAX);
    let least = found.whole(&entry.node, "minburst", u32::MAX.into());
    let (rate, (limit, _), (buffer, _)) = (rate?, limit?, buffer?);
    let mut words = format!("tbf rate {rate} burst {buffer} limit {limit}");
    match (peak, least) {
        (Some((peak, _)), Some((least, _))) if peak > 0 => words += &format!(" peakrate {peak} mtu {least}"),
        (Some((_, span)), None) | (None, Some((_, span))) => {
            found.note(
                span,
                "`peakrate` and `minburst` are left out without one another",
                "give both, or none",
            );
        }
        _ => {}
    }
    Some(words)
}

/// A rate as Chaos Mesh checks it, and tc reads it.
fn rate<'n>(entry: &'n YamlEntry, found: &mut Findings) -> Option<&'n str> {
    let (text, span) = found.needed(entry, "rate")?;
    let lower = text.to_ascii_lowercase();
    let number = RATE_UNITS.iter().find_map(|unit| lower.strip_suffix(unit));
    let is_rate = number.is_some_and(|digits| digits.parse::<u64>().is_ok() && !digits.starts_with('+'));
    if !is_rate {
        let what = format!("{text} is no rate that Chaos Mesh takes");
        let remedy =
            "write a whole number and its unit without a blank: 1mbit (bits), 1mbps (bytes a second)";
        found.wrong(span, what, remedy);
    }
    is_rate.then_some(text)
}
