//! prio: a structure.

use super::base::Codec;
use crate::decode::message::numbers;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::{PrioParams, QdiscParams};

pub(super) struct Prio;

impl Codec for Prio {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Prio(params) = params {
            encode(to, params);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(options).map(QdiscParams::Prio)
    }
}

fn encode(to: &mut Attributes, params: &PrioParams) {
    let mut bytes = words(&[params.bands]);
    bytes.extend(params.priomap);
    // Attributes may follow the structure; there are none.
    bytes.extend(Attributes::default().payload(TCA_OPTIONS, &[]).bytes());
    to.payload(TCA_OPTIONS, &bytes);
}

fn decode(options: &[u8]) -> Option<PrioParams> {
    let priomap = options.get(4..20)?.try_into().ok()?;
    Some(PrioParams { bands: *numbers(options).first()?, priomap })
}
