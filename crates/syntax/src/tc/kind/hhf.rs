//! hhf.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, row, time};
use crate::tc::spelling::Spelling;
use crate::tc::words::Words;
use tidegate_policy::dump::{HhfStats, QdiscDump, Xstats};
use tidegate_policy::{HhfParams, QdiscParams};

pub(super) struct Hhf;

impl Syntax for Hhf {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Hhf(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Hhf(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Hhf(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling =
            Spelling { in_ticks: &["reset_timeout", "evict_timeout"], ..Spelling::SAME };
        &SPELLING
    }
}

fn read(values: &Values) -> HhfParams {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    HhfParams {
        limit: given("limit"),
        quantum: given("quantum"),
        hh_limit: given("hh_limit"),
        reset_timeout_us: given("reset_timeout"),
        admit_bytes: given("admit_bytes"),
        evict_timeout_us: given("evict_timeout"),
        non_hh_weight: given("non_hh_weight"),
    }
}

fn show(params: &HhfParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    entry.size("quantum", params.quantum.unwrap_or(0), "quantum {} ");
    let hh_limit = params.hh_limit.unwrap_or(0);
    entry.number("hh_limit", hh_limit, &format!("hh_limit {hh_limit} "));
    time("reset_timeout", params.reset_timeout_us.unwrap_or(0), entry);
    entry.size("admit_bytes", params.admit_bytes.unwrap_or(0), "admit_bytes {} ");
    time("evict_timeout", params.evict_timeout_us.unwrap_or(0), entry);
    let weight = params.non_hh_weight.unwrap_or(0);
    entry.number("non_hh_weight", weight, &format!("non_hh_weight {weight} "));
}

fn show_stats(stats: &HhfStats, entry: &mut Entry) {
    row(
        &[
            ("drop_overlimit", "  ", stats.drop_overlimit),
            ("hh_overlimit", " ", stats.hh_overlimit),
            ("tot_hh", " ", stats.tot_hh),
            ("cur_hh", " ", stats.cur_hh),
        ],
        entry,
    );
    entry.say("\n");
}
