//! ingress and clsact: places for filters, in which nothing waits.

use super::name::Kind;
use super::row::Filters;
use crate::spec::table::KindSpec;

pub(super) const INGRESS: KindSpec = KindSpec {
    filters: Filters::OfDevice,
    queues: false,
    ..KindSpec::new(Kind::Ingress, "ingress", "filters on what arrives; queues nothing")
};

pub(super) const CLSACT: KindSpec = KindSpec {
    filters: Filters::OfDevice,
    queues: false,
    ..KindSpec::new(Kind::Clsact, "clsact", "filters on what arrives and on what leaves; queues nothing")
};
