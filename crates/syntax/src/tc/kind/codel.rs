//! codel.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values, ecn, unless_zero};
use crate::tc::show::{Entry, drop_next, time};
use crate::tc::spelling::Spelling;
use crate::tc::words::Words;
use crate::units::print_time;
use tidegate_policy::dump::{CodelStats, QdiscDump, Xstats};
use tidegate_policy::{CodelParams, QdiscParams};

/// Linux keeps CoDel's times in units of 1024 ns (`codel_time_t`).
pub(super) const KEPT_IN_NS: &[(&str, u64)] = &[("target", 1024), ("interval", 1024), ("ce_threshold", 1024)];

pub(super) struct Codel;

impl Syntax for Codel {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Codel(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Codel(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Codel(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling = Spelling { kept_in_ns: KEPT_IN_NS, ..Spelling::SAME };
        &SPELLING
    }
}

fn read(values: &Values) -> CodelParams {
    CodelParams {
        limit: unless_zero(values, "limit"),
        target_us: unless_zero(values, "target"),
        interval_us: unless_zero(values, "interval"),
        ecn: ecn(values),
        ce_threshold_us: values.number("ce_threshold").filter(|us| *us != u32::MAX),
    }
}

fn show(params: &CodelParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    time("target", params.target_us.unwrap_or(0), entry);
    if let Some(us) = params.ce_threshold_us {
        time("ce_threshold", us, entry);
    }
    time("interval", params.interval_us.unwrap_or(0), entry);
    entry.flag("ecn", params.ecn == Some(true));
}

fn show_stats(stats: &CodelStats, entry: &mut Entry) {
    entry.number("count", stats.count, &format!("  count {}", stats.count));
    entry.number("lastcount", stats.lastcount, &format!(" lastcount {}", stats.lastcount));
    entry.number("ldelay", stats.ldelay_us, &format!(" ldelay {}", print_time(stats.ldelay_us)));
    if stats.dropping {
        entry.say(" dropping");
        entry.member("dropping", Json::Bool(true));
    }
    entry.number("drop_next", stats.drop_next_us, &format!(" drop_next {}", drop_next(stats.drop_next_us)));
    entry.number("maxpacket", stats.maxpacket, &format!("\n  maxpacket {}", stats.maxpacket));
    entry.number("ecn_mark", stats.ecn_mark, &format!(" ecn_mark {}", stats.ecn_mark));
    entry.number(
        "drop_overlimit",
        stats.drop_overlimit,
        &format!(" drop_overlimit {}", stats.drop_overlimit),
    );
    if stats.ce_mark > 0 {
        entry.number("ce_mark", stats.ce_mark, &format!(" ce_mark {}", stats.ce_mark));
    }
    entry.say("\n");
}
