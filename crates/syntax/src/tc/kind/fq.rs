//! fq.

use super::row::Syntax;
use crate::Refusal;
use crate::TcChange;
use crate::json::Json;
use crate::number::{i32_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Take, Values};
use crate::tc::show::{Entry, time};
use crate::tc::spelling::{ListedValue, Spelling};
use crate::tc::words::Words;
use crate::units::{print_nanos, print_rate};
use tidegate_packet::{LinuxChange, Rate};
use tidegate_policy::dump::{FqStats, QdiscDump, Xstats};
use tidegate_policy::spec::OptionSpec;
use tidegate_policy::{FQ_NEWER, FqBands, FqParams, QdiscParams};

pub(super) struct Fq;

impl Syntax for Fq {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let is_newer = reader.env.tc.has(TcChange::FqWords) || reader.env.linux.has(LinuxChange::FqBands);
        let mut given = FqWords::default();
        reader.each(if is_newer { FQ_NEWER } else { reader.table() }, words, &mut given)?;
        let FqWords { values, priomap, weights } = given;
        Ok(Some(QdiscParams::Fq(FqParams { priomap, weights, ..read(&values) })))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Fq(params) = &dump.params {
            show(params, flags, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Fq(stats) = &dump.xstats {
            show_stats(stats, flags, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling = Spelling {
            newer: &[
                ("bands", "3"),
                ("priomap", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
                ("weights", "589824 196608 65536"),
                ("offload_horizon", "0us"),
            ],
            ..Spelling::SAME
        };
        &SPELLING
    }

    fn member(&self, key: &str, value: &ListedValue, _: &[(String, ListedValue)]) -> Option<Vec<String>> {
        match (key, value) {
            ("pacing", ListedValue::Bool(false)) => Some(vec!["nopacing".to_owned()]),
            _ => None,
        }
    }
}

/// The options read so far.
#[derive(Default)]
struct FqWords {
    values: Values,
    priomap: Option<[u8; 16]>,
    weights: Option<[i32; FqBands::COUNT]>,
}

impl Take for FqWords {
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        match option.key {
            "bands" => {
                refuse_again("bands", self.priomap.is_some(), words)?;
                self.priomap = Some(priomap(words)?);
            }
            "weights" => {
                refuse_again("weights", self.weights.is_some(), words)?;
                self.weights = Some(weights(words)?);
            }
            _ => return reader.one(option, word, words, &mut self.values),
        }
        Ok(())
    }
}

fn refuse_again(name: &str, given: bool, words: &Words<'_>) -> Result<(), Refusal> {
    match given {
        false => Ok(()),
        true => Err(Refusal::new(1, format!("Duplicate \"{name}\""))
            .at(words.last())
            .remedy(format!("Give {name} once."))),
    }
}

/// What follows `bands`: `3 priomap` and sixteen bands.
fn priomap(words: &mut Words<'_>) -> Result<[u8; 16], Refusal> {
    const REMEDY: &str =
        "There are three bands: bands 3 priomap and the band, 0 to 2, of each of 16 priorities.";
    let refusal = |line: String, words: &Words<'_>| Refusal::new(1, line).at(words.last()).remedy(REMEDY);
    match u32_in(words.need()?, 10) {
        Some(3) => {}
        Some(_) => return Err(refusal("\"bands\" must be 3".to_owned(), words)),
        None => return Err(refusal("Illegal \"bands\"".to_owned(), words)),
    }
    if words.need()? != "priomap" {
        return Err(refusal("\"priomap\" expected".to_owned(), words));
    }
    let mut map = [0; 16];
    for band in &mut map {
        let Some(word) = words.take() else {
            return Err(refusal("Not enough elements in priomap".to_owned(), words));
        };
        *band = match u32_in(word, 10) {
            Some(number @ 0..=2) => number as u8,
            Some(number) => return Err(refusal(format!("\"priomap\" element {number} too big"), words)),
            None => {
                let line = "Illegal \"priomap\" element, number in [0..2] expected";
                return Err(refusal(line.to_owned(), words));
            }
        };
    }
    Ok(map)
}

/// What follows `weights`.
fn weights(words: &mut Words<'_>) -> Result<[i32; FqBands::COUNT], Refusal> {
    let refusal = |line: String, words: &Words<'_>| {
        Refusal::new(1, line)
            .at(words.last())
            .remedy(format!("weights takes three numbers of bytes, each at least {}.", FqBands::LEAST_WEIGHT))
    };
    let mut weights = [0; FqBands::COUNT];
    for weight in &mut weights {
        let Some(word) = words.take() else {
            return Err(refusal("Not enough elements in weights".to_owned(), words));
        };
        *weight = match i32_in(word, 10) {
            Some(number) if number >= FqBands::LEAST_WEIGHT => number,
            Some(number) => return Err(refusal(format!("\"weight\" element {number} too small"), words)),
            None => {
                let line = "Illegal \"weights\" element, positive number expected";
                return Err(refusal(line.to_owned(), words));
            }
        };
    }
    Ok(weights)
}

fn read(values: &Values) -> FqParams {
    let rate = |key: &str| values.rate(key).map(|rate| rate.0 as u32);
    FqParams {
        limit: values.number("limit"),
        flow_limit: values.number("flow_limit"),
        buckets_log: values.number("buckets").filter(|count| *count > 0).map(log_of),
        orphan_mask: values.number("orphan_mask"),
        pacing: values.switch("pacing", "nopacing"),
        quantum: values.number("quantum"),
        initial_quantum: values.number("initial_quantum"),
        max_rate: rate("maxrate"),
        low_rate_threshold: rate("low_rate_threshold"),
        refill_delay_us: values.number("refill_delay"),
        ce_threshold_us: values.number("ce_threshold").filter(|us| *us != u32::MAX),
        timer_slack_ns: values.number("timer_slack"),
        horizon_us: values.number("horizon"),
        horizon_drop: values.switch("horizon_drop", "horizon_cap"),
        offload_horizon_us: values.number("offload_horizon"),
        ..FqParams::default()
    }
}

/// The least power of two that is as large.
fn log_of(count: u32) -> u32 {
    count.checked_next_power_of_two().map_or(32, u32::trailing_zeros)
}

fn show(params: &FqParams, flags: &ShowFlags, entry: &mut Entry) {
    let number = |value: Option<u32>| value.unwrap_or(0);
    for (key, value, unit) in [
        ("limit", number(params.limit), "p"),
        ("flow_limit", number(params.flow_limit), "p"),
        ("buckets", 1_u32.checked_shl(number(params.buckets_log)).unwrap_or(0), ""),
        ("orphan_mask", number(params.orphan_mask), ""),
    ] {
        entry.number(key, value, &format!("{key} {value}{unit} "));
    }
    if params.pacing == Some(false) {
        entry.say("nopacing ");
        entry.member("pacing", Json::Bool(false));
    }
    let newer = flags.tc.has(TcChange::FqWords);
    if let Some(map) = params.priomap.filter(|_| newer) {
        entry.number("bands", FqBands::COUNT as u32, "bands 3 ");
        // tc 7.2 writes the blank into the names of JSON, too.
        numbers("priomap ", &map.map(u32::from), entry);
    }
    if let Some(weights) = params.weights.filter(|_| newer) {
        numbers("weights ", &weights.map(i32::cast_unsigned), entry);
    }
    entry.size("quantum", number(params.quantum), "quantum {} ");
    entry.size("initial_quantum", number(params.initial_quantum), "initial_quantum {} ");
    if let Some(rate) = params.max_rate.filter(|rate| *rate != u32::MAX) {
        entry.number("maxrate", rate, &format!("maxrate {} ", print_rate(Rate(rate.into()), flags.iec)));
    }
    if let Some(rate) = params.low_rate_threshold.filter(|rate| *rate > 0) {
        let text = print_rate(Rate(rate.into()), flags.iec);
        entry.number("low_rate_threshold", rate, &format!("low_rate_threshold {text} "));
    }
    time("refill_delay", number(params.refill_delay_us), entry);
    if let Some(us) = params.ce_threshold_us.filter(|us| *us != u32::MAX) {
        time("ce_threshold", us, entry);
    }
    let slack = number(params.timer_slack_ns);
    entry.number("timer_slack", slack, &format!("timer_slack {} ", print_nanos(i64::from(slack))));
    time("horizon", number(params.horizon_us), entry);
    let beyond = if params.horizon_drop == Some(true) { "horizon_drop" } else { "horizon_cap" };
    entry.say(&format!("{beyond} "));
    entry.member(beyond, Json::Number("null".into()));
    if let Some(us) = params.offload_horizon_us.filter(|_| newer) {
        time("offload_horizon", us, entry);
    }
}

/// A list, and the blanks between its numbers.
fn numbers(name: &'static str, list: &[u32], entry: &mut Entry) {
    entry.say(name);
    list.iter().for_each(|number| entry.say(&format!("{number} ")));
    entry.member(name, Json::Numbers(list.to_vec()));
}

fn show_stats(stats: &FqStats, flags: &ShowFlags, entry: &mut Entry) {
    const WAITING: [&str; FqBands::COUNT] = ["band0_pkts", "band1_pkts", "band2_pkts"];
    const DROPPED: [&str; FqBands::COUNT] = ["band0_drops", "band1_drops", "band2_drops"];
    let newer = flags.tc.has(TcChange::FqWords);
    entry.number("flows", stats.flows, &format!("  flows {}", stats.flows));
    entry.number("inactive", stats.inactive, &format!(" (inactive {}", stats.inactive));
    entry.number("throttled", stats.throttled, &format!(" throttled {})", stats.throttled));
    for (name, packets) in WAITING.iter().zip(stats.band_packets).filter(|_| newer) {
        entry.number(name, packets, &format!(" {name} {packets}"));
    }
    if stats.next_packet_ns > 0 {
        entry.number(
            "next_packet_delay",
            stats.next_packet_ns,
            &format!(" next_packet_delay {}", print_nanos(stats.next_packet_ns)),
        );
    }
    entry.number("gc", stats.gc, &format!("\n  gc {}", stats.gc));
    entry.number("highprio", stats.highprio, &format!(" highprio {}", stats.highprio));
    if newer && stats.fastpath > 0 {
        entry.number("fastpath", stats.fastpath, &format!(" fastpath {}", stats.fastpath));
    }
    entry.number("throttled", stats.throttled_times, &format!(" throttled {}", stats.throttled_times));
    if stats.latency_ns > 0 {
        entry.number(
            "latency",
            stats.latency_ns,
            &format!(" latency {}", print_nanos(stats.latency_ns as i64)),
        );
    }
    if stats.ce_mark > 0 {
        entry.number("ce_mark", stats.ce_mark, &format!(" ce_mark {}", stats.ce_mark));
    }
    if stats.flows_plimit > 0 {
        entry.number("flows_plimit", stats.flows_plimit, &format!(" flows_plimit {}", stats.flows_plimit));
    }
    let more = [("pkts_too_long", stats.too_long, true)]
        .into_iter()
        .chain(DROPPED.into_iter().zip(stats.band_drops).map(|(name, drops)| (name, drops, newer)));
    let mut lead = "\n ";
    for (name, packets, _) in more.filter(|(_, packets, known)| *known && *packets > 0) {
        entry.number(name, packets, &format!("{lead}{name} {packets}"));
        lead = " ";
    }
    entry.say("\n");
}
