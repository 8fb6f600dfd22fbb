//! choke.

use super::base::{Codec, nested};
use super::red;
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, read};
use tidegate_policy::dump::Xstats;
use tidegate_policy::{QdiscParams, RedParams};

pub(super) struct Choke;

impl Codec for Choke {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Choke(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        red::decode(&read(options), false).map(QdiscParams::Choke)
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        red::read_stats(&message.own_numbers(), true).map(Xstats::Red)
    }
}

fn encode(to: &mut Attributes, params: &RedParams) {
    to.payload(1, &red::curve(params.limit, &params.curve, red::flags(params)));
    red::idle(to, 2, params.idle.as_deref());
    to.u32(3, params.curve.max_p);
}
