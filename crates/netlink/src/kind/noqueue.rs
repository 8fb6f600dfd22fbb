//! noqueue.

use super::base::Codec;
use tidegate_policy::QdiscParams;

pub(super) struct Noqueue;

impl Codec for Noqueue {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Noqueue)
    }
}
