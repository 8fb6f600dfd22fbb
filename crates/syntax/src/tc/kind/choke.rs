//! choke.

use super::red;
use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::early::{Terms, computed, missing, ordered, usual_burst};
use crate::tc::options::{Reader, Values};
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::{QdiscDump, Xstats};
use tidegate_policy::{QdiscParams, RedParams};

pub(super) struct Choke;

impl Syntax for Choke {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        read(&values, stderr).map(|params| Some(QdiscParams::Choke(params)))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Choke(params) = &dump.params {
            red::show(params, flags, false, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::Red(stats) = &dump.xstats {
            red::show_stats(stats, entry);
        }
    }
}

fn read(values: &Values, stderr: &mut String) -> Result<RedParams, Refusal> {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let (Some(limit), Some(rate)) = (given("limit"), values.rate("bandwidth").filter(|rate| rate.0 > 0))
    else {
        return Err(missing(
            "Required parameter (bandwidth, limit) is missing",
            "choke needs the packets that may wait and the link's rate: choke limit 100 bandwidth 1mbit",
        ));
    };
    let words = ordered(values, limit)?;
    let avpkt = values.number("avpkt").unwrap_or(1000);
    let terms = Terms {
        name: "CHOKE",
        min: words.min,
        max: words.max,
        min_bytes: words.min.wrapping_mul(avpkt),
        max_bytes: words.max.wrapping_mul(avpkt),
        burst: given("burst").unwrap_or_else(|| usual_burst(words.min, words.max, 1)),
        avpkt,
        probability: words.probability,
        rate: Some(rate),
    };
    let computed = computed(&terms, "")?;
    stderr.push_str(&computed.stderr);
    Ok(RedParams {
        limit,
        curve: computed.curve,
        idle: computed.idle,
        ecn: values.has("ecn"),
        harddrop: false,
        adaptive: false,
        nodrop: false,
    })
}
