//! skbprio.

use super::base::Codec;
use crate::decode::message::numbers;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::{QdiscParams, SkbprioParams};

pub(super) struct Skbprio;

impl Codec for Skbprio {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Skbprio(params) = params {
            to.maybe(TCA_OPTIONS, params.limit);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Skbprio(SkbprioParams { limit: numbers(options).first().copied() }))
    }
}
