//! A qdisc made outside: no kernel has it, so nothing is reported of it but its kind, which the kernel
//! refuses.

use super::base::Codec;
use tidegate_policy::QdiscParams;

pub(super) struct Custom;

impl Codec for Custom {
    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        None
    }
}
