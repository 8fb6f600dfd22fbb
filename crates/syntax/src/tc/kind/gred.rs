//! gred.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::number::float_prefix;
use crate::tc::command_line::ShowFlags;
use crate::tc::early::{BANDWIDTH, PROBABILITY, Terms, computed, usual_burst};
use crate::tc::options::{Reader, Take, Values};
use crate::tc::show::{Entry, marks, probability};
use crate::tc::words::Words;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::spec::OptionSpec;
use tidegate_policy::{GRED_SETUP, GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup, QdiscParams};

pub(super) struct Gred;

impl Syntax for Gred {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        match words.peek() {
            None => Err(Refusal { stderr: reader.usage(), code: 1, ..Refusal::default() }
                .remedy("Begin with the table of virtual queues: gred setup vqs 3 default 1")),
            Some("setup" | "init") => {
                words.skip();
                setup(reader, words).map(|setup| Some(QdiscParams::Gred(GredParams::Setup(setup))))
            }
            Some(_) => {
                let queue = queue(reader, words, stderr)?;
                Ok(Some(QdiscParams::Gred(GredParams::Queue(Box::new(queue)))))
            }
        }
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Gred(params) = &dump.params {
            show(params, flags, entry);
        }
    }
}

const MAX_QUEUES: u32 = 16;

fn too_many(place: usize) -> Refusal {
    Refusal::new(1, format!("GRED: only {MAX_QUEUES} VQs are currently supported"))
        .at(place)
        .remedy("There can be 16 virtual queues, numbered from 0.")
}

/// The options of the table.
#[derive(Default)]
struct Setup {
    setup: GredSetup,
    default: Option<u32>,
}

impl Take for Setup {
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        let before = &self.setup;
        if option.key == "default" && before.vqs == 0 {
            return Err(Refusal::new(1, "\"default\" must be defined after \"vqs\"")
                .at(words.last())
                .remedy("Say how many queues there are first: gred setup vqs 3 default 1"));
        }
        let mut values = Values::default();
        reader.one(option, word, words, &mut values)?;
        let number = values.number(option.key).unwrap_or(0);
        match option.key {
            "vqs" if number > MAX_QUEUES => return Err(too_many(words.last())),
            "vqs" => self.setup.vqs = number,
            "default" if number >= self.setup.vqs => {
                return Err(Refusal::new(1, "\"default\" must be less than \"vqs\"")
                    .at(words.last())
                    .remedy(format!("There are {} queues, numbered from 0.", self.setup.vqs)));
            }
            "default" => self.default = Some(number),
            "grio" => self.setup.grio = true,
            "limit" => self.setup.limit = Some(number).filter(|limit| *limit > 0),
            "ecn" => self.setup.flags.ecn = true,
            _ => self.setup.flags.harddrop = true,
        }
        Ok(())
    }
}

fn setup(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<GredSetup, Refusal> {
    let mut setup = Setup::default();
    reader.each(GRED_SETUP, words, &mut setup)?;
    let Setup { setup: gred_setup, default } = setup;
    let default = default.filter(|_| gred_setup.vqs > 0).ok_or_else(|| {
        Refusal::new(1, "Illegal gred setup parameters")
            .remedy("vqs and default must be given: gred setup vqs 3 default 1")
    })?;
    Ok(GredSetup { default, ..gred_setup })
}

/// The options of a virtual queue.
#[derive(Default)]
struct Queue {
    values: Values,
    prio: u8,
}

impl Take for Queue {
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        match option.key {
            // It comes first, or not at all.
            "setup" => return Err(reader.unknown(word, reader.table()).at(words.last())),
            // tc takes what does not begin as a number for 0, and keeps eight bits.
            "prio" => self.prio = float_prefix(words.need()?).map_or(0, |(number, _)| number as i64 as u8),
            _ => reader.one(option, word, words, &mut self.values)?,
        }
        if option.key == "vq" && self.values.number("vq").is_some_and(|number| number >= MAX_QUEUES) {
            return Err(too_many(words.last()));
        }
        Ok(())
    }
}

fn queue(reader: &Reader<'_>, words: &mut Words<'_>, stderr: &mut String) -> Result<GredQueue, Refusal> {
    let mut queue = Queue::default();
    reader.each(reader.table(), words, &mut queue)?;
    compute(&queue, stderr)
}

fn compute(queue: &Queue, stderr: &mut String) -> Result<GredQueue, Refusal> {
    let given = |key: &str| queue.values.number(key).filter(|value| *value > 0);
    let needed = (queue.values.number("vq"), given("limit"), given("min"), given("max"), given("avpkt"));
    let (Some(vq), Some(limit), Some(min), Some(max), Some(avpkt)) = needed else {
        return Err(Refusal::new(1, "Required parameter (vq, limit, min, max, avpkt) is missing")
            .remedy("A virtual queue needs all of these: gred vq 1 limit 60k min 15k max 25k avpkt 1500"));
    };
    let burst = given("burst").unwrap_or_else(|| {
        let burst = usual_burst(min, max, avpkt);
        stderr.push_str(&format!("GRED: set burst to {burst}\n"));
        burst
    });
    let rate = queue.values.rate("bandwidth").filter(|rate| rate.0 > 0).unwrap_or_else(|| {
        stderr.push_str("GRED: set bandwidth to 10Mbit\n");
        BANDWIDTH
    });
    let probability = queue.values.fraction("probability").unwrap_or(PROBABILITY);
    let (min_bytes, max_bytes) = (min, max);
    let terms =
        Terms { name: "GRED", min, max, min_bytes, max_bytes, burst, avpkt, probability, rate: Some(rate) };
    let computed = computed(&terms, stderr)?;
    stderr.push_str(&computed.stderr);
    Ok(GredQueue {
        vq,
        prio: queue.prio,
        limit,
        curve: computed.curve,
        idle: computed.idle,
        // Sent even when none is set.
        flags: Some(GredFlags { ecn: queue.values.has("ecn"), harddrop: queue.values.has("harddrop") }),
    })
}

fn show(params: &GredParams, flags: &ShowFlags, entry: &mut Entry) {
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
        let mut one = Entry::by(flags.tc);
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
    let amount = entry.amount(dump.bytes as u32);
    entry.number("bytes", dump.bytes, &format!("({amount}) "));
}
