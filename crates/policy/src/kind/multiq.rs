//! multiq: a band for each of the device's transmit queues.

use super::name::Kind;
use super::row::{Changes, ClassLayout, Filters};
use crate::spec::table::KindSpec;

/// multiq: nothing is reported of it; in a dump it lists its bands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultiqParams {
    /// Bands: the device's transmit queues in use.
    pub bands: u16,
    /// Bands there can be: all of its transmit queues.
    pub max_bands: u16,
}

pub(super) const MULTIQ: KindSpec = KindSpec {
    qdisc: Some(&[]),
    classes: ClassLayout::Bands,
    filters: Filters::OfQdisc,
    changes: Changes::InPlace,
    ..KindSpec::new(
        Kind::Multiq,
        "multiq",
        "a band for each of the device's transmit queues, which take turns",
    )
};
