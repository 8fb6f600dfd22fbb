//! blackhole: every packet is dropped.

use super::name::Kind;
use crate::spec::table::KindSpec;

/// tc has no words for its options, and the kernel takes none.
pub(super) const BLACKHOLE: KindSpec =
    KindSpec::new(Kind::Blackhole, "blackhole", "drops every packet, and reports success to senders");
