//! pfifo_fast: three strict bands by priority.

use super::name::Kind;
use super::row::Waits;
use crate::spec::table::KindSpec;

pub(super) const PFIFO_FAST: KindSpec = KindSpec {
    waits: Waits::UntilFull,
    ..KindSpec::new(
        Kind::PfifoFast,
        "pfifo_fast",
        "three strict bands by priority; the usual default of a device",
    )
};
