//! The words of hfsc: curves stand in two notations, and abbreviations are taken for the first word that fits.

use super::options::Reader;
use super::words::{Words, begins};
use crate::Refusal;
use crate::number::u16_in;
use crate::units::{parse_size, parse_time};
use tidegate_policy::{HfscClassParams, HfscParams, ServiceCurve};

/// Microseconds in a second.
const MICROS: f64 = 1e6;

pub(super) fn qdisc(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<HfscParams, Refusal> {
    let mut params = HfscParams::default();
    while let Some(word) = words.take() {
        if begins(word, "default") {
            if params.default != 0 {
                return Err(Refusal::new(1, "HFSC: Double \"default\"").at(words.last()).remedy("Give default once."));
            }
            let text = words.need()?;
            params.default = u16_in(text, 16).ok_or_else(|| {
                let remedy =
                    format!("default takes a class's minor number, in hexadecimal up to ffff; \"{text}\" is none.");
                Refusal::new(1, "HFSC: Illegal \"default\"").at(words.last()).remedy(remedy)
            })?;
        } else {
            return Err(unknown(reader, word, words.last()));
        }
    }
    Ok(params)
}

pub(super) fn class(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<HfscClassParams, Refusal> {
    let mut params = HfscClassParams::default();
    while let Some(word) = words.take() {
        let key = ["rt", "ls", "sc", "ul"].into_iter().find(|key| begins(word, key));
        let Some(key) = key else { return Err(unknown(reader, word, words.last())) };
        let curve = Some(curve(key, reader, words)?);
        match key {
            "rt" => params.rt = curve,
            "ls" => params.ls = curve,
            "ul" => params.ul = curve,
            _ => (params.rt, params.ls) = (curve, curve),
        }
    }
    if params == HfscClassParams::default() {
        let remedy = "Every class of hfsc needs rt, ls or sc: hfsc sc rate 1mbit ul rate 2mbit";
        return Err(Refusal::new(1, "HFSC: no parameters given").then(&reader.usage()).remedy(remedy));
    }
    if params.ul.is_some() && params.ls.is_none() {
        return Err(Refusal::new(1, "HFSC: Upper-limit Service Curve without Link-Share Service Curve")
            .then(&reader.usage())
            .remedy("ul limits what link sharing gives: say ls or sc as well."));
    }
    Ok(params)
}

fn unknown(reader: &Reader<'_>, word: &str, place: usize) -> Refusal {
    if begins(word, "help") {
        return Refusal { stderr: reader.usage(), code: 1, ..Refusal::default() };
    }
    let remedy = if reader.class {
        "A class of hfsc has curves: rt, ls, sc (both) and ul."
    } else {
        "hfsc itself knows only default."
    };
    Refusal::new(1, format!("HFSC: What is \"{word}\" ?")).then(&reader.usage()).at(place).remedy(remedy)
}

/// Why a notation does not fit.
enum Misfit {
    /// The words end.
    Incomplete(Refusal),
    /// These lines of tc's, perhaps none.
    Said(String),
}

impl From<Refusal> for Misfit {
    fn from(refusal: Refusal) -> Misfit {
        Misfit::Incomplete(refusal)
    }
}

fn illegal(name: &str, more: &str) -> Misfit {
    Misfit::Said(format!("{more}HFSC: Illegal \"{name}\"\n"))
}

/// A curve in either notation; tc tries the second where the first does not fit, and has complained about both by then.
fn curve(key: &str, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ServiceCurve, Refusal> {
    let place = words.place();
    if words.peek().is_none() {
        return Err(Refusal::incomplete().at(place));
    }
    let mut said = String::new();
    for notation in [by_slopes, by_bound] {
        let mut ahead = words.clone();
        match notation(reader, &mut ahead) {
            Ok(ServiceCurve { m1: 0, m2: 0, .. }) => {
                said.push_str("HFSC: Service Curve has two zero slopes\n");
                break;
            }
            Ok(curve) => {
                *words = ahead;
                return Ok(curve);
            }
            Err(Misfit::Incomplete(refusal)) => return Err(refusal),
            Err(Misfit::Said(lines)) => said.push_str(&lines),
        }
    }
    said.push_str(&format!("HFSC: Illegal \"{key}\""));
    Err(Refusal::new(1, said)
        .at(place)
        .remedy(format!("{key} takes {}.", tidegate_policy::spec::Takes::Curve.example())))
}

/// The value after a word, if the word stands here.
fn value<'w, T>(
    name: &str,
    words: &mut Words<'w>,
    read: impl Fn(&'w str) -> Result<T, String>,
) -> Result<Option<T>, Misfit> {
    if !words.peek().is_some_and(|word| begins(word, name)) {
        return Ok(None);
    }
    words.skip();
    read(words.need()?).map(Some).map_err(|more| illegal(name, &more))
}

/// The same, where another word must follow.
fn value_then<'w, T>(
    name: &str,
    words: &mut Words<'w>,
    read: impl Fn(&'w str) -> Result<T, String>,
) -> Result<Option<T>, Misfit> {
    let value = value(name, words, read)?;
    match (value.is_some(), words.peek()) {
        (true, None) => Err(Refusal::incomplete().at(words.place()).into()),
        _ => Ok(value),
    }
}

/// `[m1 RATE] [d TIME] m2 RATE`
fn by_slopes(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ServiceCurve, Misfit> {
    let rate = |text: &str| reader.rate32(text);
    let m1 = value_then("m1", words, rate)?.unwrap_or(0);
    let d_us = value_then("d", words, time)?.unwrap_or(0);
    let m2 = value("m2", words, rate)?.ok_or(Misfit::Said(String::new()))?;
    Ok(ServiceCurve { m1, d_us, m2 })
}

/// `[umax SIZE] [dmax TIME] rate RATE`: so many bytes within so much time, and a rate later on.
fn by_bound(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ServiceCurve, Misfit> {
    let size = |text: &str| parse_size(text).ok_or_else(String::new);
    let umax = value_then("umax", words, size)?.unwrap_or(0);
    let dmax = value_then("dmax", words, time)?.unwrap_or(0);
    let rate = value("rate", words, |text| reader.rate32(text))?.ok_or(Misfit::Said(String::new()))?;
    if umax != 0 && dmax == 0 {
        return Err(Misfit::Said("HFSC: umax given but dmax is zero.\n".into()));
    }
    let bytes = f64::from(umax) * MICROS;
    let slope = if dmax == 0 { 0.0 } else { (bytes / f64::from(dmax)).ceil() };
    if slope > f64::from(rate) {
        // tc keeps 32 bits.
        return Ok(ServiceCurve { m1: slope as u64 as u32, d_us: dmax, m2: rate });
    }
    if rate == 0 {
        // tc divides by it, and dies.
        return Err(Misfit::Incomplete(
            Refusal::new(136, "Floating point exception")
                .at(words.last())
                .remedy("A curve needs a rate: tc itself crashes over this one."),
        ));
    }
    Ok(ServiceCurve { m1: 0, d_us: (f64::from(dmax) - bytes / f64::from(rate)).ceil() as i64 as u32, m2: rate })
}

fn time(text: &str) -> Result<u32, String> {
    parse_time(text).ok_or_else(String::new)
}
