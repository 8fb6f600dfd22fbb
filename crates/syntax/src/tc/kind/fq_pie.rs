//! fq_pie.

use super::pie;
use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, row, time};
use crate::tc::spelling::Spelling;
use crate::tc::words::Words;
use tidegate_policy::dump::{FqPieStats, QdiscDump, Xstats};
use tidegate_policy::{FqPieParams, QdiscParams};

pub(super) struct FqPie;

impl Syntax for FqPie {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::FqPie(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::FqPie(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::FqPie(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling =
            Spelling { kept_in_ns: pie::KEPT_IN_NS, in_ticks: &["tupdate"], ..Spelling::SAME };
        &SPELLING
    }
}

fn read(values: &Values) -> FqPieParams {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    FqPieParams {
        pie: pie::read(values),
        flows: given("flows"),
        quantum: given("quantum"),
        memory_limit: given("memory_limit"),
        ecn_prob: given("ecn_prob"),
    }
}

fn show(params: &FqPieParams, entry: &mut Entry) {
    let FqPieParams { pie, flows, quantum, memory_limit, ecn_prob } = params;
    let (limit, flows) = (pie.limit.unwrap_or(0), flows.unwrap_or(0));
    entry.number("limit", limit, &format!("limit {limit}p "));
    entry.number("flows", flows, &format!("flows {flows} "));
    time("target", pie.target_us.unwrap_or(0), entry);
    time("tupdate", pie.tupdate_us.unwrap_or(0), entry);
    for (key, value) in [("alpha", pie.alpha), ("beta", pie.beta)] {
        let value = value.unwrap_or(0);
        entry.number(key, value, &format!("{key} {value} "));
    }
    entry.size("quantum", quantum.unwrap_or(0), "quantum {} ");
    entry.size("memory_limit", memory_limit.unwrap_or(0), "memory_limit {} ");
    let ecn_prob = ecn_prob.unwrap_or(0);
    entry.number("ecn_prob", ecn_prob, &format!("ecn_prob {ecn_prob} "));
    entry.flag("ecn", pie.ecn == Some(true));
    entry.flag("bytemode", pie.bytemode == Some(true));
    entry.flag("dq_rate_estimator", pie.rate_estimator == Some(true));
}

fn show_stats(stats: &FqPieStats, entry: &mut Entry) {
    row(
        &[
            ("pkts_in", "  ", stats.packets_in),
            ("overlimit", " ", stats.overlimit),
            ("overmemory", " ", stats.overmemory),
            ("dropped", " ", stats.dropped),
            ("ecn_mark", " ", stats.ecn_mark),
            ("new_flow_count", "\n  ", stats.new_flow_count),
            ("new_flows_len", " ", stats.new_flows_len),
            ("old_flows_len", " ", stats.old_flows_len),
            ("memory_used", " ", stats.memory_used),
        ],
        entry,
    );
    entry.say("\n");
}
