//! dualpi2: as tc 7.0 reads and prints it (tc 6.1 does not know the kind).

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, time};
use crate::tc::spelling::{ListedValue, Spelling, place_of};
use crate::tc::words::Words;
use tidegate_policy::dump::{DualPi2Stats, QdiscDump, Xstats};
use tidegate_policy::{DualPi2Params, QdiscParams, StepThreshold};

pub(super) struct DualPi2;

impl Syntax for DualPi2 {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        read(&values, stderr).map(|params| Some(QdiscParams::DualPi2(params)))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::DualPi2(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::DualPi2(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling = Spelling { names: &[("step_packets", "step_thresh")], ..Spelling::SAME };
        &SPELLING
    }

    fn member(&self, key: &str, value: &ListedValue, _: &[(String, ListedValue)]) -> Option<Vec<String>> {
        match (key, value) {
            ("overload" | "drop" | "ect" | "gso", ListedValue::Text(word)) => Some(vec![word.clone()]),
            ("step_packets", ListedValue::Number(packets)) => {
                Some(vec![key.to_owned(), format!("{packets}p")])
            }
            _ => None,
        }
    }

    /// The kernel rounds weights down where it takes them and where it lists them.
    fn settle(&self, args: &mut Vec<String>) {
        for key in ["alpha", "beta"] {
            let Some(at) = place_of(args, key) else { continue };
            if let Ok(hertz) = args[at].parse::<f64>() {
                args[at] = format!("{}", (hertz * WEIGHT).round() / WEIGHT + 1.0 / WEIGHT);
            }
        }
    }
}

/// Weights are kept in 1/256 Hz.
const WEIGHT: f64 = 256.0;

/// The values read become the parameters.
fn read(values: &Values, stderr: &mut String) -> Result<DualPi2Params, Refusal> {
    let mut params = DualPi2Params {
        limit: values.number("limit"),
        memory_limit: values.number("memlimit"),
        target_us: values.number("target"),
        tupdate_us: values.number("tupdate"),
        alpha: weight(values, "alpha")?,
        beta: weight(values, "beta")?,
        step: match (values.packets("step_thresh"), values.number("step_thresh")) {
            (Some(packets), _) => Some(StepThreshold::Packets(packets)),
            (None, us) => us.map(StepThreshold::Micros),
        },
        min_qlen_step: values.number("min_qlen_step"),
        coupling: byte(values, "coupling_factor", 1..=255)?,
        classic_protection: byte(values, "classic_protection", 0..=100)?,
        drop_on_overload: values.switch("drop_on_overload", "overflow"),
        drop_at_enqueue: values.switch("drop_enqueue", "drop_dequeue"),
        ecn_mask: values.switch("l4s_ect", "any_ect").map(|l4s| if l4s { 1 } else { 3 }),
        split_gso: values.switch("split_gso", "no_split_gso"),
    };
    configure_by_rtt(values, &mut params, stderr);
    Ok(params)
}

/// Target, update time and weights from the round trips that the link serves (RFC 9332, appendix A.1).
fn configure_by_rtt(values: &Values, params: &mut DualPi2Params, stderr: &mut String) {
    let (max, typical) = match (values.number("max_rtt"), values.number("typical_rtt")) {
        (None, None) => return,
        (Some(max), None) => (max, max / 6),
        (None, Some(typical)) => (typical.saturating_mul(6), typical),
        (Some(max), Some(typical)) => (max, typical),
    };
    let max = max.max(1);
    let tupdate = typical.min(max / 3).max(1);
    let seconds = |us: u32| f64::from(us) / 1e6;
    let alpha = 0.1 * seconds(tupdate) / (seconds(max) * seconds(max));
    let beta = 0.3 / seconds(max);
    params.target_us = Some(typical);
    params.tupdate_us = Some(tupdate);
    params.alpha = Some((alpha * WEIGHT) as u32);
    params.beta = Some((beta * WEIGHT) as u32);
    stderr.push_str(&format!(
        "Auto-config [max_rtt: {max}us, typical_rtt: {typical}us]: \
         target={typical}us tupdate={tupdate}us alpha={alpha:.6} beta={beta:.6}\n"
    ));
}

fn weight(values: &Values, key: &'static str) -> Result<Option<u32>, Refusal> {
    let Some(hertz) = values.fraction(key) else { return Ok(None) };
    let units = hertz * WEIGHT + 0.5;
    if (1.0..f64::from(i32::MAX)).contains(&units) {
        return Ok(Some(units as u32));
    }
    Err(Refusal::new(1, format!("Illegal \"{key}\""))
        .remedy(format!("{key} is in Hz, at least 1/256: alpha 0.16 beta 3.2.")))
}

fn byte(
    values: &Values,
    key: &'static str,
    range: core::ops::RangeInclusive<u32>,
) -> Result<Option<u8>, Refusal> {
    let Some(number) = values.number(key) else { return Ok(None) };
    match u8::try_from(number).ok().filter(|_| range.contains(&number)) {
        Some(value) => Ok(Some(value)),
        None => Err(Refusal::new(1, format!("Illegal \"{key}\"")).remedy(format!(
            "{key} is between {} and {}.",
            range.start(),
            range.end()
        ))),
    }
}

fn show(params: &DualPi2Params, entry: &mut Entry) {
    let or_zero = |value: Option<u32>| value.unwrap_or(0);
    entry.number("limit", or_zero(params.limit), &format!("limit {}p ", or_zero(params.limit)));
    let memory = or_zero(params.memory_limit);
    entry.number("memlimit", memory, &format!("memlimit {memory}B "));
    time("target", or_zero(params.target_us), entry);
    time("tupdate", or_zero(params.tupdate_us), entry);
    for (key, value) in [("alpha", params.alpha), ("beta", params.beta)] {
        let value = format!("{:.6}", f64::from(or_zero(value)) / WEIGHT);
        entry.say(&format!("{key} {value} "));
        entry.member(key, Json::Number(value));
    }
    match params.step {
        Some(StepThreshold::Packets(packets)) => {
            entry.number("step_packets", packets, &format!("step_thresh {packets}p "));
        }
        Some(StepThreshold::Micros(us)) => time("step_thresh", us, entry),
        None => {}
    }
    let min = or_zero(params.min_qlen_step);
    entry.number("min_qlen_step", min, &format!("min_qlen_step {min}p "));
    let coupling = u32::from(params.coupling.unwrap_or(0));
    entry.number("coupling_factor", coupling, &format!("coupling_factor {coupling} "));
    word("overload", params.drop_on_overload, "drop_on_overload", "overflow", entry);
    word("drop", params.drop_at_enqueue, "drop_enqueue", "drop_dequeue", entry);
    let share = u32::from(params.classic_protection.unwrap_or(0));
    entry.number("classic_protection", share, &format!("classic_protection {share}% "));
    word("ect", params.ecn_mask.map(|mask| mask == 1), "l4s_ect", "any_ect", entry);
    word("gso", params.split_gso, "split_gso", "no_split_gso", entry);
}

/// One of two words.
fn word(key: &'static str, value: Option<bool>, yes: &str, no: &str, entry: &mut Entry) {
    let words = if value == Some(true) { yes } else { no };
    entry.say(&format!("{words} "));
    entry.member(key, Json::text(words.to_owned()));
}

fn show_stats(stats: &DualPi2Stats, entry: &mut Entry) {
    let probability = format!("{:.6}", f64::from(stats.prob) / f64::from(u32::MAX));
    entry.say(&format!("prob {probability}"));
    entry.member("prob", Json::Number(probability));
    let mut number = |key, before: &str, value: u32, unit: &str| {
        entry.number(key, value, &format!("{before}{key} {value}{unit}"));
    };
    number("delay_c", " ", stats.delay_c_us, "us");
    number("delay_l", " ", stats.delay_l_us, "us");
    number("pkts_in_c", "\n", stats.packets_in_c, "");
    number("pkts_in_l", " ", stats.packets_in_l, "");
    number("maxq", " ", stats.maxq, "");
    number("ecn_mark", "\n", stats.ecn_mark, "");
    number("step_mark", " ", stats.step_marks, "");
    let queue = if stats.credit > 0 { "C-queue" } else { "L-queue" };
    entry.say(&format!("\ncredit {} ({queue})\n", stats.credit));
    entry.member("credit", Json::Number(stats.credit.to_string()));
    entry.say(&format!(
        "memory_used {} (max {}) of memory limit {}\n",
        stats.memory_used, stats.max_memory_used, stats.memory_limit
    ));
    for (key, value) in [
        ("memory_used", stats.memory_used),
        ("max_memory_used", stats.max_memory_used),
        ("memory_limit", stats.memory_limit),
    ] {
        entry.member(key, Json::Number(value.to_string()));
    }
}
