//! pie.

use super::base::{Codec, nested, wide};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{PieStats, Xstats};
use tidegate_policy::{PieParams, QdiscParams};

pub(super) struct Pie;

impl Codec for Pie {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Pie(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Pie(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::Pie)
    }
}

fn encode(to: &mut Attributes, params: &PieParams) {
    let PieParams { limit, target_us, tupdate_us, alpha, beta, ecn, bytemode, rate_estimator } = params;
    to.maybe(2, *limit).maybe(3, *tupdate_us).maybe(1, *target_us).maybe(4, *alpha).maybe(5, *beta);
    to.switch(6, *ecn).switch(7, *bytemode).switch(8, *rate_estimator);
}

fn decode(from: &Found<'_>) -> PieParams {
    PieParams {
        limit: from.u32(2),
        target_us: from.u32(1),
        tupdate_us: from.u32(3),
        alpha: from.u32(4),
        beta: from.u32(5),
        ecn: from.switch(6),
        bytemode: from.switch(7),
        rate_estimator: from.switch(8),
    }
}

fn read_stats(words: &[u32]) -> Option<PieStats> {
    let [low, high, delay_us, avg_dq_rate, estimating, packets_in, dropped, overlimit, maxq, ecn_mark] =
        *words
    else {
        return None;
    };
    Some(PieStats {
        prob: wide(low, high),
        delay_us,
        avg_dq_rate,
        dq_rate_estimating: estimating != 0,
        packets_in,
        overlimit,
        dropped,
        maxq,
        ecn_mark,
    })
}
