//! noqueue: packets leave at once.

use super::name::Kind;
use crate::spec::table::KindSpec;

pub(super) const NOQUEUE: KindSpec =
    KindSpec { queues: false, ..KindSpec::new(Kind::Noqueue, "noqueue", "none: packets leave at once") };
