//! noqueue: packets leave at once.

use super::Kind;
use crate::spec::KindSpec;

pub(super) const NOQUEUE: KindSpec =
    KindSpec { queues: false, ..KindSpec::new(Kind::Noqueue, "noqueue", "none: packets leave at once") };
