//! pfifo, bfifo and pfifo_head_drop.

use super::base::Codec;
use crate::decode::message::numbers;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::{FifoParams, QdiscParams};

pub(super) struct Fifo;

impl Codec for Fifo {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Fifo(params) = params {
            to.maybe(TCA_OPTIONS, params.limit);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Fifo(FifoParams { limit: numbers(options).first().copied() }))
    }
}
