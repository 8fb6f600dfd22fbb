//! pie.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::number::general;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, row, time};
use crate::tc::spelling::Spelling;
use crate::tc::words::Words;
use crate::units::print_time;
use tidegate_policy::dump::{PieStats, QdiscDump, Xstats};
use tidegate_policy::{PieParams, QdiscParams};

/// Linux keeps the target in ticks of 64 ns (`psched_time_t`).
pub(super) const KEPT_IN_NS: &[(&str, u64)] = &[("target", 64)];

pub(super) struct Pie;

impl Syntax for Pie {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Pie(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Pie(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Pie(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling =
            Spelling { kept_in_ns: KEPT_IN_NS, in_ticks: &["tupdate"], ..Spelling::SAME };
        &SPELLING
    }
}

/// fq_pie's words are the same, and more.
pub(super) fn read(values: &Values) -> PieParams {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    PieParams {
        limit: given("limit"),
        target_us: given("target"),
        tupdate_us: given("tupdate"),
        alpha: given("alpha"),
        beta: given("beta"),
        ecn: values.switch("ecn", "noecn"),
        bytemode: values.switch("bytemode", "nobytemode"),
        rate_estimator: values.switch("dq_rate_estimator", "no_dq_rate_estimator"),
    }
}

fn show(params: &PieParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    time("target", params.target_us.unwrap_or(0), entry);
    time("tupdate", params.tupdate_us.unwrap_or(0), entry);
    for (key, value) in [("alpha", params.alpha), ("beta", params.beta)] {
        let value = value.unwrap_or(0);
        entry.number(key, value, &format!("{key} {value} "));
    }
    entry.flag("ecn", params.ecn == Some(true));
    entry.flag("bytemode", params.bytemode == Some(true));
    entry.flag("dq_rate_estimator", params.rate_estimator == Some(true));
}

fn show_stats(stats: &PieStats, entry: &mut Entry) {
    let probability = general(stats.prob as f64 / u64::MAX as f64, 6);
    entry.say(&format!("  prob {probability}"));
    entry.member("prob", Json::Number(probability));
    entry.number("delay", stats.delay_us, &format!(" delay {}", print_time(stats.delay_us)));
    if stats.dq_rate_estimating {
        entry.number("avg_dq_rate", stats.avg_dq_rate, &format!(" avg_dq_rate {}", stats.avg_dq_rate));
    }
    row(
        &[
            ("pkts_in", "\n  ", stats.packets_in),
            ("overlimit", " ", stats.overlimit),
            ("dropped", " ", stats.dropped),
            ("maxq", " ", stats.maxq),
            ("ecn_mark", " ", stats.ecn_mark),
        ],
        entry,
    );
    entry.say("\n");
}
