//! ingress and clsact.

use super::base::Codec;
use tidegate_policy::QdiscParams;

pub(super) struct Hook;

impl Codec for Hook {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Ingress)
    }
}
