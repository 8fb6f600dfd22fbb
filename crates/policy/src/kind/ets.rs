//! ets: strict bands, and below them bands that share by quanta.

use super::name::Kind;
use super::row::{ClassLayout, Filters};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec::Vec;

/// Bands there can be.
pub const MAX_BANDS: usize = 16;

/// ets: strict bands, and below them bands that share by quanta.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtsParams {
    /// Bands in all, 1 to 16.
    pub bands: u8,
    /// How many of these are strict; they come first.
    pub strict: u8,
    /// Bytes in a turn of each band that shares, as far as they were given; in a dump, of all.
    pub quanta: Vec<u32>,
    /// Band of each priority, as far as they were given: the others take the last band. In a dump, of all 16.
    pub priomap: Vec<u8>,
}

/// A class of ets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtsClassParams {
    /// Bytes sent in its turn. `None` in a dump: the band is strict.
    pub quantum: Option<u32>,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact(
        "bands",
        ValueKind::Decimal,
        "as many as strict and quanta need",
        "bands in all, 1 to 16",
    ),
    OptionSpec::exact("strict", ValueKind::Decimal, "0", "number of strict bands; they come first"),
    OptionSpec::exact(
        "quanta",
        ValueKind::Words("BYTES…"),
        "the largest frame",
        "bytes that each band that is not strict sends per round",
    ),
    OptionSpec::exact(
        "priomap",
        ValueKind::Priomap,
        "the last band",
        "band of each priority from 0 to 15, for packets that no filter matches",
    ),
];

const CLASS: &[OptionSpec] = &[OptionSpec::exact(
    "quantum",
    ValueKind::Decimal,
    "",
    "bytes that the band sends per round; strict bands have none",
)];

pub(super) const ETS: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    class: Some(CLASS),
    classes: ClassLayout::Bands,
    filters: Filters::OfQdisc,
    ..KindSpec::new(Kind::Ets, "ets", "strict bands, then bands that share by quanta (IEEE 802.1Qaz)")
};
