//! blackhole.

use super::base::Codec;
use tidegate_policy::QdiscParams;

pub(super) struct Blackhole;

impl Codec for Blackhole {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Blackhole)
    }
}
