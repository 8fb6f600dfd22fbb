//! hhf.

use super::base::{Codec, nested, structure};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{HhfStats, Xstats};
use tidegate_policy::{HhfParams, QdiscParams};

pub(super) struct Hhf;

impl Codec for Hhf {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Hhf(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Hhf(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::Hhf)
    }
}

fn encode(to: &mut Attributes, params: &HhfParams) {
    to.maybe(1, params.limit)
        .maybe(2, params.quantum)
        .maybe(3, params.hh_limit)
        .maybe(4, params.reset_timeout_us);
    to.maybe(5, params.admit_bytes).maybe(6, params.evict_timeout_us).maybe(7, params.non_hh_weight);
}

fn decode(from: &Found<'_>) -> HhfParams {
    HhfParams {
        limit: from.u32(1),
        quantum: from.u32(2),
        hh_limit: from.u32(3),
        reset_timeout_us: from.u32(4),
        admit_bytes: from.u32(5),
        evict_timeout_us: from.u32(6),
        non_hh_weight: from.u32(7),
    }
}

fn read_stats(words: &[u32]) -> Option<HhfStats> {
    structure!(words => HhfStats { drop_overlimit, hh_overlimit, tot_hh, cur_hh })
}
