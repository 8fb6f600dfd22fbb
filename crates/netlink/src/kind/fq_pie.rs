//! fq_pie.

use super::base::{Codec, nested_and_marked, structure};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{FqPieStats, Xstats};
use tidegate_policy::{FqPieParams, PieParams, QdiscParams};

pub(super) struct FqPie;

impl Codec for FqPie {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::FqPie(params) = params {
            nested_and_marked(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::FqPie(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::FqPie)
    }
}

fn encode(to: &mut Attributes, params: &FqPieParams) {
    let PieParams { limit, target_us, tupdate_us, alpha, beta, ecn, bytemode, rate_estimator } = &params.pie;
    to.maybe(1, *limit).maybe(2, params.flows).maybe(3, *target_us).maybe(4, *tupdate_us).maybe(5, *alpha);
    to.maybe(6, *beta).maybe(7, params.quantum).maybe(8, params.memory_limit).maybe(9, params.ecn_prob);
    to.switch(10, *ecn).switch(11, *bytemode).switch(12, *rate_estimator);
}

fn decode(from: &Found<'_>) -> FqPieParams {
    let pie = PieParams {
        limit: from.u32(1),
        target_us: from.u32(3),
        tupdate_us: from.u32(4),
        alpha: from.u32(5),
        beta: from.u32(6),
        ecn: from.switch(10),
        bytemode: from.switch(11),
        rate_estimator: from.switch(12),
    };
    FqPieParams {
        pie,
        flows: from.u32(2),
        quantum: from.u32(7),
        memory_limit: from.u32(8),
        ecn_prob: from.u32(9),
    }
}

fn read_stats(words: &[u32]) -> Option<FqPieStats> {
    structure!(words => FqPieStats { packets_in, dropped, overlimit, overmemory, ecn_mark, new_flow_count,
        new_flows_len, old_flows_len, memory_used })
}
