//! fq.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, time};
use crate::tc::spelling::{ListedValue, Spelling};
use crate::tc::words::Words;
use crate::units::{print_nanos, print_rate};
use tidegate_packet::Rate;
use tidegate_policy::dump::{FqStats, QdiscDump, Xstats};
use tidegate_policy::{FqParams, QdiscParams};

pub(super) struct Fq;

impl Syntax for Fq {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Fq(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Fq(params) = &dump.params {
            show(params, flags, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Fq(stats) = &dump.xstats {
            show_stats(stats, entry);
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
}

fn show_stats(stats: &FqStats, entry: &mut Entry) {
    entry.number("flows", stats.flows, &format!("  flows {}", stats.flows));
    entry.number("inactive", stats.inactive, &format!(" (inactive {}", stats.inactive));
    entry.number("throttled", stats.throttled, &format!(" throttled {})", stats.throttled));
    if stats.next_packet_ns > 0 {
        entry.number(
            "next_packet_delay",
            stats.next_packet_ns,
            &format!(" next_packet_delay {}", print_nanos(stats.next_packet_ns)),
        );
    }
    entry.number("gc", stats.gc, &format!("\n  gc {}", stats.gc));
    entry.number("highprio", stats.highprio, &format!(" highprio {}", stats.highprio));
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
    if stats.too_long > 0 {
        entry.number("pkts_too_long", stats.too_long, &format!("\n pkts_too_long {}", stats.too_long));
    }
    entry.say("\n");
}
