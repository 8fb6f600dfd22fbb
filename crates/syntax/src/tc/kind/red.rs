//! red, and the listing that choke has too.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::early::{BANDWIDTH, Terms, computed, missing, red_words, usual_burst};
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, marks, probability, row};
use crate::tc::words::Words;
use tidegate_policy::dump::{QdiscDump, RedStats, Xstats};
use tidegate_policy::{QdiscParams, RedParams};

pub(super) struct Red;

impl Syntax for Red {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        read(&values, stderr).map(|params| Some(QdiscParams::Red(params)))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Red(params) = &dump.params {
            show(params, flags, true, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Red(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }
}

fn read(values: &Values, stderr: &mut String) -> Result<RedParams, Refusal> {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let (Some(limit), Some(avpkt)) = (given("limit"), given("avpkt")) else {
        return Err(missing(
            "RED: Required parameter (limit, avpkt) is missing",
            "red needs the bytes that may wait and the length of a usual packet: red limit 60k avpkt 1000",
        ));
    };
    let mut words = red_words(values, limit);
    if words.max == 0 {
        words.max = if words.min > 0 { words.min.wrapping_mul(3) } else { words.limit / 4 };
    }
    if words.min == 0 {
        words.min = words.max / 3;
    }
    let burst = given("burst").unwrap_or_else(|| usual_burst(words.min, words.max, avpkt));
    let rate = values.rate("bandwidth").filter(|rate| rate.0 > 0).unwrap_or_else(|| {
        stderr.push_str("RED: set bandwidth to 10Mbit\n");
        BANDWIDTH
    });
    let terms = Terms {
        name: "RED",
        min: words.min,
        max: words.max,
        min_bytes: words.min,
        max_bytes: words.max,
        burst,
        avpkt,
        probability: words.probability,
        rate: Some(rate),
    };
    let computed = computed(&terms, stderr)?;
    stderr.push_str(&computed.stderr);
    Ok(RedParams {
        limit,
        curve: computed.curve,
        idle: computed.idle,
        ecn: values.has("ecn"),
        harddrop: values.has("harddrop"),
        adaptive: values.has("adaptive"),
        nodrop: values.has("nodrop"),
    })
}

pub(super) fn show(params: &RedParams, flags: &ShowFlags, bytes: bool, entry: &mut Entry) {
    let curve = &params.curve;
    for (key, value) in [("limit", params.limit), ("min", curve.min), ("max", curve.max)] {
        if bytes {
            entry.size(key, value, &format!("{key} {{}} "));
        } else {
            entry.number(key, value, &format!("{key} {value}p "));
        }
    }
    let words = [
        ("ecn", params.ecn),
        ("harddrop", params.harddrop),
        ("adaptive", params.adaptive),
        ("nodrop", params.nodrop),
    ];
    marks(&words, entry);
    if flags.details {
        entry.number("ewma", curve.wlog, &format!("ewma {} ", curve.wlog));
        probability(curve.max_p, entry);
        entry.number("Scell_log", curve.scell_log, &format!("Scell_log {}", curve.scell_log));
    }
}

pub(super) fn show_stats(stats: &RedStats, entry: &mut Entry) {
    let counters = [
        ("marked", "  ", stats.marked),
        ("early", " ", stats.early),
        ("pdrop", " ", stats.pdrop),
        ("other", " ", stats.other),
    ];
    row(&counters, entry);
    match stats.matched {
        Some(matched) => entry.number("matched", matched, &format!(" matched {matched}")),
        None => entry.say(" "),
    }
    entry.say("\n");
}
