//! The values read become a kind's parameters: one function per kind.

use super::aqm;
use super::options::{Reader, Values};
use super::words::Words;
use super::{cake, dualpi2, ets, fq, fq_pie, gred, hfsc, hhf, netem, skbprio};
use crate::units::{default_burst, limit_of_latency, ticks_of};
use crate::{Env, Refusal};
use tidegate_policy::spec::{KINDS, KindSpec, Refused};
use tidegate_policy::{
    ClassParams, CodelParams, DrrClassParams, FifoParams, FqCodelParams, HtbClassParams, HtbParams, PrioParams,
    QdiscParams, QfqClassParams, RateSpec, SfqParams, TbfParams,
};

/// Reads the options of a qdisc of this kind. `None`: tc sends no parameters.
/// What tc says on stderr though it goes on is added to `stderr`.
pub(super) fn qdisc(
    kind: &str,
    dev: &str,
    env: &Env,
    words: &mut Words<'_>,
    stderr: &mut String,
) -> Result<Option<QdiscParams>, Refusal> {
    if let Some(refused) = Refused::find(kind) {
        return Err(not_built(refused, words.last()));
    }
    let Some(spec) = KindSpec::find(kind) else { return no_table(kind, words).map(|()| None) };
    let Some(table) = spec.qdisc else {
        return match words.peek() {
            None => Ok(None),
            Some(_) => Err(Refusal::new(255, format!("qdisc '{kind}' does not support option parsing"))
                .at(words.place())
                .remedy(format!("{kind} has nothing to set: write it alone."))),
        };
    };
    let reader = Reader { spec, dev, env, class: false };
    if let Some(params) = read_alone(kind, &reader, words, stderr)? {
        return Ok(Some(params));
    }
    let values = reader.read(table, words)?;
    Ok(match kind {
        "pfifo" | "bfifo" | "pfifo_head_drop" => {
            values.number("limit").map(|limit| QdiscParams::Fifo(FifoParams { limit: Some(limit) }))
        }
        "prio" => Some(QdiscParams::Prio(prio(&values))),
        "tbf" => Some(QdiscParams::Tbf(tbf(&values, &reader)?)),
        "htb" => Some(QdiscParams::Htb(htb(&values)?)),
        // Without options tc sends none, so a `change` changes nothing instead of being refused.
        "sfq" if values.0.is_empty() => None,
        "sfq" => Some(QdiscParams::Sfq(SfqParams { red: aqm::sfq_red(&values, stderr)?, ..sfq(&values) })),
        "codel" => Some(QdiscParams::Codel(codel(&values))),
        "fq_codel" => Some(QdiscParams::FqCodel(fq_codel(&values))),
        "red" => Some(QdiscParams::Red(aqm::red(&values, stderr)?)),
        "choke" => Some(QdiscParams::Choke(aqm::choke(&values, stderr)?)),
        "sfb" => Some(QdiscParams::Sfb(aqm::sfb(&values))),
        "pie" => Some(QdiscParams::Pie(aqm::pie(&values))),
        "dualpi2" => Some(QdiscParams::DualPi2(dualpi2::read(&values, stderr)?)),
        "fq" => Some(QdiscParams::Fq(fq::qdisc(&values))),
        "fq_pie" => Some(QdiscParams::FqPie(fq_pie::qdisc(&values))),
        "hhf" => Some(QdiscParams::Hhf(hhf::qdisc(&values))),
        // drr and qfq: nothing to say.
        _ => None,
    })
}

/// Kinds whose words fit no table.
fn read_alone(
    kind: &str,
    reader: &Reader<'_>,
    words: &mut Words<'_>,
    stderr: &mut String,
) -> Result<Option<QdiscParams>, Refusal> {
    Ok(Some(match kind {
        "hfsc" => QdiscParams::Hfsc(hfsc::qdisc(reader, words)?),
        "cake" => QdiscParams::Cake(Box::new(cake::params(reader, words)?)),
        "ets" => QdiscParams::Ets(ets::qdisc(reader, words)?),
        "gred" => QdiscParams::Gred(gred::qdisc(reader, words, stderr)?),
        "netem" => QdiscParams::Netem(Box::new(netem::qdisc(reader, words)?)),
        "skbprio" => QdiscParams::Skbprio(skbprio::qdisc(reader, words)?),
        _ => return Ok(None),
    }))
}

/// Reads the options of a class of this kind.
pub(super) fn class(kind: &str, dev: &str, env: &Env, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
    let place = words.last();
    let classless = || {
        Refusal::new(1, format!("Error: Qdisc \"{kind}\" is classless."))
            .at(place)
            .remedy("Classes are made by hand for htb, hfsc, drr and qfq; those of ets can be changed.")
    };
    if matches!(kind, "cbq" | "dsmark") {
        return Err(later("class", kind, place));
    }
    let spec = KindSpec::find(kind).ok_or_else(classless)?;
    let table = spec.class.ok_or_else(classless)?;
    let reader = Reader { spec, dev, env, class: true };
    if kind == "ets" {
        return ets::class(&reader, words).map(ClassParams::Ets);
    }
    if kind == "hfsc" {
        return hfsc::class(&reader, words).map(ClassParams::Hfsc);
    }
    let values = reader.read(table, words)?;
    match kind {
        "htb" => Ok(ClassParams::Htb(htb_class(&values)?)),
        "drr" => Ok(ClassParams::Drr(DrrClassParams { quantum: values.number("quantum") })),
        "qfq" => {
            Ok(ClassParams::Qfq(QfqClassParams { weight: values.number("weight"), maxpkt: values.number("maxpkt") }))
        }
        _ => Err(classless()),
    }
}

/// The refusal of a kind that is not built: in the kernel's words where it would refuse too.
fn not_built(refused: &Refused, place: usize) -> Refusal {
    let Refused { name, why, instead, .. } = refused;
    let refusal = match refused.answer {
        Some(answer) => Refusal::new(2, answer),
        None => Refusal::new(1, format!("tidegate: qdisc \"{name}\" is not supported")),
    };
    refusal.at(place).remedy(format!("{name} is not built: {why}. Instead, {instead}."))
}

/// The refusal of what tc knows and this version does not.
pub(super) fn later(object: &str, name: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("tidegate: {object} \"{name}\" is not supported in this version"))
        .at(place)
        .remedy("tc would have accepted this word; the command was not carried out.")
}

fn no_table(kind: &str, words: &Words<'_>) -> Result<(), Refusal> {
    let Some(option) = words.peek() else { return Ok(()) };
    if matches!(kind, "ingress" | "clsact") {
        return Err(Refusal::new(1, format!("What is \"{option}\"?"))
            .then(&format!("{kind}: takes no options\n"))
            .at(words.place()));
    }
    let names: Vec<_> = KINDS.iter().map(|spec| spec.name).collect();
    let remedy = match crate::nearest(kind, names.iter().copied()) {
        Some(name) => format!("There is no kind \"{kind}\"; did you mean {name}?"),
        None => format!("There is no kind \"{kind}\"; this version knows {}.", names.join(", ")),
    };
    Err(Refusal::new(1, format!("Unknown qdisc \"{kind}\", hence option \"{option}\" is unparsable"))
        .at(words.last())
        .remedy(remedy))
}

fn prio(values: &Values) -> PrioParams {
    let mut priomap = PrioParams::MAP;
    for (slot, band) in priomap.iter_mut().zip(values.map("priomap").unwrap_or(&[])) {
        *slot = *band;
    }
    PrioParams { bands: values.signed("bands").unwrap_or(3) as u32, priomap }
}

fn rate_spec(values: &Values, rate: &str) -> RateSpec {
    RateSpec {
        rate: values.rate(rate).unwrap_or_default(),
        overhead: values.number("overhead").unwrap_or(0) as u16,
        mpu: values.number("mpu").unwrap_or(0) as u16,
        linklayer: values.layer("linklayer").unwrap_or_default(),
    }
}

fn tbf(values: &Values, reader: &Reader<'_>) -> Result<TbfParams, Refusal> {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let rate = rate_spec(values, "rate");
    let burst = given("burst").unwrap_or(0);
    let peak = values.rate("peakrate").filter(|rate| rate.0 > 0).map(|_| rate_spec(values, "peakrate"));
    let mtu = given("mtu").unwrap_or(0);
    let mut missing = Vec::new();
    if rate.rate.0 == 0 {
        missing.push("tbf: the \"rate\" parameter is mandatory.");
    }
    if burst == 0 {
        missing.push("tbf: the \"burst\" parameter is mandatory.");
    }
    if peak.is_some() && mtu == 0 {
        missing.push("tbf: when \"peakrate\" is specified, \"mtu\" must also be specified.");
    }
    if given("limit").is_none() && given("latency").is_none() {
        missing.push("tbf: either \"limit\" or \"latency\" is required.");
    }
    if !missing.is_empty() {
        return Err(Refusal::new(1, missing.join("\n"))
            .then(&reader.usage())
            .remedy("A token bucket needs rate, burst, and limit or latency: tbf rate 1mbit burst 10k latency 50ms"));
    }
    let limit = given("limit").unwrap_or_else(|| {
        let latency = given("latency").unwrap_or(0);
        limit_of_latency(&rate, burst, peak.as_ref().map(|peak| (peak, mtu)), latency)
    });
    Ok(TbfParams {
        rate,
        peak,
        limit,
        burst,
        peak_burst: if peak.is_some() { mtu } else { 0 },
        buffer: ticks_of(rate.rate, burst),
        peak_buffer: peak.map_or_else(Default::default, |peak| ticks_of(peak.rate, mtu)),
    })
}

fn htb(values: &Values) -> Result<HtbParams, Refusal> {
    if values.has("offload") {
        return Err(Refusal::new(2, "Error: hw-tc-offload ethtool feature flag must be on.")
            .remedy("No device of tidegate shapes in hardware: leave `offload` out."));
    }
    Ok(HtbParams {
        default: values.number("default").unwrap_or(0),
        r2q: values.number("r2q").unwrap_or(10),
        // The greatest number is what tc means by none given.
        direct_qlen: values.number("direct_qlen").filter(|packets| *packets != u32::MAX),
    })
}

fn htb_class(values: &Values) -> Result<HtbClassParams, Refusal> {
    let rate = rate_spec(values, "rate");
    if rate.rate.0 == 0 {
        return Err(Refusal::new(1, "\"rate\" is required.")
            .remedy("Every class of htb needs the rate it is sure of, at least 8bit: htb rate 1mbit ceil 2mbit"));
    }
    let ceil = match values.rate("ceil") {
        Some(ceil) if ceil.0 > 0 => RateSpec { rate: ceil, ..rate },
        _ => rate,
    };
    let mtu = values.number("mtu").unwrap_or(1600);
    let burst = |key: &str, spec: &RateSpec| {
        values.number(key).filter(|bytes| *bytes > 0).unwrap_or_else(|| default_burst(spec.rate, mtu))
    };
    Ok(HtbClassParams {
        rate,
        ceil,
        buffer: ticks_of(rate.rate, burst("burst", &rate)),
        cbuffer: ticks_of(ceil.rate, burst("cburst", &ceil)),
        quantum: values.number("quantum").unwrap_or(0),
        prio: values.number("prio").unwrap_or(0),
    })
}

fn sfq(values: &Values) -> SfqParams {
    SfqParams {
        quantum: values.number("quantum").unwrap_or(0),
        perturb: values.signed("perturb").unwrap_or(0),
        limit: values.number("limit").unwrap_or(0),
        divisor: values.number("divisor").unwrap_or(0),
        flows: values.number("flows").unwrap_or(0),
        depth: values.number("depth").unwrap_or(0),
        headdrop: values.has("headdrop"),
        red: None,
    }
}

/// The last of `ecn` and `noecn`.
fn ecn(values: &Values) -> Option<bool> {
    values.0.iter().rev().find_map(|(key, _)| match *key {
        "ecn" => Some(true),
        "noecn" => Some(false),
        _ => None,
    })
}

/// 0 is not sent, so the kernel's value stays.
fn unless_zero(values: &Values, key: &str) -> Option<u32> {
    values.number(key).filter(|value| *value > 0)
}

fn codel(values: &Values) -> CodelParams {
    CodelParams {
        limit: unless_zero(values, "limit"),
        target_us: unless_zero(values, "target"),
        interval_us: unless_zero(values, "interval"),
        ecn: ecn(values),
        ce_threshold_us: values.number("ce_threshold").filter(|us| *us != u32::MAX),
    }
}

fn fq_codel(values: &Values) -> FqCodelParams {
    FqCodelParams {
        limit: unless_zero(values, "limit"),
        flows: unless_zero(values, "flows"),
        quantum: unless_zero(values, "quantum"),
        target_us: unless_zero(values, "target"),
        interval_us: unless_zero(values, "interval"),
        ecn: ecn(values),
        ce_threshold_us: values.number("ce_threshold").filter(|us| *us != u32::MAX),
        ce_selector: values.selector("ce_threshold_selector"),
        memory_limit: values.number("memory_limit").filter(|bytes| *bytes != u32::MAX),
        drop_batch: unless_zero(values, "drop_batch"),
    }
}
