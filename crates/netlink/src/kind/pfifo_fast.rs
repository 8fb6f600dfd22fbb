//! pfifo_fast.

use super::base::Codec;
use tidegate_policy::QdiscParams;

pub(super) struct PfifoFast;

impl Codec for PfifoFast {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::PfifoFast)
    }
}
