//! mq.

use super::base::Codec;
use tidegate_policy::QdiscParams;

pub(super) struct Mq;

impl Codec for Mq {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Mq)
    }
}
