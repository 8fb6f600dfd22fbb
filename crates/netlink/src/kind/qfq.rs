//! qfq.

use super::base::{Codec, nested};
use tidegate_netlink_wire::attribute::{Attributes, read};
use tidegate_policy::{ClassParams, QdiscParams, QfqClassParams};

pub(super) struct Qfq;

impl Codec for Qfq {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Qfq)
    }

    fn encode_class(&self, to: &mut Attributes, params: &ClassParams) {
        if let ClassParams::Qfq(params) = params {
            nested(to, |to| {
                to.maybe(TCA_QFQ_WEIGHT, params.weight).maybe(TCA_QFQ_LMAX, params.maxpkt);
            });
        }
    }

    fn decode_class(&self, options: &[u8]) -> Option<ClassParams> {
        let found = read(options);
        Some(ClassParams::Qfq(QfqClassParams {
            weight: found.u32(TCA_QFQ_WEIGHT),
            maxpkt: found.u32(TCA_QFQ_LMAX),
        }))
    }
}

const TCA_QFQ_WEIGHT: u16 = 1;
const TCA_QFQ_LMAX: u16 = 2;
