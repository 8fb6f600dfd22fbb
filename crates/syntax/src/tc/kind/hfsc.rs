//! hfsc: curves have two notations.

use super::row::Syntax;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Take};
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::units::{parse_size, print_rate, print_time};
use crate::{Refusal, TcChange};
use tidegate_packet::Rate;
use tidegate_policy::dump::{ClassDump, QdiscDump, Xstats};
use tidegate_policy::spec::{OptionSpec, ValueKind};
use tidegate_policy::{ClassParams, HfscClassParams, HfscParams, QdiscParams, ServiceCurve};

pub(super) struct Hfsc;

impl Syntax for Hfsc {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        let default = values.number("default").unwrap_or(0) as u16;
        Ok(Some(QdiscParams::Hfsc(HfscParams { default })))
    }

    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        read_class(reader, words).map(ClassParams::Hfsc)
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Hfsc(HfscParams { default: default @ 1.. }) = &dump.params {
            let lead = if flags.tc.has(TcChange::HfscWords) { " default 0x" } else { "default " };
            entry.say(&format!("{lead}{default:x} "));
            entry.member("default", Json::text(format!("{default:#x}")));
        }
    }

    fn show_class(&self, dump: &ClassDump, flags: &ShowFlags, entry: &mut Entry) {
        if let ClassParams::Hfsc(params) = &dump.params {
            show_class(params, flags, entry);
        }
    }

    fn show_class_stats(&self, dump: &ClassDump, flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::HfscClass { work, rtwork, period, level } = &dump.xstats {
            entry.number("period", *period, &format!(" period {period} "));
            for (name, bytes) in [("work", work), ("rtwork", rtwork)] {
                if *bytes != 0 {
                    entry.number(name, *bytes, &format!("{name} {bytes} bytes "));
                }
            }
            let lead = if flags.tc.has(TcChange::HfscWords) { " " } else { "" };
            entry.number("level", *level, &format!("{lead}level {level} \n\n"));
        }
    }
}

/// The curves of a class.
#[derive(Default)]
struct Curves(HfscClassParams);

impl Take for Curves {
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        _word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        let curve = Some(curve(option.key, reader, words)?);
        match option.key {
            "rt" => self.0.rt = curve,
            "ls" => self.0.ls = curve,
            "ul" => self.0.ul = curve,
            _ => (self.0.rt, self.0.ls) = (curve, curve),
        }
        Ok(())
    }
}

fn read_class(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<HfscClassParams, Refusal> {
    let mut curves = Curves::default();
    reader.each(reader.table(), words, &mut curves)?;
    let Curves(params) = curves;
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

/// Microseconds in a second.
const MICROS: f64 = 1e6;

/// Why a notation does not fit.
enum Misfit {
    /// The words end.
    Incomplete(Refusal),
    /// These lines of tc's, perhaps none, about the word at this place.
    Printed(String, usize),
}

impl From<Refusal> for Misfit {
    fn from(refusal: Refusal) -> Misfit {
        Misfit::Incomplete(refusal)
    }
}

fn illegal(name: &str, more: &str, place: usize) -> Misfit {
    Misfit::Printed(format!("{more}HFSC: Illegal \"{name}\"\n"), place)
}

/// A curve in either notation; tc tries the second where the first does not fit, and has complained about
/// both by then.
fn curve(key: &str, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ServiceCurve, Refusal> {
    let mut place = words.place();
    if words.peek().is_none() {
        return Err(Refusal::incomplete().at(place));
    }
    let mut text = String::new();
    for notation in [by_slopes, by_bound] {
        let mut ahead = words.clone();
        match notation(reader, &mut ahead) {
            Ok(ServiceCurve { m1: 0, m2: 0, .. }) => {
                text.push_str("HFSC: Service Curve has two zero slopes\n");
                break;
            }
            Ok(curve) => {
                *words = ahead;
                return Ok(curve);
            }
            Err(Misfit::Incomplete(refusal)) => return Err(refusal),
            // The notation that was meant is the one that reads further.
            Err(Misfit::Printed(lines, at)) => {
                text.push_str(&lines);
                place = place.max(at);
            }
        }
    }
    text.push_str(&format!("HFSC: Illegal \"{key}\""));
    Err(Refusal::new(1, text).at(place).remedy(format!("{key} takes {}.", ValueKind::Curve.example())))
}

/// The value after a keyword, if the keyword follows.
fn value<'w, T>(
    name: &str,
    words: &mut Words<'w>,
    read: impl Fn(&'w str) -> Result<T, String>,
) -> Result<Option<T>, Misfit> {
    if !words.peek().is_some_and(|word| begins(word, name)) {
        return Ok(None);
    }
    words.skip();
    read(words.need()?).map(Some).map_err(|more| illegal(name, &more, words.last()))
}

/// The value after a keyword that another word must follow.
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
    let d_us = value_then("d", words, |text| reader.time(text))?.unwrap_or(0);
    let m2 = value("m2", words, rate)?.ok_or(Misfit::Printed(String::new(), words.place()))?;
    Ok(ServiceCurve { m1, d_us, m2 })
}

/// `[umax SIZE] [dmax TIME] rate RATE`: so many bytes within so much time, and a rate later on.
fn by_bound(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ServiceCurve, Misfit> {
    let size = |text: &str| parse_size(text).ok_or_else(String::new);
    let umax = value_then("umax", words, size)?.unwrap_or(0);
    let dmax = value_then("dmax", words, |text| reader.time(text))?.unwrap_or(0);
    let rate = value("rate", words, |text| reader.rate32(text))?
        .ok_or(Misfit::Printed(String::new(), words.place()))?;
    if umax != 0 && dmax == 0 {
        return Err(Misfit::Printed("HFSC: umax given but dmax is zero.\n".into(), words.last()));
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
    Ok(ServiceCurve {
        m1: 0,
        d_us: (f64::from(dmax) - bytes / f64::from(rate)).ceil() as i64 as u32,
        m2: rate,
    })
}

/// Both curves in one word where they are the same.
fn show_class(params: &HfscClassParams, flags: &ShowFlags, entry: &mut Entry) {
    let HfscClassParams { rt, ls, ul } = params;
    let curves = if rt.is_some() && rt == ls {
        [("sc", rt), ("ul", ul), ("", &None)]
    } else {
        [("rt", rt), ("ls", ls), ("ul", ul)]
    };
    for (name, curve) in curves {
        if let Some(curve) = curve {
            service_curve(name, curve, flags, entry);
        }
    }
}

fn service_curve(name: &'static str, curve: &ServiceCurve, flags: &ShowFlags, entry: &mut Entry) {
    let slope = |m: u32| print_rate(Rate(m.into()), flags.iec);
    let ServiceCurve { m1, d_us, m2 } = curve;
    entry.say(&format!("{name} m1 {} d {} m2 {} ", slope(*m1), print_time(*d_us), slope(*m2)));
    let members = vec![("m1", Json::number(m1)), ("d", Json::number(d_us)), ("m2", Json::number(m2))];
    entry.member(name, Json::Object(members));
}
