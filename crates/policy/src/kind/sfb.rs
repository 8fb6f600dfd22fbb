//! sfb: stochastic fair blue.

use super::name::Kind;
use super::row::{Changes, ClassLayout, Filters, Waits};
use crate::spec::error_style::{ErrorStyle, Help};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

/// The options of sfb, stochastic fair blue (Feng, Kandlur, Saha, Shin 2001; tc-sfb(8)), as tc sends them.
/// Probabilities are 16 bit, 65535 = 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfbParams {
    /// Time between changes of the hash key, ms.
    pub rehash_ms: u32,
    /// For how long before it the next key's bins are warmed up, ms.
    pub warmup_ms: u32,
    /// Packets that may wait; 0 = the device's transmit queue length.
    pub limit: u32,
    /// Packets of a bin above which it counts as full.
    pub max: u32,
    /// Packets of a bin from which its probability grows.
    pub target: u32,
    /// By how much a bin's probability grows, in 1/65535.
    pub increment: u32,
    /// By how much it shrinks when the bin is empty, in 1/65535.
    pub decrement: u32,
    /// Packets per second let through of a flow that does not respond.
    pub penalty_rate: u32,
    /// Packets let through at once of such a flow.
    pub penalty_burst: u32,
}

/// What sfb counted since it was made, and the state of its bins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfbStats {
    /// Packets dropped by their flow's probability.
    pub earlydrop: u32,
    /// Packets over the penalty rate of a flow that does not respond.
    pub penaltydrop: u32,
    /// Packets whose bins were all full.
    pub bucketdrop: u32,
    /// Packets that came to a full queue.
    pub queuedrop: u32,
    /// Packets that the queue below refused.
    pub childdrop: u32,
    /// Packets marked instead of dropped.
    pub marked: u32,
    /// Packets in the fullest bin.
    pub maxqlen: u32,
    /// The highest probability of a bin, 65535 = 1.
    pub maxprob: u32,
    /// The mean probability of the bins, 65535 = 1.
    pub avgprob: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("rehash", ValueKind::Number, "600000", "milliseconds between changes of the hash key"),
    OptionSpec::exact(
        "db",
        ValueKind::Number,
        "60000",
        "milliseconds of warm-up of the next key, before the change",
    ),
    OptionSpec::exact("limit", ValueKind::Number, "the device's txqueuelen", "maximum backlog in packets"),
    OptionSpec::exact(
        "max",
        ValueKind::Number,
        "25, or 5/4 target",
        "packets in a bin at which it takes no more",
    ),
    OptionSpec::exact(
        "target",
        ValueKind::Number,
        "20, or 4/5 max",
        "packets in a bin at which its probability rises",
    ),
    OptionSpec::exact("increment", ValueKind::Fraction, "0.0005", "increase of the probability per packet")
        .within(0.0, 1.0),
    OptionSpec::exact(
        "decrement",
        ValueKind::Fraction,
        "0.00005",
        "decrease of the probability when a packet meets an empty bin",
    )
    .within(0.0, 1.0),
    OptionSpec::exact(
        "penalty_rate",
        ValueKind::Number,
        "10",
        "packets per second of all unresponsive flows together",
    ),
    OptionSpec::exact("penalty_burst", ValueKind::Number, "20", "burst of these, in packets"),
];

const VOICE: ErrorStyle = ErrorStyle { help: Help::Unknown, ..ErrorStyle::PLAIN };

pub(super) const SFB: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::One,
    filters: Filters::OfQdisc,
    waits: Waits::KeptShort,
    changes: Changes::AsMade,
    error_style: VOICE,
    ..KindSpec::new(
        Kind::Sfb,
        "sfb",
        "stochastic fair blue: finds the flows that do not respond, and holds them",
    )
};
