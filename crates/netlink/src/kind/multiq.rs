//! multiq: a structure of two numbers.

use super::base::Codec;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::{MultiqParams, QdiscParams};

pub(super) struct Multiq;

impl Codec for Multiq {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if matches!(params, QdiscParams::Multiq(_)) {
            // The kernel takes both from the device.
            to.payload(TCA_OPTIONS, &[0; 4]);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        let [a, b, c, d] = *options.get(..4)? else { return None };
        let (bands, max_bands) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
        Some(QdiscParams::Multiq(MultiqParams { bands, max_bands }))
    }
}
