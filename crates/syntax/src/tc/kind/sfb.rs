//! sfb.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::number::general;
use crate::tc::command_line::ShowFlags;
use crate::tc::early::wrapped;
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, row, time};
use crate::tc::spelling::Spelling;
use crate::tc::words::Words;
use tidegate_policy::dump::{QdiscDump, SfbStats, Xstats};
use tidegate_policy::{QdiscParams, SfbParams};

pub(super) struct Sfb;

impl Syntax for Sfb {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Sfb(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Sfb(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Sfb(stats) = &dump.xstats {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling = Spelling { times: &[("rehash", 1_000), ("db", 1_000)], ..Spelling::SAME };
        &SPELLING
    }
}

fn read(values: &Values) -> SfbParams {
    const CERTAIN: f64 = 65_535.0;
    let number = |key: &str, default: u32| values.number(key).unwrap_or(default);
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let (max, target) = match (given("max"), given("target")) {
        (None, None) => (25, 20),
        (Some(max), None) => (max, max.wrapping_mul(4).wrapping_add(3) / 5),
        (None, Some(target)) => (target.wrapping_mul(5).wrapping_add(1) / 4, target),
        (Some(max), Some(target)) => (max, target),
    };
    let share = |key: &str, default: u32| {
        values.fraction(key).map_or(default, |value| wrapped(value * CERTAIN + 0.5))
    };
    SfbParams {
        rehash_ms: number("rehash", 600_000),
        warmup_ms: number("db", 60_000),
        limit: number("limit", 0),
        max,
        target,
        increment: share("increment", 33),
        decrement: share("decrement", 3),
        penalty_rate: number("penalty_rate", 10),
        penalty_burst: number("penalty_burst", 20),
    }
}

fn show(params: &SfbParams, entry: &mut Entry) {
    time("rehash", params.rehash_ms.wrapping_mul(1000), entry);
    time("db", params.warmup_ms.wrapping_mul(1000), entry);
    for (key, value) in [("limit", params.limit), ("max", params.max), ("target", params.target)] {
        entry.number(key, value, &format!("{key} {value}p "));
    }
    for (key, value) in [("increment", params.increment), ("decrement", params.decrement)] {
        share(key, value, entry);
        entry.say(" ");
    }
    entry.number("penalty_rate", params.penalty_rate, &format!("penalty_rate {}pps ", params.penalty_rate));
    entry.number("penalty_burst", params.penalty_burst, &format!("penalty_burst {}p ", params.penalty_burst));
}

/// A probability in 16 bits.
fn share(key: &'static str, value: u32, entry: &mut Entry) {
    let share = general(f64::from(value) / 65_535.0, 6);
    entry.say(&format!("{key} {share}"));
    entry.member(key, Json::Number(share));
}

fn show_stats(stats: &SfbStats, entry: &mut Entry) {
    row(
        &[
            ("earlydrop", "  ", stats.earlydrop),
            ("penaltydrop", " ", stats.penaltydrop),
            ("bucketdrop", " ", stats.bucketdrop),
            ("queuedrop", " ", stats.queuedrop),
            ("childdrop", " ", stats.childdrop),
            ("marked", " ", stats.marked),
            ("maxqlen", "\n  ", stats.maxqlen),
        ],
        entry,
    );
    for (key, value) in [("maxprob", stats.maxprob), ("avgprob", stats.avgprob)] {
        entry.say(" ");
        share(key, value, entry);
    }
    entry.say("\n");
}
