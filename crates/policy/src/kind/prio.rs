//! prio: strict bands.

use super::name::Kind;
use super::row::{Changes, ClassLayout, Filters};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

/// The options of prio, bands served in strict order (tc-prio(8)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrioParams {
    /// How many bands there are, 2 to 16.
    pub bands: u32,
    /// The band, from 0, of each of the 16 priorities.
    pub priomap: [u8; 16],
}

impl Default for PrioParams {
    fn default() -> PrioParams {
        PrioParams { bands: 3, priomap: PrioParams::MAP }
    }
}

impl PrioParams {
    /// The customary map, pfifo_fast's too.
    pub const MAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("bands", ValueKind::Signed, "3", "number of bands, 2 to 16; band 0 is served first"),
    OptionSpec::exact(
        "priomap",
        ValueKind::Priomap,
        "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "band of each priority from 0 to 15, for packets that no filter matches; give `bands` \
        before it",
    ),
    OptionSpec::exact("multiqueue", ValueKind::Flag, "", "accepted, without effect"),
];

pub(super) const PRIO: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::Bands,
    filters: Filters::OfQdisc,
    changes: Changes::InPlaceIfSame,
    ..KindSpec::new(Kind::Prio, "prio", "strict bands, each a class with a qdisc of its own")
};

/// A band that goes takes what is attached to it along.
pub(super) fn bands(params: &PrioParams) -> Option<u32> {
    Some(params.bands)
}
