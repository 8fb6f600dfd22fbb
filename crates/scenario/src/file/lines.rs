//! What the directions of a link are like.

use super::beside::Beside;
use crate::composed::{MAX_LOOPS, MAX_PARTS, SCALES, Shaping, USUAL_SEED, with_delays};
use crate::model::{BufferSize, LinkDirection};
use crate::presets::{LinePreset, PresetDirection};
use crate::recorded::{BadRecording, Taken, cut, read};
use crate::tables::{
    Diagnostic, Keys, TableValue, list, number, plain, rate, share, size, size_or_time, some_span, span, text,
};
use std::path::{Path, PathBuf};
use tidegate_packet::Nanos;
use tidegate_sim::{Cells, Impairment, LinkFraming, LossModel, Reorder, Trace};
use tidegate_syntax::quantity::SizeOrTime;
use toml::de::DeValue;

/// Both directions: keys outside, or in `both`, apply to both, `up` and `down` to one.
pub(crate) fn both(
    keys: &mut Keys<'_>,
    beside: &Beside<'_>,
) -> Result<(LinkDirection, LinkDirection), Diagnostic> {
    let mut common = line(keys, beside)?;
    if let Some(value) = keys.get("both") {
        let mut keys = Keys::of(value)?;
        common = line(&mut keys, beside)?.or(&common);
        keys.finish()?;
    }
    Ok((direction(keys, "up", &common, beside)?, direction(keys, "down", &common, beside)?))
}

/// The value of a key for one direction, else the one for both.
pub(crate) fn direction(
    keys: &mut Keys<'_>,
    key: &'static str,
    common: &LinkDirection,
    beside: &Beside<'_>,
) -> Result<LinkDirection, Diagnostic> {
    let Some(value) = keys.get(key) else { return Ok(common.clone()) };
    let mut keys = Keys::of(value)?;
    let own = line(&mut keys, beside)?;
    keys.finish()?;
    Ok(own.or(common))
}

fn line(keys: &mut Keys<'_>, beside: &Beside<'_>) -> Result<LinkDirection, Diagnostic> {
    let frames = |value: TableValue<'_>| number(value, 1, 65_536).map(|frames| frames as u32);
    Ok(LinkDirection {
        rate: keys.read("rate", rate)?,
        packet_rate: keys.read("packet-rate", |value| number(value, 0, 1_000_000_000))?,
        delay: keys.read("delay", span)?,
        jitter: keys.read("jitter", span)?,
        buffer: keys.read("buffer", buffer)?,
        framing: keys.read("framing", framing)?,
        ring: keys.read("ring", frames)?,
        bql: keys.read("bql", size)?.map(|bytes| bytes.clamp(1, u64::from(u32::MAX)) as u32),
        impairment: impairment(keys)?,
        trace: keys.read("trace", |value| trace(value, beside))?,
    })
}

/// `24kB`, `100 packets`, `200ms`.
pub(super) fn buffer(value: TableValue<'_>) -> Result<BufferSize, Diagnostic> {
    let text = plain(value)?;
    let packets = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
    let Some(count) = packets else {
        return Ok(match size_or_time(value)? {
            SizeOrTime::Size(bytes) => BufferSize::Bytes(bytes),
            SizeOrTime::Time(ns) => BufferSize::Time(Nanos(ns)),
        });
    };
    count.trim().parse().map(BufferSize::Packets).map_err(|_| {
        let how = "write bytes (24kB), packets (\"100 packets\"), or a time at the line's rate (200ms)";
        Diagnostic::new(value.span(), format!("`{text}` is not a number of packets"), how)
    })
}

/// Bytes of each frame beside the 14 of its Ethernet header, the shortest frame, how it is carried; by name.
/// The figures of DSL are those of RFC 2684 and its AAL5 trailer, and of IEEE 802.3 clause 61.
const FRAMINGS: [(&str, i32, u32, Cells); 12] = [
    ("none", 0, 0, Cells::None),
    ("ethernet", 24, 84, Cells::None),
    ("pppoe", 32, 84, Cells::None),
    ("ptm", 8, 0, Cells::Ptm),
    ("pppoe-ptm", 16, 0, Cells::Ptm),
    ("atm-llc", 18, 0, Cells::Atm),
    ("atm-vc", 10, 0, Cells::Atm),
    ("ipoa-llc", 2, 0, Cells::Atm),
    ("ipoa-vc", -6, 0, Cells::Atm),
    ("pppoa-vc", -4, 0, Cells::Atm),
    ("pppoe-atm-llc", 26, 0, Cells::Atm),
    ("pppoe-atm-vc", 18, 0, Cells::Atm),
];

/// A framing by name, or by its figures.
pub(crate) fn framing(value: TableValue<'_>) -> Result<LinkFraming, Diagnostic> {
    if let DeValue::Table(_) = value.get_ref() {
        return framing_table(value);
    }
    let words = text(value)?;
    let found = FRAMINGS.iter().find(|(name, ..)| *name == words);
    found.map(|&(_, overhead, minimum, cells)| LinkFraming { overhead, minimum, cells }).ok_or_else(|| {
        let names: Vec<&str> = FRAMINGS.iter().map(|(name, ..)| *name).collect();
        let remedy =
            format!("there are {}, or {{ overhead = 40, minimum = 64, cells = \"atm\" }}", names.join(", "));
        Diagnostic::new(value.span(), "unknown framing", remedy)
    })
}

fn framing_table(value: TableValue<'_>) -> Result<LinkFraming, Diagnostic> {
    let mut keys = Keys::of(value)?;
    let overhead = keys.read("overhead", |value| {
        let number = plain(value)?.parse::<i32>().ok().filter(|bytes| (-64..=256).contains(bytes));
        number.ok_or_else(|| {
            Diagnostic::new(value.span(), "this is not an overhead", "write bytes, -64 to 256")
        })
    })?;
    let minimum = keys.read("minimum", |value| number(value, 0, 1500))?;
    let cells = keys.read("cells", |value| match text(value)? {
        "none" => Ok(Cells::None),
        "atm" => Ok(Cells::Atm),
        "ptm" => Ok(Cells::Ptm),
        _ => Err(Diagnostic::new(value.span(), "unknown kind of cells", "there are none, atm, ptm")),
    })?;
    keys.finish()?;
    Ok(LinkFraming {
        overhead: overhead.unwrap_or(0),
        minimum: minimum.unwrap_or(0) as u32,
        cells: cells.unwrap_or_default(),
    })
}

/// `loss`, `reorder`, `spread`.
fn impairment(keys: &mut Keys<'_>) -> Result<Option<Impairment>, Diagnostic> {
    let loss = keys.read("loss", loss)?;
    let reorder = keys.read("reorder", reorder)?;
    let spread = keys.read("spread", span)?;
    if loss.is_none() && reorder.is_none() && spread.is_none() {
        return Ok(None);
    }
    Ok(Some(Impairment {
        loss: loss.unwrap_or_default(),
        reorder: reorder.unwrap_or_default(),
        spread: spread.unwrap_or_default(),
    }))
}

fn loss(value: TableValue<'_>) -> Result<LossModel, Diagnostic> {
    let DeValue::Table(_) = value.get_ref() else { return share(value).map(LossModel::Random) };
    let mut keys = Keys::of(value)?;
    let random = keys.read("random", share)?.map(LossModel::Random);
    let every = keys
        .read("every", |value| number(value, 1, u64::from(u32::MAX)))?
        .map(|n| LossModel::Every(n as u32));
    let pattern = keys.read("pattern", pattern)?.map(LossModel::Pattern);
    let burst = keys.read("burst", burst)?;
    let place = keys.place();
    keys.finish()?;
    let mut all = [random, every, pattern, burst].into_iter().flatten();
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(Diagnostic::new(
            place,
            "one kind of loss was expected",
            "write random, every, pattern or burst",
        )),
    }
}

fn pattern(value: TableValue<'_>) -> Result<Vec<bool>, Diagnostic> {
    let words = text(value)?;
    let marks: Option<Vec<bool>> = words
        .chars()
        .map(|c| match c {
            'x' | 'X' => Some(true),
            '.' => Some(false),
            _ => None,
        })
        .collect();
    marks.filter(|marks| !marks.is_empty()).ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            "this is not a pattern",
            "write a point for each packet that passes, an x for one that is lost",
        )
    })
}

fn burst(value: TableValue<'_>) -> Result<LossModel, Diagnostic> {
    let mut keys = Keys::of(value)?;
    let p = share(keys.need("p", "the probability that a good line turns bad: `p = \"1%\"`")?)?;
    let r = share(keys.need("r", "the probability that a bad line turns good: `r = \"10%\"`")?)?;
    // In Gilbert's and Elliott's words h and k are what passes in the bad and in the good state.
    let bad = keys.read("h", share)?.map_or(1.0, |passes| 1.0 - passes);
    let good = keys.read("k", share)?.map_or(0.0, |passes| 1.0 - passes);
    keys.finish()?;
    Ok(LossModel::Burst { p, r, bad, good })
}

fn reorder(value: TableValue<'_>) -> Result<Reorder, Diagnostic> {
    let mut keys = Keys::of(value)?;
    let which = share(keys.need("share", "how many: `share = \"1%\"`")?)?;
    let by = some_span(keys.need("delay", "how much longer they take: `delay = \"5ms\"`")?)?;
    keys.finish()?;
    Ok(Reorder { share: which, by })
}

/// A recording beside the scenario's file: its name, a table with how it is taken, or several joined.
fn trace(value: TableValue<'_>, beside: &Beside<'_>) -> Result<Trace, Diagnostic> {
    let DeValue::Table(_) = value.get_ref() else { return recorded(value, beside, &Taken::default()) };
    let mut keys = Keys::of(value)?;
    let place = keys.place();
    let scale = keys.read("scale", factor)?.unwrap_or(1.0);
    let skip = keys.read("skip", span)?.unwrap_or_default();
    let trace = match (keys.get("preset"), keys.get("join")) {
        (Some(name), None) => scaled(generated(name, &mut keys)?, skip, scale, &place)?,
        (None, Some(parts)) => scaled(joined(parts, beside)?, skip, scale, &place)?,
        (None, None) => from_file(&mut keys, (skip, scale), beside)?,
        (Some(_), Some(parts)) => {
            return Err(Diagnostic::new(
                parts.span(),
                "`join` beside `preset`",
                "name the preset in the list",
            ));
        }
    };
    let mut shaping = Shaping {
        length: keys.read("length", some_span)?,
        offset: keys.read("offset", span)?.unwrap_or_default(),
        ..Shaping::default()
    };
    if let Some(value) = keys.get("loop") {
        match value.get_ref() {
            DeValue::Boolean(begins_again) => shaping.is_lasting = !begins_again,
            _ => shaping.loops = number(value, 1, MAX_LOOPS)? as u32,
        }
    }
    keys.finish()?;
    shaping.of(trace).map_err(|why| Diagnostic::new(place, why, "take another part of it"))
}

/// A trace that has its recording already, cut and scaled.
fn scaled(
    trace: Trace,
    skip: Nanos,
    scale: f64,
    place: &std::ops::Range<usize>,
) -> Result<Trace, Diagnostic> {
    cut(trace, skip, scale).map_err(|why| Diagnostic::new(place.clone(), why, "skip less, or scale by less"))
}

/// Recordings one after the other.
fn joined(value: TableValue<'_>, beside: &Beside<'_>) -> Result<Trace, Diagnostic> {
    let parts = list(value)?;
    if parts.is_empty() || parts.len() > MAX_PARTS {
        let how = format!("write 1 to {MAX_PARTS} recordings: `join = [\"a.csv\", \"b.csv\"]`");
        return Err(Diagnostic::new(value.span(), "this is no list of recordings", how));
    }
    let traces = parts.iter().map(|part| trace(part, beside)).collect::<Result<Vec<_>, _>>()?;
    Trace::joined(&traces).map_err(|(at, why)| {
        Diagnostic::new(parts[at].span(), why, "join recordings that have the same: rates, delays")
    })
}

/// A recording of a file, with LeoReplayer's delays beside it if these are named.
fn from_file(
    keys: &mut Keys<'_>,
    (skip, scale): (Nanos, f64),
    beside: &Beside<'_>,
) -> Result<Trace, Diagnostic> {
    let remedy =
        "missing file: `file = \"lte.csv\"`, beside this one, `preset = \"lte/down\"`, or `join = […]`";
    let file = keys.need("file", remedy)?;
    let column = keys.read("column", |value| text(value).map(str::to_owned))?;
    let trace = recorded(file, beside, &Taken { column, scale, skip })?;
    let Some(name) = keys.get("delays") else { return Ok(trace) };
    let (path, content) = content(name, beside, "name LeoReplayer's file of delays beside this file")?;
    with_delays(trace, &content).map_err(|wrong| of_recording(name, &path, wrong))
}

fn factor(value: TableValue<'_>) -> Result<f64, Diagnostic> {
    let factor = plain(value)?.parse::<f64>().ok().filter(|factor| SCALES.contains(factor));
    factor.ok_or_else(|| {
        let how = "write one from 0.000001 to 1000000: `scale = 0.5`";
        Diagnostic::new(value.span(), "this is not a factor", how)
    })
}

/// One direction of a preset: `lte/down`.
fn generated(value: TableValue<'_>, keys: &mut Keys<'_>) -> Result<Trace, Diagnostic> {
    let seed = seed(keys)?;
    let name = text(value)?;
    let found = PresetDirection::named(name).map(|found| found.trace(seed));
    found.ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            format!("`{name}` is no direction of a preset"),
            format!("write one of {}, with /up or /down behind it", LinePreset::names()),
        )
    })
}

/// The seed of a preset's random numbers.
pub(super) fn seed(keys: &mut Keys<'_>) -> Result<u64, Diagnostic> {
    Ok(keys.read("seed", |value| number(value, 0, i64::MAX as u64))?.unwrap_or(USUAL_SEED))
}

fn recorded(name: TableValue<'_>, beside: &Beside<'_>, taken: &Taken) -> Result<Trace, Diagnostic> {
    let how =
        "name a recording beside this file: one of mahimahi's, seconds and Mbit/s, or a table with names";
    let (path, content) = content(name, beside, how)?;
    read(&content, taken).map_err(|wrong| of_recording(name, &path, wrong))
}

/// The text of a file that a value names.
fn content(name: TableValue<'_>, beside: &Beside<'_>, how: &str) -> Result<(PathBuf, String), Diagnostic> {
    let path = beside.join(text(name)?);
    match beside.text(&path) {
        Ok(content) => Ok((path, content)),
        Err(error) => Err(Diagnostic::new(name.span(), format!("{}: {error}", path.display()), how)),
    }
}

/// What is wrong with a recording, where it is named.
fn of_recording(name: TableValue<'_>, path: &Path, wrong: BadRecording) -> Diagnostic {
    Diagnostic::new(name.span(), format!("{}:{}: {}", path.display(), wrong.line, wrong.why), wrong.remedy)
}
