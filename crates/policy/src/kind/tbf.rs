//! tbf: a token bucket.

use super::name::Kind;
use super::row::{Ahead, Changes, ClassLayout, Filters};
use crate::rate::{RateSpec, Ticks};
use crate::spec::error_style::ErrorStyle;
use crate::spec::table::{Clash, KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of tbf, a token bucket (tc-tbf(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TbfParams {
    /// The rate at which tokens come.
    pub rate: RateSpec,
    /// The rate that not even a full bucket exceeds (`peakrate`).
    pub peak: Option<RateSpec>,
    /// Bytes that may wait.
    pub limit: u32,
    /// The depth of the bucket in bytes. Not in a dump, which has `buffer` instead.
    pub burst: u32,
    /// Bytes that the peak bucket holds (`mtu`, `minburst`). Not in a dump.
    pub peak_burst: u32,
    /// The bucket: how long it takes at `rate`, in ticks (64 ns).
    pub buffer: Ticks,
    /// The peak bucket: how long it takes at `peak`, in ticks (64 ns).
    pub peak_buffer: Ticks,
}

const fn beside(with: &'static str, line: &'static str) -> Clash {
    Clash { with, line, remedy: "Both say how much may wait: keep one of them." }
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::short("limit", ValueKind::Size, "", "maximum backlog in bytes; give this or latency")
        .once("limit")
        .not_with(beside("latency", "tbf: specifying both \"latency\" and \"limit\" is not allowed")),
    OptionSpec::short("latency", ValueKind::Time, "", "maximum sojourn time; sets limit")
        .once("latency")
        .not_with(beside("limit", "tbf: specifying both \"limit\" and \"/latency\" is not allowed")),
    OptionSpec::short("burst", ValueKind::SizeCell, "", "bucket size in bytes: how much may leave at once")
        .or(&["buffer", "maxburst"])
        .once("buffer/burst/maxburst"),
    OptionSpec::exact(
        "mtu",
        ValueKind::SizeCell,
        "",
        "bucket size of peakrate in bytes; at least the largest packet",
    )
    .or(&["minburst"])
    .once("mtu/minburst"),
    OptionSpec::exact("mpu", ValueKind::Size, "0", "minimum size that a packet is charged in bytes")
        .once("mpu"),
    OptionSpec::exact("rate", ValueKind::Rate, "", "long-term rate").once("rate"),
    OptionSpec::short("peakrate", ValueKind::Rate, "none", "maximum rate of a burst; needs mtu")
        .once("peakrate"),
    OptionSpec::short("overhead", ValueKind::Decimal16, "0", "bytes that the link adds to each packet")
        .once("overhead"),
    OptionSpec::short(
        "linklayer",
        ValueKind::LinkLayer,
        "ethernet",
        "link layer: whole frames, or ATM cells",
    ),
];

const VOICE: ErrorStyle = ErrorStyle {
    illegal: "{more}tbf: illegal value for \"{name}\": \"{text}\"",
    as_typed: true,
    unknown: "tbf: unknown parameter \"{word}\"",
    twice: "tbf: duplicate \"{name}\" specification",
    value_first: true,
    ..ErrorStyle::PLAIN
};

pub(super) const TBF: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    error_style: VOICE,
    classes: ClassLayout::One,
    filters: Filters::Unsupported,
    changes: Changes::InPlace,
    keeps_rate: true,
    ..KindSpec::new(Kind::Tbf, "tbf", "token bucket: a steady rate with a bounded burst")
};

pub(super) fn ahead(params: &TbfParams) -> Vec<Ahead> {
    vec![Ahead::Bytes { queue: "queue", limit: params.limit }]
}
