//! codel.

use super::base::{Codec, nested};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{CodelStats, Xstats};
use tidegate_policy::{CodelParams, QdiscParams};

pub(super) struct Codel;

impl Codec for Codel {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Codel(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Codel(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::Codel)
    }
}

fn encode(to: &mut Attributes, params: &CodelParams) {
    let CodelParams { limit, target_us, interval_us, ecn, ce_threshold_us } = params;
    to.maybe(2, *limit)
        .maybe(3, *interval_us)
        .maybe(1, *target_us)
        .switch(4, *ecn)
        .maybe(5, *ce_threshold_us);
}

fn decode(from: &Found<'_>) -> CodelParams {
    CodelParams {
        limit: from.u32(2),
        target_us: from.u32(1),
        interval_us: from.u32(3),
        ecn: from.switch(4),
        ce_threshold_us: from.u32(5),
    }
}

fn read_stats(words: &[u32]) -> Option<CodelStats> {
    let [maxpacket, count, lastcount, ldelay_us, drop_next, drop_overlimit, ecn_mark, dropping, ce_mark] =
        *words
    else {
        return None;
    };
    Some(CodelStats {
        maxpacket,
        count,
        lastcount,
        ldelay_us,
        drop_next_us: drop_next as i32,
        dropping: dropping != 0,
        drop_overlimit,
        ecn_mark,
        ce_mark,
    })
}
