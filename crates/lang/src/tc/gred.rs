//! The words of gred.

use super::ShowFlags;
use super::aqm::{BANDWIDTH, PROBABILITY, computed, usual_burst};
use super::options::Reader;
use super::red::Terms;
use super::show::Entry;
use super::show_qdisc::{marks, probability};
use super::words::Words;
use crate::Refusal;
use crate::json::Json;
use crate::number::{float_prefix, u32_in};
use crate::units::{parse_size, print_size};
use tidegate_packet::Rate;
use tidegate_policy::{GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup};

const MAX_QUEUES: u32 = 16;

pub(super) fn qdisc(reader: &Reader<'_>, words: &mut Words<'_>, stderr: &mut String) -> Result<GredParams, Refusal> {
    match words.peek() {
        None => Err(Refusal { stderr: reader.usage(), code: 1, ..Refusal::default() }
            .remedy("Begin with the table of virtual queues: gred setup vqs 3 default 1")),
        Some("setup" | "init") => {
            words.skip();
            setup(reader, words).map(GredParams::Setup)
        }
        Some(_) => queue(reader, words, stderr).map(|queue| GredParams::Queue(Box::new(queue))),
    }
}

fn illegal(name: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("Illegal \"{name}\"")).at(place).remedy(format!("The value of {name} cannot be read."))
}

fn unknown(reader: &Reader<'_>, word: &str, place: usize) -> Refusal {
    if word == "help" {
        return Refusal { stderr: reader.usage(), code: 1, ..Refusal::default() };
    }
    Refusal::new(1, format!("What is \"{word}\"?"))
        .then(&reader.usage())
        .at(place)
        .remedy("gred begins with `gred setup vqs N default N`; then each queue is set up with `gred vq N limit …`.")
}

fn too_many(place: usize) -> Refusal {
    Refusal::new(1, format!("GRED: only {MAX_QUEUES} VQs are currently supported"))
        .at(place)
        .remedy("There can be 16 virtual queues, numbered from 0.")
}

fn setup(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<GredSetup, Refusal> {
    let mut setup = GredSetup::default();
    let mut default = None;
    while let Some(word) = words.take() {
        match word {
            "vqs" | "DPs" => {
                setup.vqs = u32_in(words.need()?, 10).ok_or_else(|| illegal("vqs", words.last()))?;
                if setup.vqs > MAX_QUEUES {
                    return Err(too_many(words.last()));
                }
            }
            "default" => {
                if setup.vqs == 0 {
                    return Err(Refusal::new(1, "\"default\" must be defined after \"vqs\"")
                        .at(words.last())
                        .remedy("Say how many queues there are first: gred setup vqs 3 default 1"));
                }
                let number = u32_in(words.need()?, 10).ok_or_else(|| illegal("default", words.last()))?;
                if number >= setup.vqs {
                    return Err(Refusal::new(1, "\"default\" must be less than \"vqs\"")
                        .at(words.last())
                        .remedy(format!("There are {} queues, numbered from 0.", setup.vqs)));
                }
                default = Some(number);
            }
            "grio" => setup.grio = true,
            "limit" => {
                let limit = parse_size(words.need()?).ok_or_else(|| illegal("limit", words.last()))?;
                setup.limit = Some(limit).filter(|limit| *limit > 0);
            }
            "ecn" => setup.flags.ecn = true,
            "harddrop" => setup.flags.harddrop = true,
            _ => return Err(unknown(reader, word, words.last())),
        }
    }
    setup.default = default.filter(|_| setup.vqs > 0).ok_or_else(|| {
        Refusal::new(1, "Illegal gred setup parameters")
            .remedy("vqs and default must be given: gred setup vqs 3 default 1")
    })?;
    Ok(setup)
}

/// What people say of a queue.
#[derive(Default)]
struct Said {
    vq: Option<u32>,
    prio: u8,
    limit: u32,
    min: u32,
    max: u32,
    avpkt: u32,
    burst: u32,
    probability: Option<f64>,
    rate: Option<Rate>,
    flags: GredFlags,
}

fn queue(reader: &Reader<'_>, words: &mut Words<'_>, stderr: &mut String) -> Result<GredQueue, Refusal> {
    let mut said = Said::default();
    while let Some(word) = words.take() {
        let size = |words: &mut Words<'_>| parse_size(words.need()?).ok_or_else(|| illegal(word, words.last()));
        match word {
            "limit" => said.limit = size(words)?,
            "min" => said.min = size(words)?,
            "max" => said.max = size(words)?,
            "avpkt" => said.avpkt = size(words)?,
            "vq" | "DP" => {
                let number = u32_in(words.need()?, 10).ok_or_else(|| illegal("vq", words.last()))?;
                if number >= MAX_QUEUES {
                    return Err(too_many(words.last()));
                }
                said.vq = Some(number);
            }
            "burst" => said.burst = u32_in(words.need()?, 10).ok_or_else(|| illegal("burst", words.last()))?,
            // tc takes what does not begin as a number for 0, and keeps eight bits.
            "prio" => said.prio = float_prefix(words.need()?).map_or(0, |(number, _)| number as i64 as u8),
            "probability" => {
                let number = float_prefix(words.need()?).ok_or_else(|| illegal("probability", words.last()))?;
                said.probability = Some(number.0);
            }
            "bandwidth" => {
                let rate = reader.rate32(words.need()?);
                let rate =
                    rate.map_err(|more| Refusal::new(1, format!("{more}Illegal \"bandwidth\"")).at(words.last()))?;
                said.rate = Some(Rate(rate.into())).filter(|rate| rate.0 > 0);
            }
            "ecn" => said.flags.ecn = true,
            "harddrop" => said.flags.harddrop = true,
            _ => return Err(unknown(reader, word, words.last())),
        }
    }
    compute(said, stderr)
}

fn compute(said: Said, stderr: &mut String) -> Result<GredQueue, Refusal> {
    let complete = said.limit > 0 && said.min > 0 && said.max > 0 && said.avpkt > 0;
    let Some(vq) = said.vq.filter(|_| complete) else {
        return Err(Refusal::new(1, "Required parameter (vq, limit, min, max, avpkt) is missing")
            .remedy("A virtual queue needs all of these: gred vq 1 limit 60k min 15k max 25k avpkt 1500"));
    };
    let mut burst = said.burst;
    if burst == 0 {
        burst = usual_burst(said.min, said.max, said.avpkt);
        stderr.push_str(&format!("GRED: set burst to {burst}\n"));
    }
    let rate = said.rate.unwrap_or_else(|| {
        stderr.push_str("GRED: set bandwidth to 10Mbit\n");
        BANDWIDTH
    });
    let terms = Terms {
        name: "GRED",
        min: said.min,
        max: said.max,
        min_bytes: said.min,
        max_bytes: said.max,
        burst,
        avpkt: said.avpkt,
        probability: said.probability.unwrap_or(PROBABILITY),
        rate: Some(rate),
    };
    let computed = computed(&terms, stderr)?;
    stderr.push_str(&computed.said);
    Ok(GredQueue {
        vq,
        prio: said.prio,
        limit: said.limit,
        curve: computed.curve,
        idle: computed.idle,
        // Sent even when none is set.
        flags: Some(said.flags),
    })
}

pub(super) fn show(params: &GredParams, flags: &ShowFlags, entry: &mut Entry) {
    let GredParams::InForce(setup, queues) = params else { return };
    entry.number("dp_cnt", setup.vqs, &format!("vqs {} ", setup.vqs));
    entry.number("dp_default", setup.default, &format!("default {} ", setup.default));
    if setup.grio {
        entry.say("grio ");
    }
    entry.member("grio", Json::Bool(setup.grio));
    entry.size("limit", setup.limit.unwrap_or(0), "limit {} ");
    red_flags(setup.flags, entry);
    let mut members = Vec::new();
    for queue in queues {
        let mut one = Entry::new();
        show_queue(queue, flags, &mut one);
        entry.say(&one.text);
        members.push(Json::Object(one.members));
    }
    entry.member("vqs", Json::List(members));
}

fn red_flags(flags: GredFlags, entry: &mut Entry) {
    marks(&[("ecn", flags.ecn), ("harddrop", flags.harddrop), ("adaptive", false), ("nodrop", false)], entry);
}

fn show_queue(dump: &GredQueueDump, flags: &ShowFlags, entry: &mut Entry) {
    let queue = &dump.queue;
    entry.number("vq", queue.vq, &format!("\n vq {} ", queue.vq));
    entry.number("prio", queue.prio, &format!("prio {} ", queue.prio));
    for (key, value) in [("limit", queue.limit), ("min", queue.curve.min), ("max", queue.curve.max)] {
        entry.size(key, value, &format!("{key} {{}} "));
    }
    red_flags(queue.flags.unwrap_or_default(), entry);
    if flags.details {
        entry.number("ewma", queue.curve.wlog, &format!("ewma {} ", queue.curve.wlog));
        probability(queue.curve.max_p, entry);
        entry.number("Scell_log", queue.curve.scell_log, &format!("Scell_log {} ", queue.curve.scell_log));
    }
    if flags.stats {
        show_counters(dump, entry);
    }
}

fn show_counters(dump: &GredQueueDump, entry: &mut Entry) {
    entry.size("qave", dump.average, "\n  Queue size: average {} ");
    entry.size("backlog", dump.backlog, "current {} ");
    for (key, before, value) in [
        ("forced_drop", "\n  Dropped packets: forced", dump.forced_drop),
        ("prob_drop", "early", dump.prob_drop),
        ("pdrop", "pdrop", dump.pdrop),
        ("other", "other", 0),
        ("forced_mark", "\n  Marked packets: forced", dump.forced_mark),
        ("prob_mark", "early", dump.prob_mark),
        ("packets", "\n  Total packets:", dump.packets),
    ] {
        entry.number(key, value, &format!("{before} {value} "));
    }
    entry.number("bytes", dump.bytes, &format!("({}) ", print_size(dump.bytes as u32)));
}
