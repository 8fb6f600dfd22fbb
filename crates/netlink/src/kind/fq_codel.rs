//! fq_codel.

use super::base::{Codec, nested, structure};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{CodelStats, FqCodelStats, Xstats};
use tidegate_policy::{FqCodelParams, QdiscParams};

pub(super) struct FqCodel;

impl Codec for FqCodel {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::FqCodel(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::FqCodel(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::FqCodel)
    }

    fn class_stats(&self, message: &Message<'_>) -> Option<Xstats> {
        class_stats(&message.own_numbers())
    }
}

fn encode(to: &mut Attributes, params: &FqCodelParams) {
    to.maybe(2, params.limit).maybe(5, params.flows).maybe(6, params.quantum).maybe(3, params.interval_us);
    to.maybe(1, params.target_us).switch(4, params.ecn).maybe(7, params.ce_threshold_us);
    if let Some((value, mask)) = params.ce_selector {
        to.u8(10, value).u8(11, mask);
    }
    to.maybe(9, params.memory_limit).maybe(8, params.drop_batch);
}

fn decode(from: &Found<'_>) -> FqCodelParams {
    FqCodelParams {
        limit: from.u32(2),
        flows: from.u32(5),
        quantum: from.u32(6),
        target_us: from.u32(1),
        interval_us: from.u32(3),
        ecn: from.switch(4),
        ce_threshold_us: from.u32(7),
        ce_selector: from.u8(10).zip(from.u8(11)),
        memory_limit: from.u32(9),
        drop_batch: from.u32(8),
    }
}

/// Which of the two structures follows.
const OF_QDISC: u32 = 0;
const OF_CLASS: u32 = 1;

fn read_stats(words: &[u32]) -> Option<FqCodelStats> {
    let (OF_QDISC, words) = words.split_first().map(|(which, rest)| (*which, rest))? else { return None };
    structure!(words => FqCodelStats {
        maxpacket, drop_overlimit, ecn_mark, new_flow_count, new_flows_len, old_flows_len, ce_mark,
        memory_used,
        drop_overmemory,
    })
}

fn class_stats(words: &[u32]) -> Option<Xstats> {
    let [OF_CLASS, deficit, ldelay_us, count, lastcount, dropping, drop_next, ..] = *words else {
        return None;
    };
    let (drop_next_us, dropping) = (drop_next as i32, dropping != 0);
    let codel = CodelStats { count, lastcount, ldelay_us, drop_next_us, dropping, ..CodelStats::default() };
    Some(Xstats::FqCodelClass { deficit: deficit as i32, codel })
}
