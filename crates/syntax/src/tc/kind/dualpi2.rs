//! dualpi2: as tc 7.2 reads and prints it (tc 6.1 does not know the kind).

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::number::general;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, time};
use crate::tc::spelling::{ListedValue, Spelling, place_of};
use crate::tc::words::Words;
use crate::units::print_time;
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
        const SPELLING: Spelling = Spelling {
            names: &[
                ("memory-limit", "memlimit"),
                ("step-thresh-us", "step_thresh"),
                ("step-thresh-pkts", "step_thresh"),
                ("min-qlen-step", "min_qlen_step"),
                ("coupling", "coupling_factor"),
                ("c-protection", "classic_protection"),
            ],
            ..Spelling::SAME
        };
        &SPELLING
    }

    fn member(&self, key: &str, value: &ListedValue, all: &[(String, ListedValue)]) -> Option<Vec<String>> {
        match (key, value) {
            // It comes last; that packets are not split is said by nothing behind it.
            ("ecn-mask", ListedValue::Text(word)) if !all.iter().any(|(key, _)| key == "split-gso") => {
                Some(vec![word.replace('-', "_"), "no_split_gso".to_owned()])
            }
            ("drop-overload", ListedValue::Text(word)) if word == "drop" => {
                Some(vec!["drop_on_overload".to_owned()])
            }
            ("drop-overload" | "drop-early" | "ecn-mask", ListedValue::Text(word)) => {
                Some(vec![word.replace('-', "_")])
            }
            ("split-gso", ListedValue::Null) => Some(vec!["split_gso".to_owned()]),
            ("step-thresh-pkts", ListedValue::Number(packets)) => {
                Some(vec!["step_thresh".to_owned(), format!("{packets}p")])
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

/// The values read become the parameters. tc leaves out most that are 0.
fn read(values: &Values, stderr: &mut String) -> Result<DualPi2Params, Refusal> {
    let number = |key| values.number(key).filter(|number| *number > 0);
    let mut params = DualPi2Params {
        limit: number("limit"),
        memory_limit: number("memlimit"),
        target_us: number("target"),
        tupdate_us: number("tupdate"),
        alpha: weight(values, "alpha", stderr)?,
        beta: weight(values, "beta", stderr)?,
        step: match values.packets("step_thresh") {
            Some(packets) => Some(StepThreshold::Packets(packets)).filter(|_| packets > 0),
            None => number("step_thresh").map(StepThreshold::Micros),
        },
        min_qlen_step: values.number("min_qlen_step"),
        coupling: byte(values, "coupling_factor", 0..=255)?,
        classic_protection: byte(values, "classic_protection", 0..=100)?,
        drop_on_overload: values.switch("drop_on_overload", "overflow"),
        drop_at_enqueue: values.switch("drop_enqueue", "drop_dequeue"),
        ecn_mask: values.switch("l4s_ect", "any_ect").map(|l4s| if l4s { 1 } else { 3 }),
        split_gso: values.switch("split_gso", "no_split_gso"),
    };
    configure_by_rtt(values, &mut params, stderr)?;
    Ok(params)
}

/// Target, update time and weights from the round trips that the link serves (RFC 9332, appendix A.1).
fn configure_by_rtt(values: &Values, params: &mut DualPi2Params, stderr: &mut String) -> Result<(), Refusal> {
    let number = |key| values.number(key).filter(|number| *number > 0);
    let (max, typical) = match (number("max_rtt"), number("typical_rtt")) {
        (None, None) => return Ok(()),
        (Some(max), None) => (max, (max / 6).max(1)),
        (None, Some(typical)) => (typical.wrapping_mul(6), typical),
        (Some(max), Some(typical)) if typical > max => {
            let remedy = "The usual round trip is at most the longest: max_rtt 100ms typical_rtt 20ms.";
            return Err(Refusal::new(1, "typical_rtt must be <= max_rtt!").remedy(remedy));
        }
        (Some(max), Some(typical)) => (max, typical),
    };
    let given = [params.alpha, params.beta, params.tupdate_us, params.target_us];
    if given.iter().any(Option::is_some) {
        stderr.push_str("rtt_max is specified, ignore alpha/beta/tupdate/target\n");
    }
    let max = max.max(1);
    let tupdate = typical.min(max / 3).max(1);
    let seconds = |us: u32| f64::from(us) / 1e6;
    // tc's constants are of single precision.
    let alpha = f64::from(0.1f32) * seconds(tupdate) / (seconds(max) * seconds(max));
    let beta = f64::from(0.3f32) / seconds(max);
    if alpha * WEIGHT < 1.0 || beta * WEIGHT < 1.0 {
        let line =
            format!("Large max_rtt={} rounds down alpha={alpha:.6} and/or beta={beta:.6}!", print_time(max));
        return Err(Refusal::new(1, line).remedy("Give a shorter max_rtt."));
    }
    params.target_us = Some(typical);
    params.tupdate_us = Some(tupdate);
    params.alpha = Some((alpha * WEIGHT) as u32);
    params.beta = Some((beta * WEIGHT) as u32);
    let [max, typical, tupdate] = [max, typical, tupdate].map(print_time);
    stderr.push_str(&format!(
        "Auto-config [max_rtt: {max}, typical_rtt: {typical}]: \
         target={typical} tupdate={tupdate} alpha={alpha:.6} beta={beta:.6}\n"
    ));
    Ok(())
}

/// A weight in 1/256 Hz; what is left is cut off.
fn weight(values: &Values, key: &'static str, stderr: &mut String) -> Result<Option<u32>, Refusal> {
    let Some(hertz) = values.fraction(key) else { return Ok(None) };
    let units = hertz * WEIGHT;
    if !(0.0..=f64::from(u32::MAX)).contains(&units) {
        return Err(Refusal::new(1, format!("Illegal \"{key}\""))
            .remedy(format!("{key} is in Hz, at least 1/256: alpha 0.16 beta 3.2.")));
    }
    if units < 1.0 {
        stderr.push_str(&format!("Warning: \"{key}\" is too small and will be rounded to zero.\n"));
    }
    Ok(Some(units as u32))
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
    entry.number("memory-limit", memory, &format!("memlimit {memory}B "));
    time("target", or_zero(params.target_us), entry);
    time("tupdate", or_zero(params.tupdate_us), entry);
    for (key, value) in [("alpha", params.alpha), ("beta", params.beta)] {
        let hertz = f64::from(or_zero(value)) / WEIGHT;
        // tc prints it in single precision.
        entry.say(&format!("{key} {:.6} ", hertz as f32));
        entry.member(key, Json::Number(general(hertz, 6)));
    }
    match params.step {
        Some(StepThreshold::Packets(packets)) => {
            entry.number("step-thresh-pkts", packets, &format!("step_thresh {packets}p "));
        }
        Some(StepThreshold::Micros(us)) => {
            entry.number("step-thresh-us", us, &format!("step_thresh {} ", print_time(us)));
        }
        None => {}
    }
    let min = or_zero(params.min_qlen_step);
    entry.number("min-qlen-step", min, &format!("min_qlen_step {min}p "));
    let coupling = u32::from(params.coupling.unwrap_or(0));
    entry.number("coupling", coupling, &format!("coupling_factor {coupling} "));
    let overload = params.drop_on_overload == Some(true);
    entry.say(if overload { "drop_on_overload " } else { "overflow " });
    entry.member("drop-overload", Json::text(if overload { "drop" } else { "overflow" }));
    word("drop-early", params.drop_at_enqueue, ["drop_enqueue", "drop_dequeue"], entry);
    let share = u32::from(params.classic_protection.unwrap_or(0));
    entry.number("c-protection", share, &format!("classic_protection {share}% "));
    word("ecn-mask", params.ecn_mask.map(|mask| mask == 1), ["l4s_ect", "any_ect"], entry);
    let split = params.split_gso == Some(true);
    entry.say(if split { "split_gso " } else { "no_split_gso " });
    if split {
        entry.member("split-gso", Json::Null);
    }
}

/// One of two words; in JSON it has no underscores.
fn word(key: &'static str, value: Option<bool>, [yes, no]: [&str; 2], entry: &mut Entry) {
    let word = if value == Some(true) { yes } else { no };
    entry.say(&format!("{word} "));
    entry.member(key, Json::text(word.replace('_', "-")));
}

fn show_stats(stats: &DualPi2Stats, entry: &mut Entry) {
    let probability = f64::from(stats.prob) / f64::from(u32::MAX);
    entry.say(&format!("prob {probability:.6}"));
    entry.member("prob", Json::Number(general(probability, 6)));
    let rows = [
        ("delay-c", " delay_c", stats.delay_c_us, "us"),
        ("delay-l", " delay_l", stats.delay_l_us, "us"),
        ("pkts-in-c", "\npkts_in_c", stats.packets_in_c, ""),
        ("pkts-in-l", " pkts_in_l", stats.packets_in_l, ""),
        ("maxq", " maxq", stats.maxq, ""),
        ("ecn-mark", "\necn_mark", stats.ecn_mark, ""),
        ("step-mark", " step_mark", stats.step_marks, ""),
    ];
    for (key, name, value, unit) in rows {
        entry.number(key, value, &format!("{name} {value}{unit}"));
    }
    let queue = if stats.credit > 0 { "C-queue" } else { "L-queue" };
    entry.say(&format!("\ncredit {} ({queue})\n", stats.credit));
    entry.member("credit", Json::Number(stats.credit.to_string()));
    entry.say(&format!(
        "memory_used {} (max {}) of memory limit {}\n\n",
        stats.memory_used, stats.max_memory_used, stats.memory_limit
    ));
    for (key, value) in [
        ("memory-used", stats.memory_used),
        ("max-memory-used", stats.max_memory_used),
        ("memory-limit", stats.memory_limit),
    ] {
        entry.member(key, Json::Number(value.to_string()));
    }
}
