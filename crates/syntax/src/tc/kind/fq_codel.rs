//! fq_codel.

use super::codel;
use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values, ecn, unless_zero};
use crate::tc::show::{Entry, drop_next, time};
use crate::tc::spelling::{ListedValue, Spelling};
use crate::tc::words::Words;
use crate::units::print_time;
use tidegate_policy::dump::{ClassDump, FqCodelStats, QdiscDump, Xstats};
use tidegate_policy::{FqCodelParams, QdiscParams};

pub(super) struct FqCodel;

impl Syntax for FqCodel {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::FqCodel(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::FqCodel(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::FqCodel(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn show_class_stats(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::FqCodelClass { deficit, codel } = &dump.xstats {
            entry.number("deficit", *deficit, &format!("  deficit {deficit}"));
            entry.number("count", codel.count, &format!(" count {}", codel.count));
            entry.number("lastcount", codel.lastcount, &format!(" lastcount {}", codel.lastcount));
            entry.number("ldelay", codel.ldelay_us, &format!(" ldelay {}", print_time(codel.ldelay_us)));
            if codel.dropping {
                entry.say(&format!(" dropping drop_next {}", drop_next(codel.drop_next_us)));
                entry.member("dropping", Json::Bool(true));
                entry.member("drop_next", Json::number(codel.drop_next_us));
            }
            entry.say("\n");
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling =
            Spelling { unless: &[("ecn", "noecn")], kept_in_ns: codel::KEPT_IN_NS, ..Spelling::SAME };
        &SPELLING
    }

    fn member(&self, key: &str, value: &ListedValue, all: &[(String, ListedValue)]) -> Option<Vec<String>> {
        match key {
            "ce_threshold_selector" => {
                let mask = all.iter().find(|(name, _)| name == "ce_threshold_mask")?.1.word()?;
                Some(vec![key.to_owned(), format!("{}/{mask}", value.word()?)])
            }
            _ => None,
        }
    }
}

fn read(values: &Values) -> FqCodelParams {
    FqCodelParams {
        limit: unless_zero(values, "limit"),
        flows: unless_zero(values, "flows"),
        quantum: unless_zero(values, "quantum"),
        target_us: unless_zero(values, "target"),
        interval_us: unless_zero(values, "interval"),
        ecn: ecn(values),
        ce_threshold_us: values.number("ce_threshold").filter(|us| *us != u32::MAX),
        ce_selector: values.selector("ce_threshold_selector"),
        memory_limit: values.number("memory_limit").filter(|bytes| *bytes != u32::MAX),
        drop_batch: unless_zero(values, "drop_batch"),
    }
}

fn show(params: &FqCodelParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    let mut number = |key: &'static str, value: Option<u32>| {
        let value = value.unwrap_or(0);
        entry.number(key, value, &format!("{key} {value} "));
    };
    number("flows", params.flows);
    number("quantum", params.quantum);
    time("target", params.target_us.unwrap_or(0), entry);
    if let Some(us) = params.ce_threshold_us {
        time("ce_threshold", us, entry);
    }
    if let Some((value, mask)) = params.ce_selector.filter(|(_, mask)| *mask != 0) {
        let text = |byte: u8| if byte == 0 { "0".to_string() } else { format!("{byte:#x}") };
        entry.say(&format!("ce_threshold_selector {}/{} ", text(value), text(mask)));
        entry.member("ce_threshold_selector", Json::number(value));
        entry.member("ce_threshold_mask", Json::number(mask));
    }
    time("interval", params.interval_us.unwrap_or(0), entry);
    entry.size("memory_limit", params.memory_limit.unwrap_or(0), "memory_limit {} ");
    entry.flag("ecn", params.ecn == Some(true));
    let batch = params.drop_batch.unwrap_or(0);
    entry.number("drop_batch", batch, &format!("drop_batch {batch} "));
}

fn show_stats(stats: &FqCodelStats, entry: &mut Entry) {
    let mut number = |key: &'static str, before: &str, value: u32| {
        entry.number(key, value, &format!("{before}{key} {value}"));
    };
    number("maxpacket", "  ", stats.maxpacket);
    number("drop_overlimit", " ", stats.drop_overlimit);
    number("new_flow_count", " ", stats.new_flow_count);
    number("ecn_mark", " ", stats.ecn_mark);
    for (key, value) in [
        ("ce_mark", stats.ce_mark),
        ("memory_used", stats.memory_used),
        ("drop_overmemory", stats.drop_overmemory),
    ] {
        if value > 0 {
            number(key, " ", value);
        }
    }
    number("new_flows_len", "\n  ", stats.new_flows_len);
    number("old_flows_len", " ", stats.old_flows_len);
    entry.say("\n");
}
