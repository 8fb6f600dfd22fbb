//! sfb: a structure.

use super::base::{Codec, nested, structure};
use crate::decode::message::{Message, numbers};
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_policy::dump::{SfbStats, Xstats};
use tidegate_policy::{QdiscParams, SfbParams};

pub(super) struct Sfb;

impl Codec for Sfb {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Sfb(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(&read(options)).map(QdiscParams::Sfb)
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::Sfb)
    }
}

fn encode(to: &mut Attributes, params: &SfbParams) {
    let SfbParams {
        rehash_ms,
        warmup_ms,
        limit,
        max,
        target,
        increment,
        decrement,
        penalty_rate,
        penalty_burst,
    } = *params;
    let all = [rehash_ms, warmup_ms, max, target, increment, decrement, limit, penalty_rate, penalty_burst];
    to.payload(1, &words(&all));
}

fn decode(from: &Found<'_>) -> Option<SfbParams> {
    structure!(numbers(from.get(1)?).as_slice() => SfbParams {
        rehash_ms, warmup_ms, max, target, increment, decrement, limit, penalty_rate, penalty_burst,
    })
}

fn read_stats(words: &[u32]) -> Option<SfbStats> {
    structure!(words => SfbStats { earlydrop, penaltydrop, bucketdrop, queuedrop, childdrop, marked, maxqlen,
        maxprob, avgprob })
}
