//! What the directions of a link are like.

use super::beside::Beside;
use crate::model::{BufferSize, LinkDirection};
use crate::presets::LinePreset;
use crate::recorded::{Taken, read};
use crate::tables::{
    Diagnostic, Keys, TableValue, number, plain, rate, share, size, size_or_time, some_span, span, text,
};
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

/// A recording beside the scenario's file: its name, or a table with how it is taken.
fn trace(value: TableValue<'_>, beside: &Beside<'_>) -> Result<Trace, Diagnostic> {
    let DeValue::Table(_) = value.get_ref() else { return recorded(value, beside, &Taken::default()) };
    let mut keys = Keys::of(value)?;
    if let Some(name) = keys.get("preset") {
        let trace = generated(name, &mut keys)?;
        keys.finish()?;
        return Ok(trace);
    }
    let file =
        keys.need("file", "missing file: `file = \"lte.csv\"`, beside this one, or `preset = \"lte/down\"`")?;
    let column = keys.read("column", |value| text(value).map(str::to_owned))?;
    let scale = keys.read("scale", |value| {
        let factor = plain(value)?.parse::<f64>().ok().filter(|factor| (1e-6..=1e6).contains(factor));
        factor.ok_or_else(|| {
            Diagnostic::new(
                value.span(),
                "this is not a factor",
                "write one from 0.000001 to 1000000: `scale = 0.5`",
            )
        })
    })?;
    let skip = keys.read("skip", span)?;
    keys.finish()?;
    let taken = Taken { column, scale: scale.unwrap_or(1.0), skip: skip.unwrap_or_default() };
    recorded(file, beside, &taken)
}

/// One direction of a preset: `lte/down`.
fn generated(value: TableValue<'_>, keys: &mut Keys<'_>) -> Result<Trace, Diagnostic> {
    let seed = seed(keys)?;
    let name = text(value)?;
    let found = name.rsplit_once('/').and_then(|(name, way)| Some((LinePreset::named(name)?, way)));
    match found {
        Some((preset, "up")) => Ok(preset.line(seed).up),
        Some((preset, "down")) => Ok(preset.line(seed).down),
        _ => Err(Diagnostic::new(
            value.span(),
            format!("`{name}` is no direction of a preset"),
            format!("write one of {}, with /up or /down behind it", LinePreset::names()),
        )),
    }
}

/// The seed of a preset's random numbers.
pub(super) fn seed(keys: &mut Keys<'_>) -> Result<u64, Diagnostic> {
    Ok(keys.read("seed", |value| number(value, 0, i64::MAX as u64))?.unwrap_or(1))
}

fn recorded(name: TableValue<'_>, beside: &Beside<'_>, taken: &Taken) -> Result<Trace, Diagnostic> {
    let path = beside.join(text(name)?);
    let content = beside.text(&path).map_err(|error| {
        let how =
            "name a recording beside this file: one of mahimahi's, seconds and Mbit/s, or a table with names";
        Diagnostic::new(name.span(), format!("{}: {error}", path.display()), how)
    })?;
    read(&content, taken).map_err(|wrong| {
        Diagnostic::new(
            name.span(),
            format!("{}:{}: {}", path.display(), wrong.line, wrong.why),
            wrong.remedy,
        )
    })
}
