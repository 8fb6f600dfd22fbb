//! mq: a qdisc of its own for each of the device's transmit queues.

use super::name::Kind;
use super::row::{ClassLayout, Filters};
use crate::spec::table::KindSpec;

/// tc has no words for its options, and the kernel takes none.
pub(super) const MQ: KindSpec = KindSpec {
    classes: ClassLayout::Bands,
    filters: Filters::Unsupported,
    ..KindSpec::new(Kind::Mq, "mq", "a qdisc for each of the device's transmit queues")
};
