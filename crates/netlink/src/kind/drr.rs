//! drr.

use super::base::{Codec, nested};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, read};
use tidegate_policy::dump::Xstats;
use tidegate_policy::{ClassParams, DrrClassParams, QdiscParams};

pub(super) struct Drr;

impl Codec for Drr {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Drr)
    }

    fn encode_class(&self, to: &mut Attributes, params: &ClassParams) {
        if let ClassParams::Drr(params) = params {
            nested(to, |to| {
                to.maybe(TCA_DRR_QUANTUM, params.quantum);
            });
        }
    }

    fn decode_class(&self, options: &[u8]) -> Option<ClassParams> {
        Some(ClassParams::Drr(DrrClassParams { quantum: read(options).u32(TCA_DRR_QUANTUM) }))
    }

    fn class_stats(&self, message: &Message<'_>) -> Option<Xstats> {
        message.own_numbers().first().map(|deficit| Xstats::DrrClass { deficit: *deficit })
    }
}

const TCA_DRR_QUANTUM: u16 = 1;
